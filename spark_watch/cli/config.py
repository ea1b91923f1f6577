"""``spark-watch config``: show the settings in force, or check them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from spark_watch.cli.common import say, settings_arguments, settings_of
from spark_watch.settings.tree import DEFAULT_FILE

HELP = "show the settings in force, or check them"
EXAMPLE = "spark-watch config --check --config spark-watch.toml"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--check", action="store_true", help="say only whether they are valid")
    settings_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print every setting as TOML, each with its value in force."""
    settings = settings_of(options)
    place = options.config or (DEFAULT_FILE if DEFAULT_FILE.exists() else "built-in defaults")
    if options.check:
        say(f"{place}: valid")
        return 0
    for line in toml(settings.model_dump(mode="json")):
        say(line)
    return 0


def toml(values: Mapping[str, Any], path: str = "") -> list[str]:
    """Return a settings tree as lines of TOML; what is unset stands as a comment."""
    lines: list[str] = []
    groups = []
    for name, value in values.items():
        if isinstance(value, dict):
            groups.append((f"{path}.{name}" if path else name, value))
        elif value is None:
            lines.append(f"# {name} is not set")
        else:
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    for name, group in groups:
        inner = toml(group, name)
        if any(not line.startswith("[") for line in inner[:1]):
            lines += ["", f"[{name}]"]
        lines += inner
    return lines
