"""``spark-watch probe bandwidth``: when it refuses, what it prints and what it keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_watch.cli import main, probe
from spark_watch.cli.common import with_probe
from spark_watch.cli.probe import refuse
from spark_watch.detectors.judge import Standing
from spark_watch.errors import UsageError
from spark_watch.export.snapshot import LoopHealth, Snapshot
from spark_watch.model import GIB, Finding, Gpu, Memory, Process, Sample, State
from spark_watch.settings.probe import read_probe
from spark_watch.settings.tree import Settings, load
from spark_watch.sources import bandwidth
from spark_watch.sources.bandwidth import Measured, Probed

IDLE = Sample(
    t=1e9,
    gpus=(Gpu(index=0, utilization_ratio=0.0),),
    memory=Memory(available_bytes=110 * GIB),
    processes=(Process(pid=5, kind="graphics", name="Xorg"),),
)
FOUND = Probed(
    gpu_name="NVIDIA GB10",
    driver_version="580.1",
    clock_hertz=2.4e9,
    rows=(
        Measured(kind="read", size_bytes=4 * GIB, median=231e9, lowest=229e9, highest=232e9),
        Measured(kind="copy", size_bytes=4 * GIB, median=224e9, lowest=220e9, highest=225e9),
    ),
)


def finding(condition: str, state: State) -> Standing:
    """Return a condition that stands at a state."""
    one = Finding(
        at_seconds=1e9,
        since_seconds=1e9,
        gotcha="G3",
        condition=condition,
        subject="host",
        state=state,
        template="It is so.",
    )
    return Standing(one, (one,), None)


def snapshot(sample: Sample, *standings: Standing) -> Snapshot:
    """Return a picture with this sample in it."""
    return Snapshot(
        at_seconds=1e9,
        latest=sample,
        standings=standings,
        measures={},
        marks={},
        identities=(),
        machine=None,
        sources=(),
        loop=LoopHealth(started_seconds=1e9),
        origin="live",
        ready=True,
    )


def test_idle_box_passes() -> None:
    """A desktop, an info and a restart of yesterday are no reason not to measure."""
    refuse(
        snapshot(
            IDLE, finding("bandwidth_ceiling", State.INFO), finding("unclean_reboot", State.WARNING)
        )
    )


@pytest.mark.parametrize(
    ("sample", "standings", "why"),
    [
        (IDLE, (finding("memory_low", State.WARNING),), "memory_low stands at warning: It is so."),
        (replace(IDLE, gpus=None), (), "NVML answers nothing"),
        (replace(IDLE, processes=None), (), "cannot be listed"),
        (
            replace(IDLE, processes=(Process(pid=7, kind="compute", engine="vllm"),)),
            (),
            "in use by vllm/7",
        ),
        (replace(IDLE, gpus=(Gpu(index=0, utilization_ratio=0.9),)), (), "the GPU is busy"),
        (replace(IDLE, memory=Memory(available_bytes=20 * GIB)), (), "20.0 GiB"),
        (replace(IDLE, memory=None), (), "available memory is unknown"),
    ],
)
def test_refuses(sample: Sample, standings: tuple[Standing, ...], why: str) -> None:
    """A box that is not idle, or of which nobody knows, is left alone, and the reason is said."""
    with pytest.raises(UsageError, match=why):
        refuse(snapshot(sample, *standings))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An idle box with a GPU that was measured; return the folder for its state."""
    monkeypatch.setattr(probe, "look", lambda *_, **__: snapshot(IDLE))
    monkeypatch.setattr(bandwidth, "probe", lambda _: FOUND)
    monkeypatch.setenv("SPARK_WATCH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SPARK_WATCH_LISTEN", "127.0.0.1:1")
    return tmp_path / "state"


def test_result(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed with its counting rule and kept with date, driver and clock."""
    assert main(["probe", "bandwidth"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "NVIDIA GB10, driver 580.1, SM clock 2400 MHz"
    assert "a copy 2 N" in lines[1]
    assert lines[2] == "read   4096 MiB     231.0 GB/s  (229.0 to 232.0)"
    kept = json.loads((measured / "bandwidth.json").read_text())
    assert kept["read_bytes_per_second"] == 231e9
    assert (kept["driver_version"], kept["clock_hertz"]) == ("580.1", 2.4e9)
    assert kept["date"].endswith("+00:00")


def test_it_is_used_as_the_baseline(measured: Path) -> None:
    """The stored read is this machine's ceiling from then on, unless one is set by hand."""
    main(["probe", "bandwidth"])
    settings = Settings(state_dir=measured)
    known = with_probe(settings, {}).conditions.bandwidth_ceiling
    assert known.probe_bytes_per_second == 231e9
    by_hand = load(
        None,
        {"SPARK_WATCH_CONDITIONS__BANDWIDTH_CEILING__PROBE_BYTES_PER_SECOND": "2e11"},
        {"state_dir": measured},
    )
    assert with_probe(by_hand, {}) == by_hand


def test_nothing_is_kept_where_nothing_should_be(measured: Path) -> None:
    """``--no-store`` prints alone."""
    assert main(["probe", "bandwidth", "--no-store"]) == 0
    assert not measured.exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"read_bytes_per_second": "fast"}', '{"read_bytes_per_second": -1}',
        '{"read_bytes_per_second": NaN}', '{"read_bytes_per_second": true}', "\0" * 100, "[" * 9999,
    ],
)  # fmt: skip
def test_a_broken_file_is_no_result(text: str, tmp_path: Path) -> None:
    """A file that holds no believable number is passed over."""
    (tmp_path / "bandwidth.json").write_text(text)
    assert read_probe(tmp_path) is None
