"""What is read from a command line, and what never leaves it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.sources.claims import NO_CLAIM
from spark_watch.sources.commands import Command, understand


def _cmdline(line: str) -> bytes:
    return b"".join(word.encode() + b"\0" for word in line.split())


def _understand(line: str) -> Command:
    return understand(_cmdline(line), b"comm")


@pytest.mark.parametrize(
    ("line", "engine", "launches"),
    [
        ("/usr/bin/python3 /usr/local/bin/vllm serve model", "vllm", True),
        ("python3.12 -m vllm.entrypoints.openai.api_server --model m", "vllm", True),
        ("python -u -X faulthandler -m vllm.entrypoints.cli.main serve m", "vllm", True),
        ("/opt/venv/bin/vllm serve model", "vllm", True),
        ("VLLM::EngineCore", "vllm", False),
        ("VLLM::Worker_TP0", "vllm", False),
        ("python3 -m sglang.launch_server --model m", "sglang", True),
        ("sglang::scheduler_TP0", "sglang", False),
        ("/usr/bin/ollama serve", "ollama", True),
        ("/usr/bin/ollama runner --model m --port 9", "ollama", False),
        ("/opt/llama.cpp/build/bin/llama-server -m m.gguf", "llama.cpp", False),
        ("llama-server --model /usr/share/ollama/.ollama/models/blobs/sha256-0f", "ollama", False),
        ("text-generation-launcher --model-id m", "tgi", True),
        ("/usr/bin/python3 /opt/bin/text-generation-server serve m", "tgi", False),
        ("text-generation-router --port 80", "tgi", False),
        ("python3 /usr/local/bin/trtllm-serve m", "tensorrt-llm", True),
        ("python3 -m tensorrt_llm.commands.serve m", "tensorrt-llm", True),
        ("python /opt/ComfyUI/main.py --listen", "comfyui", False),
        ("torchrun --nproc-per-node 1 train.py", None, True),
        ("python3 -m torch.distributed.run train.py", None, True),
        ("python3 /usr/bin/accelerate launch train.py", None, True),
        ("python3 train.py", None, False),
        ("python3 vllm.py", None, False),
        ("python3 -c import_vllm vllm", None, False),
        ("python3", None, False),
        ("python3 -m", None, False),
        ("bash -c vllm", None, False),
        ("/usr/bin/vim /usr/local/bin/vllm", None, False),
        ("my-llama-server", None, False),
        ("/usr/lib/xorg/Xorg :0", None, False),
    ],
)
def test_an_engine_is_known_by_its_program_alone(
    line: str, engine: str | None, launches: bool
) -> None:
    """Executables, scripts, modules and titles tell; mere mentions among the words do not."""
    command = _understand(line)
    assert (command.engine, command.launches) == (engine, launches)


def test_a_relative_main_is_comfyui_only_in_its_own_folder() -> None:
    """``python main.py`` is ComfyUI's where the working folder says so."""
    cmdline = _cmdline("python main.py --lowvram")
    assert understand(cmdline, b"python", folder=b"/srv/ComfyUI").engine == "comfyui"
    assert understand(cmdline, b"python", folder=b"/srv/other").engine is None


@pytest.mark.parametrize(
    ("cmdline", "comm", "name"),
    [
        (b"/opt/llama.cpp/llama-server\0-m\0x\0", b"llama-server", "llama-server"),
        (b"VLLM::Worker_TP0_EP1\0\0\0\0", b"VLLM::Worker_TP", "VLLM::Worker_TP0_EP1"),
        (b"sglang::http_server/app\0", b"sglang::http_se", "sglang::http_serverapp"),
        (b"gunicorn: worker --token=a/SECRET\0", b"gunicorn: worke", "gunicorn:worke"),
        (b"/opt/my app/server\0--x\0", b"server", "server"),
        (b'/x/a"b{c}\xff\0', b"a", "abc"),
        (b"", b"kworker/0:1", "kworker0:1"),
        (b"\0\0\0", b"name", "name"),
        (b"/x/" + b"n" * 200 + b"\0", b"n", "n" * 48),
        (b"/x/\0", b"", None),
        (b"", b"", None),
    ],
)
def test_a_name_is_a_base_name_of_safe_characters(
    cmdline: bytes, comm: bytes, name: str | None
) -> None:
    """A title with blanks may hold arguments, so that the kernel's short name stands in for it."""
    assert understand(cmdline, comm).name == name


@pytest.mark.parametrize(
    ("comm", "engine"),
    [
        (b"VLLM::EngineCor", "vllm"),
        (b"sglang::schedul", "sglang"),
        (b"ollama", "ollama"),
        (b"llama-server", "llama.cpp"),
        (b"python3", None),
        (b"", None),
    ],
)
def test_where_the_words_are_hidden_the_short_name_tells(comm: bytes, engine: str | None) -> None:
    """The kernel's name of 15 characters is enough for an engine, and never for a claim."""
    command = understand(b"", comm)
    assert (command.engine, command.claim) == (engine, NO_CLAIM)


WORDS = st.sampled_from(
    [
        *(b"python3", b"-m", b"vllm", b"serve", b"ollama", b"--gpu-memory-utilization", b"0.5"),
        *(
            b"--kv-cache-memory-bytes=9",
            b"VLLM::EngineCore",
            b"--api-key",
            b"/a/main.py",
            b"=",
            b"",
        ),
    ]
)


@given(
    words=st.lists(WORDS | st.binary(max_size=8), max_size=12),
    comm=st.binary(max_size=15),
    folder=st.binary(max_size=12),
)
def test_nothing_but_names_and_flag_values_comes_out(
    words: list[bytes], comm: bytes, folder: bytes
) -> None:
    """Whatever the words, the name is a label of the first or of comm, a claim is in bounds."""
    cmdline = b"\0".join(words)
    command = understand(cmdline, comm, folder=folder)
    assert command.name is None or re.fullmatch(r"[A-Za-z0-9_.:-]{1,48}", command.name)
    ratio, size = command.claim
    assert ratio is None or 0 < ratio <= 1
    assert size is None or size > 0
    first = cmdline.rstrip(b"\0").split(b"\0")[0]
    if command.name is not None:
        assert set(command.name.encode()) <= set(first + comm)


def test_a_key_on_the_command_line_stays_there() -> None:
    """Neither keys, tokens, paths nor model names appear in anything that is returned."""
    command = _understand(
        "/srv/alice/bin/vllm serve alice/private-model --api-key sk-SECRET --served-model-name bob"
    )
    text = repr(command)
    assert not any(word in text for word in ("SECRET", "alice", "private", "bob", "srv"))
