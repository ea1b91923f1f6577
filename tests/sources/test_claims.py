"""What counts as a claim on the pool, by engine, flag and variable."""

from __future__ import annotations

import pytest

from spark_watch.sources.claims import environment_claim
from spark_watch.sources.commands import understand


@pytest.mark.parametrize(
    ("line", "ratio", "size"),
    [
        ("vllm serve m --gpu-memory-utilization 0.6", 0.6, None),
        ("vllm serve m --gpu-memory-utilization=.55", 0.55, None),
        ("vllm serve m --gpu_memory_utilization 1", 1.0, None),
        ("vllm serve m --gpu-memory-utilization 0.5 --gpu-memory-utilization 0.7", 0.7, None),
        ("vllm serve m", 0.9, None),
        ("python3 -m vllm.entrypoints.openai.api_server", 0.9, None),
        ("vllm serve m --config c.yaml", None, None),
        ("vllm serve m --config c.yaml --gpu-memory-utilization 0.9", 0.9, None),
        ("vllm bench throughput", None, None),
        ("vllm bench throughput --gpu-memory-utilization 0.4", 0.4, None),
        ("vllm serve m --gpu-memory-utilization 1.5", None, None),
        ("vllm serve m --gpu-memory-utilization 0", None, None),
        ("vllm serve m --gpu-memory-utilization -0.5", None, None),
        ("vllm serve m --gpu-memory-utilization nan", None, None),
        ("vllm serve m --gpu-memory-utilization 1e-1", None, None),
        ("vllm serve m --gpu-memory-utilization", None, None),
        ("vllm serve m --kv-cache-memory-bytes 25G --gpu-memory-utilization 0.6", None, 25 * 2**30),
        ("vllm serve m --kv-cache-memory-bytes=25g", None, 25 * 10**9),
        ("vllm serve m --kv-cache-memory-bytes 4096", None, 4096),
        ("vllm serve m --kv-cache-memory-bytes auto", 0.9, None),
        ("vllm serve m --kv-cache-memory-bytes " + "9" * 40, 0.9, None),
        ("python -m sglang.launch_server --mem-fraction-static 0.75", 0.75, None),
        ("python -m sglang.launch_server", None, None),
        ("text-generation-launcher --cuda-memory-fraction 0.5", 0.5, None),
        ("trtllm-serve m --kv_cache_free_gpu_memory_fraction 0.4", 0.4, None),
        ("trtllm-serve m --free_gpu_memory_fraction=0.3", 0.3, None),
        ("trtllm-serve m", None, None),
        ("llama-server --gpu-memory-utilization 0.5", None, None),
        ("python3 train.py --gpu-memory-utilization 0.5", None, None),
    ],
)
def test_a_claim_is_a_known_flag_of_its_engine(
    line: str, ratio: float | None, size: int | None
) -> None:
    """Both spellings are read, the last one counts, and without any vLLM's default stands."""
    cmdline = b"".join(word.encode() + b"\0" for word in line.split())
    assert understand(cmdline, b"comm").claim == (ratio, size)


@pytest.mark.parametrize(
    ("environ", "ratio"),
    [
        (b"HF_TOKEN=x\0CUDA_MEMORY_FRACTION=0.25\0", 0.25),
        (b"HF_TOKEN=x\0", 1.0),
        (b"", 1.0),
        (b"MY_CUDA_MEMORY_FRACTION=0.25\0", 1.0),
        (b"CUDA_MEMORY_FRACTION=lots\0", None),
        (b"CUDA_MEMORY_FRACTION=\0", None),
    ],
)
def test_tgi_claims_by_its_environment(environ: bytes, ratio: float | None) -> None:
    """Its one variable, else its default, and nothing where the variable makes no sense."""
    assert environment_claim(environ) == (ratio, None)
