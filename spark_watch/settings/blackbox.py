"""Settings of the black box, and where the daemon keeps what outlives it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from spark_watch.settings.frozen import Frozen

NAME: Final = "spark-watch"

SERVICE_STATE: Final = Path("/var/lib") / NAME
"""Where a service keeps its state (Filesystem Hierarchy Standard, 5.8)."""


class BlackBoxSettings(Frozen):
    """How much of the past is kept."""

    max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1024 * 1024,
        le=64 * 1024**3,
        description="What the recording may take on disk; its oldest part goes first. 64 MiB hold "
        "about three days at 1 Hz with eight GPU processes.",
    )


def state_directory(
    state_dir: Path | None, environment: Mapping[str, str], *, is_root: bool
) -> Path:
    """Return the folder in which the daemon keeps what outlives it.

    The setting; else what systemd names in ``STATE_DIRECTORY`` (the first of several); else, as
    root, ``/var/lib/spark-watch``; else the user's own by the XDG base directory specification.
    """
    if state_dir is not None:
        return state_dir
    named = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if named:
        return Path(named)
    if is_root:
        return SERVICE_STATE
    base = Path(environment.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the specification: a relative path is to be ignored
        base = Path(environment.get("HOME", "/")) / ".local" / "state"
    return base / NAME
