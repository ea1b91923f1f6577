"""A ``/proc`` that a test populates, process by process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class ProcTree:
    """Writes the files of processes below ``root`` as the kernel does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def spawn(
        self,
        pid: int,
        *words: str,
        parent: int = 1,
        comm: str | None = None,
        started: int = 5000,
        resident_kib: int = 1024,
        swapped_kib: int = 0,
        major_faults: int = 0,
        state: str = "S",
        cgroup: str = "0::/\n",
        folder: str = "/",
        environ: str = "",
    ) -> Path:
        """Create or overwrite a process; without words it is one whose command line is hidden."""
        place = self.root / str(pid)
        place.mkdir(exist_ok=True)
        name = comm if comm is not None else os.path.basename(words[0])[:15]  # noqa: PTH119 - text
        fields = [state, str(parent), "0", "0", "0", "-1", "4194560", "0", "0", str(major_faults)]
        fields += ["0", "10", "5", "0", "0", "20", "0", "4", "0", str(started), "1000000", "256"]
        (place / "stat").write_text(f"{pid} ({name}) {' '.join(fields)} 0 0 0\n")
        status = f"Name:\t{name}\nState:\t{state}\nVmPeak:\t  999999 kB\n"
        status += f"VmRSS:\t{resident_kib:8} kB\nVmSwap:\t{swapped_kib:8} kB\nThreads:\t4\n"
        (place / "status").write_text(status)
        (place / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        (place / "cgroup").write_text(cgroup)
        (place / "environ").write_text(environ)
        (place / "cwd").unlink(missing_ok=True)
        (place / "cwd").symlink_to(folder)
        return place

    def end(self, pid: int) -> None:
        """Remove a process."""
        shutil.rmtree(self.root / str(pid))
