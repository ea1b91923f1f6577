"""Where the daemon's state lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_watch.settings.blackbox import state_directory

HOME = {"HOME": "/home/user"}


@pytest.mark.parametrize(
    ("setting", "environment", "is_root", "where"),
    [
        (Path("/data"), {"STATE_DIRECTORY": "/var/lib/a"}, True, "/data"),
        (None, {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, True, "/var/lib/a"),
        (None, {"STATE_DIRECTORY": "/var/lib/a", **HOME}, False, "/var/lib/a"),
        (None, HOME, True, "/var/lib/spark-watch"),
        (None, {"XDG_STATE_HOME": "/state", **HOME}, False, "/state/spark-watch"),
        (None, {"XDG_STATE_HOME": "state", **HOME}, False, "/home/user/.local/state/spark-watch"),
        (None, HOME, False, "/home/user/.local/state/spark-watch"),
    ],
    ids=["setting", "systemd", "systemd, no root", "root", "XDG", "relative XDG", "home"],
)
def test_the_state_directory(
    setting: Path | None, environment: dict[str, str], is_root: bool, where: str
) -> None:
    """The setting comes first, then systemd's folder, then the system's or the user's own."""
    assert state_directory(setting, environment, is_root=is_root) == Path(where)
