"""What a command line says: which engine it is, whether it starts others, what it claims.

A command line may hold keys and names of people. Only the base name of the program and the values
of the few flags named here ever leave this module.

Titles that replace a command line come from the engines themselves
(``VLLM::EngineCore``, ``sglang::scheduler_TP0``); then the flags are on an ancestor alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spark_watch.sources.files import label

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

_RATIO_FLAGS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "vllm": (b"gpu-memory-utilization",),
    "sglang": (b"mem-fraction-static",),
    "tgi": (b"cuda-memory-fraction",),
    # A share of what is free at the start, so an upper bound of the share of the pool.
    "tensorrt-llm": (b"kv-cache-free-gpu-memory-fraction", b"free-gpu-memory-fraction"),
}
_BYTES_FLAG: Final = b"kv-cache-memory-bytes"
_CONFIG_FLAG: Final = b"config"
_WANTED: Final = frozenset(
    {_BYTES_FLAG, _CONFIG_FLAG, *(flag for flags in _RATIO_FLAGS.values() for flag in flags)}
)
_TGI_VARIABLE: Final = b"CUDA_MEMORY_FRACTION="

VLLM_DEFAULT: Final = 0.9
"""``--gpu-memory-utilization`` where nobody sets it (vLLM's engine arguments; later 0.92)."""
TGI_DEFAULT: Final = 1.0
"""``--cuda-memory-fraction`` where nobody sets it (TGI's launcher arguments)."""

_RATIO: Final = re.compile(rb"[01]?\.\d{1,18}|1")
_SIZE: Final = re.compile(rb"(\d{1,15})([kKmMgGtT]?)")
_UNITS: Final[Mapping[bytes, int]] = {
    b"": 1,
    b"k": 10**3,
    b"m": 10**6,
    b"g": 10**9,
    b"t": 10**12,
} | {b"K": 2**10, b"M": 2**20, b"G": 2**30, b"T": 2**40}


@dataclass(frozen=True, slots=True)
class Command:
    """What is worth knowing of a command line.

    ``launches`` is true of a program that holds the flags and starts the processes that hold the
    memory. A claim is a share of the pool or a size in bytes, never both.
    """

    name: str | None = None
    engine: str | None = None
    launches: bool = False
    claim_ratio: float | None = None
    claim_bytes: int | None = None


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
    if engine == "llama.cpp" and any(
        b"ollama" in word and b"/blobs/" in word for word in arguments
    ):
        engine = "ollama"
    return _with_claim(Command(name, engine, launches), base, arguments)


def with_environment(command: Command, environ: bytes) -> Command:
    """Return ``command`` with the claim that TGI takes from its environment, or its default.

    Args:
        command: a command of TGI; any other comes back as it is, and so does one with a claim.
        environ: the text of ``/proc/PID/environ``. Only ``CUDA_MEMORY_FRACTION`` is looked at.
    """
    if command.engine != "tgi" or command.claim_ratio is not None:
        return command
    for entry in environ.split(b"\0"):
        if entry.startswith(_TGI_VARIABLE):
            return replace(command, claim_ratio=_ratio(entry[len(_TGI_VARIABLE) :]))
    return replace(command, claim_ratio=TGI_DEFAULT)


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


def _with_claim(command: Command, base: bytes, arguments: Sequence[bytes]) -> Command:
    ratio_flags = _RATIO_FLAGS.get(command.engine or "")
    if ratio_flags is None:
        return command
    serves = base.startswith(b"vllm.entrypoints") or list(arguments[:1]) == [b"serve"]
    ratio = VLLM_DEFAULT if command.engine == "vllm" and serves else None
    given = {flag: value for flag, value in _flags(arguments) if flag in _WANTED}
    if _CONFIG_FLAG in given:
        ratio = None  # the share may stand in that file
    for flag in ratio_flags:
        if flag in given:
            ratio = _ratio(given[flag])
    if command.engine == "vllm" and (size := _size(given.get(_BYTES_FLAG, b""))):
        # The size takes the place of the share, whatever the share is.
        return replace(command, claim_bytes=size)
    return replace(command, claim_ratio=ratio)


def _flags(arguments: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each ``--flag`` with what follows it, after ``=`` or as the next word."""
    for at, word in enumerate(arguments):
        if word.startswith(b"--"):
            flag, equals, value = word[2:].partition(b"=")
            # Engines take both spellings.
            flag = flag.replace(b"_", b"-")
            yield flag, value if equals else b"".join(arguments[at + 1 : at + 2])


def _ratio(word: bytes) -> float | None:
    if _RATIO.fullmatch(word) is None:
        return None
    ratio = float(word)
    return ratio if 0 < ratio <= 1 else None


def _size(word: bytes) -> int | None:
    """Return bytes; a small unit letter counts in thousands, a large one in 1024s, as in vLLM."""
    match = _SIZE.fullmatch(word)
    if match is None:
        return None
    return int(match[1]) * _UNITS[match[2]]
