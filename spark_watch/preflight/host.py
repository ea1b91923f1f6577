"""Small facts about the host that no source reads: sysctls, OOM guards, signs of a container."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_watch.errors import SourceError, Unavailable
from spark_watch.sources.files import children, natural, read_once

SYSCTLS: Final = ("min_free_kbytes", "watermark_boost_factor", "watermark_scale_factor")
"""Of ``vm``: each sets aside memory that ``MemAvailable`` then lacks.

Source: https://docs.kernel.org/admin-guide/sysctl/vm.html
"""

GUARDS: Final[Mapping[str, str]] = {
    "earlyoom": "earlyoom",
    "systemd-oomd": "systemd-oomd",
    "nohang": "nohang",
    "oomd": "oomd",
}
"""Programs that kill before memory runs out, by the kernel's name of the process."""

_CONTAINER_GROUP: Final = re.compile(rb"docker|kubepods|libpod|containerd|lxc|garden")


def sysctls(*, proc_root: Path = Path("/proc")) -> dict[str, int]:
    """Return those of :data:`SYSCTLS` that can be read.

    Raises:
        Unavailable: none of them can.
    """
    found: dict[str, int] = {}
    for name in SYSCTLS:
        try:
            value = natural(read_once(proc_root / "sys" / "vm" / name).strip())
        except SourceError:
            continue
        if value is not None:
            found[name] = value
    if not found:
        raise Unavailable("not_found", "no vm sysctl could be read")
    return found


def guards(*, proc_root: Path = Path("/proc")) -> tuple[str, ...]:
    """Return which of :data:`GUARDS` run, by name.

    Raises:
        Unavailable: the processes cannot be listed.
    """
    running = set()
    for name in children(proc_root):
        if name.isdigit():
            try:
                comm = read_once(proc_root / name / "comm").strip().decode("utf-8", "replace")
            except SourceError:
                continue
            if comm in GUARDS:
                running.add(GUARDS[comm])
    return tuple(sorted(running))


def container_signs(
    variables: Mapping[str, str], *, root: Path = Path("/"), proc_root: Path = Path("/proc")
) -> tuple[str, ...]:
    """Return every sign that this process runs in a container; having none proves nothing.

    Source: podman and docker (marker files), systemd's container interface (the variable), proc(5).
    """
    signs = [
        f"/{marker}" for marker in (".dockerenv", "run/.containerenv") if (root / marker).exists()
    ]
    if variables.get("container"):
        signs.append("the variable container")
    signs += [name for name in ("NVIDIA_BUILD_ID", "KUBERNETES_SERVICE_HOST") if name in variables]
    for pid in ("1", "self"):
        try:
            group = read_once(proc_root / pid / "cgroup")
        except SourceError:
            continue
        match = _CONTAINER_GROUP.search(group)
        if match is not None:
            signs.append(f"the control group of {'process 1' if pid == '1' else 'this process'}")
            break
    try:
        mounts = read_once(proc_root / "self" / "mountinfo", limit=1 << 20)
    except SourceError:
        return tuple(signs)
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 6 and words[4] == b"/" and b"overlay" in words[6:]:  # noqa: PLR2004 - proc(5)
            signs.append("an overlay as the root file system")
            break
    return tuple(signs)
