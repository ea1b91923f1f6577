"""Where a server listens, by the one flag that says so or by the engine's own default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

DEFAULTS: Final[Mapping[str, int]] = {
    "vllm": 8000,
    "sglang": 30000,
    "llama.cpp": 8080,
    "tgi": 3000,
    "tensorrt-llm": 8000,
    "ollama": 11434,
}
"""The port of each engine's server where no flag names another (the engines' own documentation)."""

_SERVES: Final[Mapping[str, frozenset[bytes]]] = {
    "llama.cpp": frozenset({b"llama-server"}),
    "tgi": frozenset({b"text-generation-launcher"}),
    "tensorrt-llm": frozenset({b"trtllm-serve"}),
}
MOST: Final = 65535


def port(engine: str | None, base: bytes, arguments: Sequence[bytes]) -> int | None:
    """Return the port a command serves on, ``None`` where it serves nothing or does not say.

    Args:
        engine: a known engine.
        base: the program or module.
        arguments: the words after it.
    """
    if engine is None or engine not in DEFAULTS or not _serves(engine, base, arguments):
        return None
    in_a_file = any(word.partition(b"=")[0] == b"--config" for word in arguments)
    found = None if in_a_file else DEFAULTS[engine]
    for at, word in enumerate(arguments):
        flag, equals, value = word.partition(b"=")
        if flag in {b"--port", b"-p"}:
            found = _number(value if equals else b"".join(arguments[at + 1 : at + 2]))
    return found


def _serves(engine: str, base: bytes, arguments: Sequence[bytes]) -> bool:
    if engine in _SERVES:
        return base in _SERVES[engine]
    first = b"".join(arguments[:1])
    if engine == "ollama":
        return base == b"ollama" and first == b"serve"
    starts = (b"vllm.entrypoints", b"sglang.launch_server")
    return first == b"serve" or base.startswith(starts)


def _number(word: bytes) -> int | None:
    if not word.isdigit() or len(word) > len(str(MOST)):
        return None
    number = int(word)
    return number if 0 < number <= MOST else None
