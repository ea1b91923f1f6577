"""What every test may ask for, and the rule that a skip is not a pass.

On a developer's machine a test that lacks a server or a recording is skipped and says why. With
``CI=true`` in the environment a skipped ``integration`` test fails instead: there, whatever it
needs was to be had, and a quiet skip would look like a pass.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.stand import nvml_stand

ROOT = Path(__file__).resolve().parent.parent
"""The root of the project's tree."""

SERVERS = ROOT / ".cache" / "servers" / "usr" / "bin"
"""Where ``make test`` unpacks real Prometheus and Alertmanager."""

TRACES = os.environ.pop("SPARK_WATCH_TRACES", None)
"""The folder of recorded traces. It is taken out of the environment because tests start the
product, which refuses a variable of its own prefix that it does not know."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of an integration test into a failure where nothing may be skipped."""
    report = yield
    if (
        report.skipped
        and os.environ.get("CI") == "true"
        and item.get_closest_marker("integration") is not None
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"CI=true allows no skipped integration test: {reason}"
    return report


def _program(name: str) -> Path:
    """Return the program ``name`` from the unpacked servers, else from the machine, else skip."""
    unpacked = SERVERS / name
    if unpacked.exists():
        return unpacked
    installed = shutil.which(name)
    if installed is None:
        pytest.skip(f"no {name} here: `make test` fetches it where the machine has apt")
    return Path(installed)


@pytest.fixture(scope="session")
def _states() -> Iterator[Iterator[Path]]:
    """Folders that do not exist yet, one after another, below one that goes at the end."""
    with tempfile.TemporaryDirectory(prefix="spark-watch-state-") as base:
        yield (Path(base) / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_state(_states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a state directory of its own, so that no recording outlives its test."""
    monkeypatch.setenv("STATE_DIRECTORY", str(next(_states)))


@pytest.fixture(scope="session")
def prometheus() -> Path:
    """A real Prometheus server's program."""
    return _program("prometheus")


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus' own checker of pages, rules and rule tests."""
    return _program("promtool")


@pytest.fixture(scope="session")
def alertmanager() -> Path:
    """A real Alertmanager's program (Debian's name for it)."""
    return _program("prometheus-alertmanager")


@pytest.fixture(scope="session")
def amtool() -> Path:
    """Alertmanager's own checker of configurations and reader of alerts."""
    return _program("amtool")


@pytest.fixture(scope="session")
def recorded_traces() -> Path:
    """The folder of recordings of real machines, which are not part of the project.

    Their licences do not all allow redistribution, so whoever has them names the folder in
    ``SPARK_WATCH_TRACES``; everywhere else their tests are skipped.
    """
    if not TRACES:
        pytest.skip("SPARK_WATCH_TRACES names no folder of recorded traces")
    return Path(TRACES)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in NVML library, built once and loaded ahead of a real one in this process."""
    library = nvml_stand.build(tmp_path_factory.mktemp("nvml"))
    nvml_stand.load(library)
    return library


@pytest.fixture
def gb10(
    nvml_library: Path,  # noqa: ARG001 - asked for, so that the library is loaded
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[nvml_stand.NvmlStand]:
    """A healthy GB10 that NVML shows in this process; nothing is left stalled afterwards."""
    stand = nvml_stand.gb10(tmp_path / "gb10.box")
    monkeypatch.setenv(nvml_stand.VARIABLE, str(stand.path))
    yield stand
    stand.release()


@pytest.fixture
def h200(
    nvml_library: Path,  # noqa: ARG001 - asked for, so that the library is loaded
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[nvml_stand.NvmlStand]:
    """A healthy, idle, discrete H200 that NVML shows in this process."""
    stand = nvml_stand.h200(tmp_path / "h200.box")
    monkeypatch.setenv(nvml_stand.VARIABLE, str(stand.path))
    yield stand
    stand.release()
