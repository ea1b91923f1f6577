"""A real Alertmanager on loopback."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_SECONDS, until

SHARE = Path("/usr/share")
TEMPLATE = Path("prometheus/alertmanager/default.tmpl")
"""Debian's Alertmanager reads its templates from a fixed place."""

MOUNT = 'mount --bind "$1" /usr/share && shift && exec "$@"'


class Alertmanager:
    """Speaks to a running one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def alerts(self) -> list[dict[str, Any]]:
        """Return every alert it knows."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=5) as answer:  # noqa: S310 - ours
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def post(self, *alerts: Mapping[str, str]) -> None:
        """Let alerts with these labels fire."""
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{self.url}/api/v2/alerts",
            data=json.dumps([{"labels": alert} for alert in alerts]).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 - ours

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=5).close()  # noqa: S310 - ours
        except OSError:
            return False
        return True


@contextmanager
def running(program: Path, configuration: Path, folder: Path) -> Iterator[Alertmanager]:
    """Run one with that configuration until the block ends.

    An unpacked one finds its templates in a mount namespace of its own.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command: list[str | Path] = [
        program,
        f"--config.file={configuration}",
        f"--storage.path={folder}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    unpacked = program.parent.parent / "share"
    if not (SHARE / TEMPLATE).exists() and (unpacked / TEMPLATE).exists():
        command = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", unpacked, *command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        manager = Alertmanager(f"http://127.0.0.1:{port}")
        until(lambda: manager.ready() or process.poll() is not None)
        assert process.poll() is None, "Alertmanager did not start"
        yield manager
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
