"""Thermal zones by number: absurd or failing ones stay in the list without a temperature."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from spark_watch.errors import Unsupported
from spark_watch.model import Zone
from spark_watch.sources.thermal import _READINGS_PER_SCAN, ThermalSource

SYS = Path(__file__).parents[1] / "fixtures" / "sys"


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    """A copy of the GB10's tree that a test may change."""
    return Path(shutil.copytree(SYS / "gb10", tmp_path / "sys"))


def _zone(sys_root: Path, number: int) -> Path:
    return sys_root / "class" / "thermal" / f"thermal_zone{number}"


def test_the_seven_zones_of_a_gb10_are_read() -> None:
    """Millidegrees become degrees; all seven share a type and are told apart by number."""
    source = ThermalSource(sys_root=SYS / "gb10")
    zones = source.read()
    source.close()
    assert zones == tuple(
        Zone(zone=number, type="acpitz", temperature_celsius=celsius)
        for number, celsius in enumerate((52.4, 61.8, 58.3, 71.25, 66.9, 49.7, 63.1))
    )


def test_a_machine_without_zones_is_unsupported(tmp_path: Path) -> None:
    """Neither an empty folder nor an absent one will ever answer."""
    for root in (SYS / "h200", tmp_path):
        with pytest.raises(Unsupported) as caught:
            ThermalSource(sys_root=root).read()
        assert caught.value.reason == "not_found"


@pytest.mark.parametrize(
    ("text", "celsius"),
    [
        (b"0\n", None),
        (b"-40000\n", None),
        (b"-39999\n", -39.999),
        (b"199999\n", 199.999),
        (b"200000\n", None),
        (b"-274000\n", None),
        (b"", None),
        (b"52400\n52400\n", None),
        (b"52.4\n", None),
        (b"9" * 30, None),
        (b"\x00\x00", None),
        ("٥٢٤٠٠".encode(), None),
    ],
)
def test_nonsense_is_no_temperature(sys_root: Path, text: bytes, celsius: float | None) -> None:
    """A zone that reads nonsense keeps its place and has no temperature; the others have theirs."""
    (_zone(sys_root, 3) / "temp").write_bytes(text)
    source = ThermalSource(sys_root=sys_root)
    zones = source.read()
    source.close()
    assert zones[3] == Zone(zone=3, type="acpitz", temperature_celsius=celsius)
    assert zones[4].temperature_celsius == 66.9


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
def test_a_zone_that_fails_has_no_temperature(sys_root: Path, kind: str) -> None:
    """A zone whose file is missing, a directory or a FIFO costs its own temperature alone."""
    path = _zone(sys_root, 0) / "temp"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    source = ThermalSource(sys_root=sys_root)
    zones = source.read()
    source.close()
    assert zones[0].temperature_celsius is None
    assert len(zones) == 7


def test_a_type_is_reduced_to_a_label(sys_root: Path) -> None:
    """A type that could break a label is reduced; one that cannot be read is ``unknown``."""
    (_zone(sys_root, 0) / "type").write_bytes(b'x86_pkg"temp}\n')
    (_zone(sys_root, 1) / "type").unlink()
    source = ThermalSource(sys_root=sys_root)
    zones = source.read()
    source.close()
    assert [zone.type for zone in zones[:3]] == ["x86_pkgtemp", "unknown", "acpitz"]


def test_a_new_zone_is_seen_after_a_minute_of_readings(sys_root: Path) -> None:
    """The folder is listed again after a fixed number of readings, and zones sort by number."""
    source = ThermalSource(sys_root=sys_root)
    source.read()
    _zone(sys_root, 10).mkdir()
    (_zone(sys_root, 10) / "temp").write_text("30000\n")
    seen = [len(source.read()) for _ in range(_READINGS_PER_SCAN)]
    last = source.read()[-1]
    source.close()
    assert seen == [7] * (_READINGS_PER_SCAN - 1) + [8]
    assert last == Zone(zone=10, type="unknown", temperature_celsius=30.0)


def test_temperatures_follow_the_files(sys_root: Path) -> None:
    """A later reading shows the later temperature."""
    source = ThermalSource(sys_root=sys_root)
    assert source.read()[6].temperature_celsius == 63.1
    (_zone(sys_root, 6) / "temp").write_text("95800\n")
    assert source.read()[6].temperature_celsius == 95.8
    source.close()
