"""Tensor parallelism and nodes in launch files as people write them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spark_watch.preflight.launches import NODES, TENSOR, launches, settings


def found(text: str) -> list[tuple[str, int | None]]:
    """Return kind and value of every setting in the text of a file."""
    return [(each.kind, each.value) for each in settings(text, "file")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("vllm serve m --tensor-parallel-size 2", [(TENSOR, 2)], id="flag"),
        pytest.param("vllm serve m --tensor-parallel-size=2", [(TENSOR, 2)], id="flag with ="),
        pytest.param("vllm serve m -tp 2", [(TENSOR, 2)], id="short flag"),
        pytest.param("python -m sglang.launch_server --tp 2", [(TENSOR, 2)], id="sglang"),
        pytest.param("trtllm-serve m --tp_size 2", [(TENSOR, 2)], id="tensorrt-llm"),
        pytest.param("--tensor-model-parallel-size 2", [(TENSOR, 2)], id="megatron"),
        pytest.param("tensor_parallel_size: 2\n", [(TENSOR, 2)], id="yaml"),
        pytest.param("engine:\n  tp_size: '2'\n", [(TENSOR, 2)], id="yaml, quoted"),
        pytest.param('args:\n  - "--tp"\n  - "2"\n', [(TENSOR, 2)], id="yaml list"),
        pytest.param("args:\n- --tensor-parallel-size\n- 2\n", [(TENSOR, 2)], id="yaml list, bare"),
        pytest.param('{"tensor_parallel_size": 2}', [(TENSOR, 2)], id="json"),
        pytest.param('["--tensor-parallel-size", "2"]', [(TENSOR, 2)], id="json list"),
        pytest.param("tensor_parallel_degree = 2\n", [(TENSOR, 2)], id="toml"),
        pytest.param("LLM(model=m, tensor_parallel_size=2)", [(TENSOR, 2)], id="python"),
        pytest.param('{"tensor_parallel": {"autotp_size": 2}}', [(TENSOR, 2)], id="deepspeed"),
        pytest.param("tp: 2\n", [(TENSOR, 2)], id="short key"),
        pytest.param("TP_SIZE=2\n", [(TENSOR, 2)], id="shell"),
        pytest.param("--tp ${TP:-2}", [(TENSOR, 2)], id="a default"),
        pytest.param("--tp $TP", [(TENSOR, None)], id="a variable"),
        pytest.param("--tp ${TP}", [(TENSOR, None)], id="a variable in braces"),
        pytest.param("tensor_parallel_size=args.tp", [(TENSOR, None)], id="an expression"),
        pytest.param('tp_plan="auto"', [(TENSOR, None)], id="as many as there are"),
        pytest.param("--tensor-parallel-size 1", [(TENSOR, 1)], id="one"),
        pytest.param("torchrun --nnodes=2 --nproc-per-node 1", [(NODES, 2)], id="torchrun"),
        pytest.param("torchrun --nnodes 1:2", [(NODES, 2)], id="elastic"),
        pytest.param("#SBATCH --nodes=2\n", [(NODES, 2)], id="slurm"),
        pytest.param("num_machines: 2\n", [(NODES, 2)], id="accelerate"),
        pytest.param("Trainer(num_nodes=2)", [(NODES, 2)], id="lightning"),
        pytest.param("# --tensor-parallel-size 2\n", [], id="a comment"),
        pytest.param("x: 1  # tp_size: 2\n", [], id="a comment behind"),
        pytest.param("http: 8\nhttp=3 step: 2\nmtp: 2 ftp: 4", [], id="words that end alike"),
        pytest.param("--tp-comm-overlap\n", [], id="another flag"),
        pytest.param("tensor_parallel_size: null\n", [], id="not set"),
        pytest.param("tensor_parallel_size: int = 1\n", [], id="a type"),
        pytest.param("pipeline_parallel_size: 2\n", [], id="pipeline parallelism"),
        pytest.param("fsdp: full_shard\nddp_backend: nccl\n", [], id="fsdp and ddp"),
    ],
)
def test_what_a_text_sets(text: str, expected: list[tuple[str, int | None]]) -> None:
    """Each way to write it is seen, with its value, and nothing else is."""
    assert found(text) == expected


def test_the_place_is_file_and_line() -> None:
    """A reader finds what was meant."""
    (setting,) = settings("a: 1\n\ntp_size: 2\n", "run.yaml")
    assert (setting.place, setting.key) == ("run.yaml:3", "tp_size")


def test_the_environment() -> None:
    """Variables that end in a key count; others that hold the letters do not."""
    variables = {"VLLM_TENSOR_PARALLEL_SIZE": "2", "SLURM_NNODES": "2", "HTTP": "3", "TP_SIZE": ""}
    result = launches((), variables)
    assert [(each.kind, each.key, each.value) for each in result.settings] == [
        (TENSOR, "VLLM_TENSOR_PARALLEL_SIZE", 2),
        (NODES, "SLURM_NNODES", 2),
    ]
    assert result.files == 0


def test_a_folder(tmp_path: Path) -> None:
    """Launch files are looked into, at any depth but hidden folders; data files are not."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep" / "er" / "run.sh").write_text("vllm serve m --tp 2\n")
    (tmp_path / ".git" / "x.sh").write_text("--tp 4\n")
    (tmp_path / "notes.md").write_text("--tp 8\n")
    (tmp_path / "plain.toml").write_text("a = 1\n")
    result = launches((tmp_path,), {})
    assert [each.value for each in result.settings] == [2]
    assert result.files == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Each is named with its reason; the others still count."""
    good, binary, large = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "c.yaml"
    good.write_text("tp_size: 1\n")
    binary.write_bytes(b"\xff\xfe\0tp")
    large.write_bytes(b" " * (1 << 20))
    result = launches((good, binary, large, tmp_path / "d.yaml"), {})
    assert result.files == 1
    assert result.unread == (
        f"{binary} (not_text)",
        f"{large} (too_large)",
        f"{tmp_path / 'd.yaml'} (not_found)",
    )


def test_a_hostile_text_is_done_in_time() -> None:
    """A megabyte of near misses is scanned without going back and forth in it: 0.1 s each here."""
    begun = time.monotonic()
    assert found("tensor_parallel" * 70_000) == []
    assert found("--tp" + " " * 1_000_000) == []
    assert found("num_nodes " * 100_000 + "x")[:1] == [(NODES, None)]
    assert time.monotonic() - begun < 4.0
