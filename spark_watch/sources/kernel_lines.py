"""What a line of the kernel log says, for the few kinds of line that matter here.

Each pattern is anchored at the start of the message: a process can put what it likes into its own
name, and names stand inside lines. Whatever has another facility than the kernel's is not read at
all: services and users may write to the same log.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from spark_watch.sources.files import label

_RECORD: Final = re.compile(rb"(\d{1,4}),(\d{1,20}),[^;\n]{1,128};")
"""``/dev/kmsg``: priority, sequence number, time and flags before the message."""

_PLAIN: Final = re.compile(
    rb"(?=[<\[])(?:<(\d{1,4})>)?(?:\[[ \d]{1,8}\.\d{6}\](?:\[ *[CT]\d+\])? )?"
)
"""A copy of the log as ``dmesg`` prints it: priority, time and caller, each of them optional."""

_STARTS: Final = (
    b"NVRM: ",
    b"INFO: task ",
    b"oom-kill:",
    b"Out of memory",
    b"Memory cgroup out of",
)
_KINDS: Final[tuple[tuple[str, re.Pattern[bytes], Callable[[bytes], str | int | None]], ...]] = (
    # An Xid names the process it is about, so it is looked for before any token.
    ("xid", re.compile(rb"NVRM: (?:GPU\S* )?Xid \([^)]{1,64}\): (\d{1,5})\b"), int),
    ("nv_err_no_memory", re.compile(rb"NVRM: .*\bNV_ERR_NO_MEMORY\b()"), lambda _: None),
    (
        "hung_task",
        re.compile(
            rb"INFO: task (.{1,64}):\d{1,10} blocked (?:in I/O wait )?for more than \d+ seconds"
        ),
        label,
    ),
    (
        "pcie_fatal",
        re.compile(
            rb"\S{1,32} [0-9A-Fa-f:.]{7,16}: (?:AER: )?"
            rb"(?:(?:Multiple )?|PCIe Bus Error: severity=)Uncorrect(?:ed|able) \(Fatal\)()"
        ),
        lambda _: None,
    ),
)
_CHOSEN: Final = re.compile(rb"oom-kill:.*,pid=(\d{1,10}),uid=\d+$")
_KILLED: Final = re.compile(
    rb"(?:Out of memory|Memory cgroup out of memory)(?: \([a-z_]+\))?: "
    rb"Kill(?:ed)? process (\d{1,10})\b"
)


class Line(NamedTuple):
    """A line taken apart: who wrote it (0 is the kernel), its number in the log, its message."""

    facility: int
    sequence: int | None
    message: bytes


def take_apart(line: bytes) -> Line:
    """Return the parts of a record of ``/dev/kmsg``, or of a line as ``dmesg`` prints it.

    A line that shows no facility is taken for the kernel's: in a copy of its log nothing else
    stands. Only the first line of a record is its message.
    """
    record = _RECORD.match(line)
    if record is not None:
        message = line[record.end() :].partition(b"\n")[0]
        return Line(int(record[1]) >> 3, int(record[2]), message)
    plain = _PLAIN.match(line)
    if plain is None:
        return Line(0, None, line)
    return Line(int(plain[1] or 0) >> 3, None, line[plain.end() :])


def killed_process(message: bytes) -> int | None:
    """Return the pid of the process that the OOM killer ended, ``None`` for any other message."""
    killed = _KILLED.match(message)
    return None if killed is None else int(killed[1])


class Recogniser:
    """Says what a message means, and remembers which kills were announced already.

    One kill is two lines, ``oom-kill:...pid=N`` and ``Out of memory: Killed process N``. The first
    is rate-limited by the kernel, the second follows for every process of a killed group.
    """

    def __init__(self) -> None:
        self._announced: deque[bytes] = deque(maxlen=64)

    def meaning(self, message: bytes) -> tuple[str, str | int | None] | None:
        """Return kind and code as :class:`~spark_watch.model.KernelEvent` has them, or ``None``.

        ``None`` as well for the second line of a kill whose first was seen.
        """
        if not message.startswith(_STARTS) and b"(Fatal)" not in message:
            return None
        for kind, pattern, code in _KINDS:
            if match := pattern.match(message):
                return kind, code(match[1])
        return ("oom_kill", None) if self._is_new_kill(message) else None

    def _is_new_kill(self, message: bytes) -> bool:
        if chosen := _CHOSEN.match(message):
            self._announced.append(chosen[1])
            return True
        killed = _KILLED.match(message)
        if killed is None:
            return False
        if killed[1] in self._announced:
            self._announced.remove(killed[1])
            return False
        return True
