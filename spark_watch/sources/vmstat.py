"""``/proc/vmstat``: what reclaim, compaction and swap have done since boot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.model import Vm
from spark_watch.sources.files import KeptFile, natural

_STALLS: Final = b"\nallocstall"


class VmstatSource:
    """Reads ``vmstat`` below ``proc_root``.

    Args:
        proc_root: where ``/proc`` is.
        page_bytes: bytes of a page, which swap traffic is counted in; the running kernel's.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory (the same counters),
    ``mm/vmstat.c`` for the names.
    """

    name = "vmstat"

    def __init__(
        self, *, proc_root: Path = Path("/proc"), page_bytes: int = os.sysconf("SC_PAGE_SIZE")
    ) -> None:
        self._file = KeptFile(proc_root / "vmstat")
        self._page_bytes = page_bytes

    def read(self) -> Vm:
        """Return the counters as they are now.

        Raises:
            Unavailable: ``malformed`` where none of them could be read; otherwise the kernel's
                answer.
        """
        return parse(self._file.read(), page_bytes=self._page_bytes)

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


def parse(text: bytes, *, page_bytes: int) -> Vm:
    """Return the wanted counters of ``text``; one that is absent or garbled is ``None``.

    Direct reclaims are the sum over every key that starts with ``allocstall``, because kernels
    differ in the zones they print.

    Raises:
        Unavailable: ``malformed`` where none of them could be read.
    """
    # With a newline before the first line, "newline, key, blank" is a whole key wherever it stands.
    text = b"\n" + text
    swapped_in = _counter(text, b"\npswpin ")
    swapped_out = _counter(text, b"\npswpout ")
    vm = Vm(
        swapped_in_bytes=None if swapped_in is None else swapped_in * page_bytes,
        swapped_out_bytes=None if swapped_out is None else swapped_out * page_bytes,
        major_faults=_counter(text, b"\npgmajfault "),
        oom_kills=_counter(text, b"\noom_kill "),
        compaction_stalls=_counter(text, b"\ncompact_stall "),
        compaction_failures=_counter(text, b"\ncompact_fail "),
        direct_reclaims=_direct_reclaims(text),
        refaults=refaults(text),
    )
    if vm == _NOTHING:
        raise Unavailable("malformed", "no wanted line of /proc/vmstat could be read")
    return vm


_NOTHING: Final = Vm()


def refaults(text: bytes) -> int | None:
    """Return the refaults in a table that starts with a newline, anonymous and file together.

    Kernels before 5.9 print one counter for both. ``None`` where neither form can be read.
    """
    both = _sum(
        _counter(text, b"\nworkingset_refault_anon "), _counter(text, b"\nworkingset_refault_file ")
    )
    return _counter(text, b"\nworkingset_refault ") if both is None else both


def _counter(text: bytes, key: bytes) -> int | None:
    start = text.find(key)
    if start < 0:
        return None
    start += len(key)
    end = text.find(b"\n", start)
    # Without its newline the last number may be cut off.
    return natural(text[start:end]) if end >= 0 else None


def _sum(*counters: int | None) -> int | None:
    """Return the sum, or ``None`` where a part is missing: a partial sum would run backwards."""
    total = 0
    for counter in counters:
        if counter is None:
            return None
        total += counter
    return total


def _direct_reclaims(text: bytes) -> int | None:
    counters: list[int | None] = []
    start = text.find(_STALLS)
    while start >= 0:
        end = text.find(b" ", start)
        counters.append(_counter(text, text[start : end + 1]) if end >= 0 else None)
        start = text.find(_STALLS, start + 1)
    return _sum(*counters) if counters else None
