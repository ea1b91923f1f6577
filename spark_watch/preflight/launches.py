"""What launch files and the environment say of tensor parallelism and of nodes.

The files are scanned for known keys and flags, not parsed: YAML, TOML, JSON, shell and Python
write them alike. What a variable or an expression holds is not worked out; it is reported as not
readable, and never taken for one.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError
from spark_watch.sources.files import read_once

SUFFIXES: Final = frozenset(
    ".yaml .yml .toml .json .sh .bash .py .env .conf .cfg .ini .slurm .sbatch .service".split()  # noqa: SIM905 - easier to read than a set of twelve strings
)
"""Files of a folder that are looked into; a file named on the command line always is."""

MAXIMUM_FILES: Final = 2000
MAXIMUM_DEPTH: Final = 6
MAXIMUM_BYTES: Final = 1 << 20

TENSOR: Final = "tensor_parallel"
NODES: Final = "nodes"

_TENSOR_KEYS: Final = (
    r"tensor[_-](?:model[_-])?parallel(?:ism)?(?:[_-](?:size|degree|world[_-]size))?"
    r"|autotp[_-]size|tp[_-](?:size|degree)|tp[_-]plan"
)
_NODE_KEYS: Final = (
    r"nnodes|n[_-]nodes|num[_-]nodes|num[_-]machines|slurm[_-](?:job[_-]num|n)[_-]?nodes"
)
_VALUE: Final = r"""(?P<value>\$\{[^}\n]{1,80}\}|\$?[\w.:+/-]{1,80})"""
_GAP: Final = r"""["']?(?:\s{0,40}[:=,]\s{0,40}|\s{1,40})(?:-\s{1,9})?["']?"""
"""Between a key and its value: a colon, an equals sign, a comma of a list, a blank, a new item.
Bounded, so that a hostile text cannot send the search back and forth."""

_TENSOR: Final = re.compile(
    rf"(?<![\w-])(?P<key>(?:--)?(?:{_TENSOR_KEYS})|--tp|-tp|\btp(?=\s{{0,9}}[:=])){_GAP}{_VALUE}",
    re.IGNORECASE,
)
_NODES: Final = re.compile(
    rf"(?<![\w-])(?P<key>(?:--)?(?:{_NODE_KEYS})|--nodes){_GAP}{_VALUE}", re.IGNORECASE
)
_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=\s))#(?!SBATCH\b).*$")
_DEFAULT: Final = re.compile(r"\$\{\w+:?[-=](\d{1,6})\}")
_RANGE: Final = re.compile(r"(?:\d{1,6}:)?(\d{1,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key with its value.

    Args:
        kind: :data:`TENSOR` or :data:`NODES`.
        place: file and line, or ``environment``.
        key: as it is written there.
        value: the number; ``None`` where it is a variable or an expression.
    """

    kind: str
    place: str
    key: str
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """What was found, in how many files, and which could not be read."""

    settings: tuple[Setting, ...] = ()
    files: int = 0
    unread: tuple[str, ...] = ()


def launches(paths: Sequence[Path], variables: Mapping[str, str]) -> Launches:
    """Return what files, folders and the environment say.

    Args:
        paths: files and folders; of a folder the files that :data:`SUFFIXES` names.
        variables: the environment.
    """
    found = list(environment_settings(variables))
    unread = []
    count = 0
    for path in _files(paths):
        try:
            text = read_once(path, limit=MAXIMUM_BYTES).decode("utf-8")
        except SourceError as error:
            unread.append(f"{path} ({error.reason})")
        except UnicodeDecodeError:
            unread.append(f"{path} (not_text)")
        else:
            count += 1
            found += settings(text, str(path))
    return Launches(settings=tuple(found), files=count, unread=tuple(unread))


def settings(text: str, name: str) -> Iterator[Setting]:
    """Yield what the text of a file sets, by line; comments are passed over."""
    text = _COMMENT.sub("", text)
    breaks = [match.start() for match in re.finditer("\n", text)]
    matches = [(TENSOR, match) for match in _TENSOR.finditer(text)]
    matches += [(NODES, match) for match in _NODES.finditer(text)]
    for kind, match in sorted(matches, key=lambda each: each[1].start()):
        value = _number(match["value"])
        if value is None and match["value"].lower() in {"none", "null", "false", "true", "int"}:
            # a default that sets nothing, a switch beside a size, a type
            continue
        line = bisect(breaks, match.start()) + 1
        yield Setting(kind=kind, place=f"{name}:{line}", key=match["key"], value=value)


def environment_settings(variables: Mapping[str, str]) -> Iterator[Setting]:
    """Yield what variables set whose names end in one of the keys (``VLLM_TP_SIZE``)."""
    for kind, keys in ((TENSOR, _TENSOR_KEYS), (NODES, _NODE_KEYS)):
        for name, text in variables.items():
            if re.search(rf"(?:^|_)(?:{keys})$", name, re.IGNORECASE) and text:
                yield Setting(kind=kind, place="environment", key=name, value=_number(text))


def _number(text: str) -> int | None:
    """Return a whole number, the default of a shell variable, or the end of a range of nodes."""
    match = _DEFAULT.fullmatch(text) or _RANGE.fullmatch(text.strip("\"'"))
    return None if match is None else int(match[1])


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    left = MAXIMUM_FILES
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        depth = len(path.parts)
        for folder, folders, names in os.walk(path):
            if len(Path(folder).parts) - depth >= MAXIMUM_DEPTH:
                folders.clear()
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                file = Path(folder, name)
                if file.suffix.lower() in SUFFIXES or name.startswith(".env"):
                    left -= 1
                    if left < 0:
                        return
                    yield file
