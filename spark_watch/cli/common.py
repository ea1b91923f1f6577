"""What several commands share: settings flags, verdict lines, verdict exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_watch.model import State
from spark_watch.settings.blackbox import state_directory
from spark_watch.settings.probe import read_probe
from spark_watch.settings.tree import Settings, load

VERDICT_CODES: Final[Mapping[State, int]] = {
    State.OK: 0,
    State.INFO: 0,
    State.WARNING: 1,
    State.CRITICAL: 2,
    State.UNKNOWN: 3,
}
"""Exit codes of the commands that end in a verdict."""


def say(line: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(line + "\n")


def note(line: str) -> None:
    """Write one line to standard error: something to know that is no error."""
    sys.stderr.write(f"spark-watch: {line}\n")


def verdict_line(gotcha: str, condition: str, state: State, sentence: str) -> str:
    """Return the fixed form that other tools read: ``G3 memory_low WARNING: sentence``."""
    return f"{gotcha} {condition} {state.name}: {sentence}"


def settings_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say where settings come from."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings file (default: /etc/spark-watch/spark-watch.toml where it exists)",
    )


def settings_of(options: argparse.Namespace, **flags: object) -> Settings:
    """Read the settings for a command.

    Raises:
        ConfigurationError: one line that names the setting and the place.
    """
    return with_probe(load(options.config, os.environ, flags), os.environ)


def with_probe(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Return the settings with this machine's measured bandwidth, where none is set by hand."""
    ceiling = settings.conditions.bandwidth_ceiling
    if ceiling.probe_bytes_per_second is not None:
        return settings
    folder = state_directory(settings.state_dir, environment, is_root=os.geteuid() == 0)
    found = read_probe(folder)
    if found is None:
        return settings
    measured = {"probe_bytes_per_second": float(found["read_bytes_per_second"])}
    conditions = {"bandwidth_ceiling": ceiling.model_copy(update=measured)}
    return settings.model_copy(
        update={"conditions": settings.conditions.model_copy(update=conditions)}
    )
