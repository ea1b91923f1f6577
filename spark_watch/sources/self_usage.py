"""What the daemon itself costs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError
from spark_watch.sources.files import KeptFile, natural

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class SelfUsage:
    """Reads this process's own resident memory.

    Source: https://docs.kernel.org/filesystems/proc.html (``statm``, second word, pages)
    """

    def __init__(self, *, proc_root: Path = Path("/proc")) -> None:
        self._file = KeptFile(proc_root / "self" / "statm")

    def resident_bytes(self) -> int | None:
        """Return resident bytes, ``None`` where they cannot be read."""
        try:
            words = self._file.read().split()
        except SourceError:
            return None
        pages = natural(words[1]) if len(words) > 1 else None
        return None if pages is None else pages * PAGE_BYTES
