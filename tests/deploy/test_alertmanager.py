"""Alertmanager's own tools take the configuration, and a real one silences what it should."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_watch.export.alert_push import alert_name
from tests.conftest import ROOT
from tests.deploy.manager import Alertmanager, running
from tests.waiting import until

pytestmark = pytest.mark.integration

CONFIGURATION = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
HERE = {"instance": "a:9810", "job": "spark-watch"}


def labels(condition: str, severity: str, gotcha: str = "G3", **more: str) -> dict[str, str]:
    """Return the identity of an alert about a condition."""
    return {
        "alertname": alert_name(condition, severity),
        "severity": severity,
        "gotcha": gotcha,
        "condition": condition,
        **HERE,
        **more,
    }


def test_amtool_takes_the_configuration(amtool: Path) -> None:
    """It is valid for the Alertmanager of the distribution."""
    subprocess.run([amtool, "check-config", CONFIGURATION], check=True, capture_output=True)


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_every_severity_has_a_receiver(severity: str, amtool: Path) -> None:
    """Nothing falls through the routes."""
    told = [f"{name}={value}" for name, value in labels("memory_low", severity).items()]
    routed = subprocess.run(
        [amtool, "config", "routes", "test", f"--config.file={CONFIGURATION}", *told],
        check=True,
        capture_output=True,
        text=True,
    )
    assert routed.stdout.strip() == "webhook"


@pytest.fixture(scope="module")
def manager(alertmanager: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """A real Alertmanager with the committed configuration, on loopback."""
    folder = tmp_path_factory.mktemp("alertmanager")
    with running(alertmanager, CONFIGURATION, folder) as manager:
        yield manager


CASES = [
    (
        "critical over its warning",
        labels("board_hot", "critical"),
        labels("board_hot", "warning"),
        1,
    ),
    ("not over another", labels("board_hot", "critical"), labels("gpu_hot", "warning"), 0),
    (
        "collapse over low",
        labels("memory_collapse", "critical"),
        labels("memory_low", "critical"),
        1,
    ),
    ("equal at warning", labels("memory_collapse", "warning"), labels("memory_low", "warning"), 1),
    ("not upwards", labels("memory_collapse", "warning"), labels("memory_low", "critical"), 0),
    (
        "down over a warning",
        {"alertname": "SparkWatchDown", "severity": "warning", **HERE},
        labels("gpu_hot", "warning", "G4"),
        1,
    ),
    (
        "down over stale",
        {"alertname": "SparkWatchDown", "severity": "warning", **HERE},
        {"alertname": "SparkWatchSourceStale", "severity": "warning", "source": "nvml", **HERE},
        1,
    ),
    (
        "down not over the cause",
        {"alertname": "SparkWatchDown", "severity": "warning", **HERE},
        labels("memory_collapse", "critical"),
        0,
    ),
    (
        "lost over down",
        {"alertname": "SparkWatchBoxLost", "severity": "critical", **HERE},
        {"alertname": "SparkWatchDown", "severity": "warning", **HERE},
        1,
    ),
    (
        "another box's",
        labels("board_hot", "critical") | {"instance": "b:9810"},
        labels("board_hot", "warning"),
        0,
    ),
]


@pytest.mark.parametrize(
    ("number", "loud", "quiet", "silenced"),
    [(number, *case[1:]) for number, case in enumerate(CASES)],
    ids=[case[0] for case in CASES],
)
def test_who_silences_whom(
    number: int,
    loud: dict[str, str],
    quiet: dict[str, str],
    silenced: int,
    manager: Alertmanager,
) -> None:
    """The louder alert is active, and the other is silenced by it or is not."""
    job = {"job": f"spark-watch-{number}"}  # each case is a fleet of its own
    manager.post(loud | job, quiet | job)
    wanted = ["active", "suppressed" if silenced else "active"]

    def found() -> list[str]:
        by_name = {
            frozenset(alert["labels"].items()): alert["status"]["state"]
            for alert in manager.alerts()
        }
        return [by_name.get(frozenset((one | job).items()), "") for one in (loud, quiet)]

    until(lambda: "unprocessed" not in found() and "" not in found())
    assert found() == wanted
