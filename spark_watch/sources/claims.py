"""What an engine claims of the pool, from the flags and the one variable that say so.

A claim is what the engine will take, not what it holds, and on unified memory it is no hard cap:
vLLM's profiling went beyond its share (vllm-project/vllm#46307).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

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


class Claim(NamedTuple):
    """A share of the pool, 0 to 1, or a size in bytes; never both."""

    ratio: float | None = None
    size: int | None = None


NO_CLAIM: Final = Claim()


def claim(engine: str | None, base: bytes, arguments: Sequence[bytes]) -> Claim:
    """Return what the flags of an engine claim; of each flag the last counts.

    Args:
        engine: a known engine; others claim nothing.
        base: the program or module, which tells a vLLM that serves from one that does not: only
            for a server is its default a claim.
        arguments: the words after it, flags in either spelling.
    """
    ratio_flags = _RATIO_FLAGS.get(engine or "")
    if ratio_flags is None:
        return NO_CLAIM
    serves = base.startswith(b"vllm.entrypoints") or list(arguments[:1]) == [b"serve"]
    ratio = VLLM_DEFAULT if engine == "vllm" and serves else None
    given = {flag: value for flag, value in _flags(arguments) if flag in _WANTED}
    if _CONFIG_FLAG in given:
        ratio = None  # the share may stand in that file
    for flag in ratio_flags:
        if flag in given:
            ratio = _ratio(given[flag])
    if engine == "vllm" and (size := _size(given.get(_BYTES_FLAG, b""))):
        # The size takes the place of the share, whatever the share is.
        return Claim(size=size)
    return Claim(ratio=ratio)


def environment_claim(environ: bytes) -> Claim:
    """Return what TGI claims by its environment, or by default.

    Args:
        environ: the text of ``/proc/PID/environ``. Only ``CUDA_MEMORY_FRACTION`` is looked at.
    """
    for entry in environ.split(b"\0"):
        if entry.startswith(_TGI_VARIABLE):
            return Claim(ratio=_ratio(entry[len(_TGI_VARIABLE) :]))
    return Claim(ratio=TGI_DEFAULT)


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
