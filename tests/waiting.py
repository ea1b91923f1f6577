"""Waiting for what another thread or process does, as long as it takes and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 20.0
"""After so long it will not come true any more, however busy the machine is."""

T = TypeVar("T")


def until(true: Callable[[], T], patience_seconds: float = PATIENCE_SECONDS) -> T:
    """Return what it returns as soon as that is true; fail where it never is."""
    pause = threading.Event()
    end = time.monotonic() + patience_seconds
    while not (value := true()):
        assert time.monotonic() < end, "it did not come true in time"
        pause.wait(0.005)
    return value
