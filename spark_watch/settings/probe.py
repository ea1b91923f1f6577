"""The stored result of a bandwidth probe: what this machine's memory was measured to give."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

FILE: Final = "bandwidth.json"
LIMIT_BYTES: Final = 65536
MOST: Final = 1e13


def read_probe(folder: Path) -> dict[str, Any] | None:
    """Return the stored result, ``None`` where there is none that can be read and makes sense."""
    try:
        with (folder / FILE).open("rb") as stream:
            found = json.loads(stream.read(LIMIT_BYTES))
        rate = found["read_bytes_per_second"]
        good = type(rate) in {int, float} and math.isfinite(rate) and 0 < rate <= MOST
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if good else None


def write_probe(folder: Path, result: dict[str, Any]) -> Path:
    """Store a result and return its file, which is whole at every moment.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    path = folder / FILE
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(result, indent=1) + "\n")
    fresh.chmod(0o644)
    fresh.replace(path)
    return path
