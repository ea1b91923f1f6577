"""What names this boot and the kernel that runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from spark_watch.errors import Unavailable
from spark_watch.sources.files import KeptFile, read_once

_BOOT_ID: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\n?")
_RELEASE: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}\n?")


class BootSource:
    """Reads ``sys/kernel/random/boot_id`` below ``proc_root``.

    Source: https://docs.kernel.org/admin-guide/sysctl/kernel.html#random
    """

    name = "boot"

    def __init__(self, *, proc_root: Path = Path("/proc")) -> None:
        self._file = KeptFile(proc_root / "sys" / "kernel" / "random" / "boot_id")

    def read(self) -> str:
        """Return the id of this boot: it stays until the machine restarts and never comes again.

        Raises:
            Unavailable: ``malformed`` where the text is no such id; otherwise the kernel's answer.
        """
        text = self._file.read()
        if _BOOT_ID.fullmatch(text) is None:
            raise Unavailable("malformed", f"{self._file.path} holds no boot id")
        return text.decode("ascii").strip()

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()


def kernel_release(*, proc_root: Path = Path("/proc")) -> str:
    """Return the running kernel's release as ``uname -r`` prints it (``6.17.0-1021-nvidia``).

    Raises:
        Unavailable: ``malformed`` where the text is no release; otherwise the kernel's answer.
    """
    path = proc_root / "sys" / "kernel" / "osrelease"
    text = read_once(path)
    if _RELEASE.fullmatch(text) is None:
        raise Unavailable("malformed", f"{path} holds no kernel release")
    return text.decode("ascii").strip()
