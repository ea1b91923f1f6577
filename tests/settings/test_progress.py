"""Where workloads report, and which engines may be named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from spark_watch.client import VARIABLE
from spark_watch.settings.progress import EnginesSettings, ProgressSettings, socket_path
from spark_watch.settings.tree import Settings, variable_names


@pytest.mark.parametrize(
    ("environment", "is_root", "expected"),
    [
        ({"RUNTIME_DIRECTORY": "/run/spark-watch"}, False, "/run/spark-watch/progress.sock"),
        ({"RUNTIME_DIRECTORY": "/run/a:/run/b"}, False, "/run/a/progress.sock"),
        ({}, True, "/run/spark-watch/progress.sock"),
        ({"XDG_RUNTIME_DIR": "/run/user/7"}, False, "/run/user/7/spark-watch/progress.sock"),
        ({"XDG_RUNTIME_DIR": "user/7"}, False, None),
        ({}, False, None),
    ],
)
def test_place(environment: Mapping[str, str], is_root: bool, expected: str | None) -> None:
    """Systemd's folder, the system's as root, the user's own, or none."""
    found = socket_path(ProgressSettings(), environment, is_root=is_root)
    assert found == (None if expected is None else Path(expected))


def test_setting_wins() -> None:
    """A socket that is set is where it is set."""
    settings = ProgressSettings(socket=Path("/srv/s"))
    assert socket_path(settings, {"RUNTIME_DIRECTORY": "/run/a"}, is_root=True) == Path("/srv/s")


def test_the_client_reads_the_daemon_s_own_variable() -> None:
    """One variable moves both ends of the socket."""
    assert VARIABLE in set(variable_names(Settings))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/metrics",
        "vllm",
        "vllm=https://127.0.0.1:8000/metrics",
        "vllm=file:///etc/passwd",
        "vllm=http:///metrics",
        "none=http://127.0.0.1:8000/metrics",
    ],
)
def test_what_is_no_engine_s_address(url: str) -> None:
    """A name that is not known, or an address that is not plain HTTP, is refused at the start."""
    with pytest.raises(ValidationError):
        EnginesSettings(urls=(url,))
    assert EnginesSettings(urls=("vllm=http://127.0.0.1:8000/metrics",)).urls
