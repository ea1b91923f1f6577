"""What a command line says: which engine it is, whether it starts others, what it claims.

A command line may hold keys and names of people. Only the base name of the program and the numbers
of a few known flags ever leave this module.

Titles that replace a command line come from the engines themselves
(``VLLM::EngineCore``, ``sglang::scheduler_TP0``); then the flags are on an ancestor alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spark_watch.sources.claims import NO_CLAIM, Claim, claim
from spark_watch.sources.files import label
from spark_watch.sources.ports import port

_PYTHON: Final = re.compile(rb"(?:python|pypy)[\d.]*[a-z]?")
_TITLES: Final = {b"VLLM::": "vllm", b"sglang::": "sglang"}
_LLAMA_CPP: Final = frozenset({b"llama-server", b"llama-cli", b"llama-bench", b"llama-run"})
_PACKAGES: Final = {
    b"vllm": "vllm",
    b"sglang": "sglang",
    b"tensorrt_llm": "tensorrt-llm",
    b"text_generation_server": "tgi",
}
_TRAINERS: Final = frozenset(
    {
        *(b"torchrun", b"accelerate", b"deepspeed", b"torch.distributed.run"),
        *(b"torch.distributed.launch", b"accelerate.commands.launch"),
        *(b"deepspeed.launcher.runner", b"deepspeed.launcher.launch"),
    }
)


@dataclass(frozen=True, slots=True)
class Command:
    """What is worth knowing of a command line.

    ``launches`` is true of a program that holds the flags and starts the processes that hold the
    memory. ``port`` is where it serves, ``None`` where it does not, or does not say.
    """

    name: str | None = None
    engine: str | None = None
    launches: bool = False
    claim: Claim = NO_CLAIM
    port: int | None = None


def understand(cmdline: bytes, comm: bytes, *, folder: bytes = b"") -> Command:
    """Return what the text of ``/proc/PID/cmdline`` says.

    Args:
        cmdline: the words, each ended by a NUL; empty where it is hidden and for a zombie.
        comm: the kernel's name of the process, at most 15 bytes, used where there are no words.
        folder: the working folder, which tells one ``python main.py`` from another.
    """
    words = cmdline.rstrip(b"\0").split(b"\0")
    name = _name(words[0], comm) if words[0] else label(comm)
    words[0] = words[0] or comm
    for start, title in _TITLES.items():
        if words[0].startswith(start):
            return Command(name, title)
    program, arguments = _program(words)
    base = program.rpartition(b"/")[2]
    engine, launches = _engine(program, base, arguments, folder)
    serves = port(engine, base, arguments)
    if engine == "llama.cpp" and any(
        b"ollama" in word and b"/blobs/" in word for word in arguments
    ):
        engine, serves = "ollama", None
    return Command(name, engine, launches, claim(engine, base, arguments), serves)


def _name(word: bytes, comm: bytes) -> str | None:
    """Return the title or base name; a title with blanks may hold arguments, so comm stands in."""
    first, *more = word.split(None, 1) or [b""]
    if b"::" in first:
        return label(first)
    return label(comm if more else first.rpartition(b"/")[2])


def _program(words: Sequence[bytes]) -> tuple[bytes, Sequence[bytes]]:
    """Return the executable, or the script or module a Python runs, and the words after it."""
    if _PYTHON.fullmatch(words[0].rpartition(b"/")[2]) is None:
        return words[0], words[1:]
    at = 1
    while at < len(words) and words[at].startswith(b"-"):
        if words[at] == b"-m":
            return b"".join(words[at + 1 : at + 2]), words[at + 2 :]
        if words[at] == b"-c":
            return b"", ()
        at += 2 if words[at] in {b"-W", b"-X"} else 1
    return b"".join(words[at : at + 1]), words[at + 1 :]


def _engine(
    program: bytes, base: bytes, arguments: Sequence[bytes], folder: bytes
) -> tuple[str | None, bool]:
    engine: str | None = None
    launches = True
    if package := _package(base):
        engine, launches = package, package != "tgi"
    elif base.startswith(b"trtllm-"):
        engine = "tensorrt-llm"
    elif base.startswith(b"text-generation"):
        engine, launches = "tgi", base == b"text-generation-launcher"
    elif base == b"ollama":
        engine, launches = "ollama", list(arguments[:1]) == [b"serve"]
    elif base in _LLAMA_CPP:
        engine, launches = "llama.cpp", False
    elif base == b"main.py" and b"comfyui" in (folder + b"/" + program).lower():
        engine, launches = "comfyui", False
    else:
        launches = base in _TRAINERS
    return engine, launches


def _package(base: bytes) -> str | None:
    """Return the engine whose command or module ``base`` is; ``vllm.py`` is somebody's script."""
    return None if base.endswith(b".py") else _PACKAGES.get(base.partition(b".")[0])
