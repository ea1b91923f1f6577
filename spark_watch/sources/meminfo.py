"""``/proc/meminfo``: on a GB10 the one pool of CPU and GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.model import Memory
from spark_watch.sources.files import KeptFile, natural

_FIELDS: Final[Mapping[bytes, str]] = {
    b"MemTotal": "total_bytes",
    b"MemFree": "free_bytes",
    b"MemAvailable": "available_bytes",
    b"Cached": "cached_bytes",
    b"Buffers": "buffers_bytes",
    b"SReclaimable": "reclaimable_slab_bytes",
    b"SUnreclaim": "unreclaimable_slab_bytes",
    b"AnonPages": "anonymous_bytes",
    b"Shmem": "shared_bytes",
    b"Mlocked": "locked_bytes",
    b"Mapped": "mapped_bytes",
    b"Dirty": "dirty_bytes",
    b"PageTables": "page_tables_bytes",
    b"KernelStack": "kernel_stack_bytes",
    b"VmallocUsed": "vmalloc_used_bytes",
    b"Percpu": "per_cpu_bytes",
    b"SwapTotal": "swap_total_bytes",
    b"SwapFree": "swap_free_bytes",
    b"HugePages_Total": "huge_pages_total",
    b"HugePages_Free": "huge_pages_free",
    b"Hugepagesize": "huge_page_bytes",
    b"CmaTotal": "cma_total_bytes",
    b"CmaFree": "cma_free_bytes",
}


class MeminfoSource:
    """Reads ``meminfo`` below ``proc_root``.

    Source: https://docs.kernel.org/filesystems/proc.html#meminfo
    """

    name = "meminfo"

    def __init__(self, *, proc_root: Path = Path("/proc")) -> None:
        self._file = KeptFile(proc_root / "meminfo")

    def read(self) -> Memory:
        """Return the pool as it is now.

        One look-up at the first call and none after it, because this is read four times a second
        while memory runs out.

        Raises:
            Unavailable: ``malformed`` where no line could be read; otherwise the kernel's answer.
        """
        return parse(self._file.read())

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


def parse(text: bytes) -> Memory:
    """Return what ``text`` says; a field whose line is absent or garbled is ``None``.

    A number is multiplied by 1024 only where its line says kB. The last line counts without its
    newline only where it ends in the unit: without one its number may be cut off.

    Raises:
        Unavailable: ``malformed`` where no line could be read.
    """
    lines = text.split(b"\n")
    if not lines[-1].endswith(b" kB"):
        lines.pop()
    amounts: dict[str, int] = {}
    for line in lines:
        key, _, rest = line.partition(b":")
        field = _FIELDS.get(key)
        if field is None:
            continue
        words = rest.split()
        amount = natural(words[0]) if words else None
        if amount is None or words[1:] not in ([], [b"kB"]):
            continue
        amounts[field] = amount if len(words) == 1 else amount * 1024
    if not amounts:
        raise Unavailable("malformed", "no line of /proc/meminfo could be read")
    return Memory(**amounts)
