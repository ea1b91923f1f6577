"""Power rails of ``spbm``: by label file, in watts, and only of that driver."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable, Unsupported
from spark_watch.sources.rails import FLAGS, RailsSource

SYS = Path(__file__).parents[1] / "fixtures" / "sys"


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    """A copy of the GB10's tree that a test may change."""
    return Path(shutil.copytree(SYS / "gb10", tmp_path / "sys"))


def _spbm(sys_root: Path) -> Path:
    return sys_root / "class" / "hwmon" / "hwmon2"


def test_every_rail_and_flag_is_read_by_its_label() -> None:
    """Microwatts become watts under the driver's names; energies and other sensors stay out."""
    source = RailsSource(sys_root=SYS / "gb10")
    rails = source.read()
    source.close()
    assert rails == {
        "sys_total": 151.25,
        "soc_pkg": 118.0,
        "cpu_gpu": 104.5,
        "cpu_p": 21.3,
        "cpu_e": 2.4,
        "vcore": 9.8,
        "dc_input": 156.7,
        "gpu": 78.125,
        "prereg": 96.0,
        "dla": 0.0,
        "pl1": 140.0,
        "pl2": 142.0,
        "syspl1": 231.0,
        "syspl2": 244.0,
        "prochot": 0.0,
        "pl_level": 1.0,
        "tj_max": 84.25,
    }
    assert set(rails) >= FLAGS


def test_without_the_driver_there_are_no_rails(tmp_path: Path) -> None:
    """Other hwmon devices, or none at all, are not taken for it."""
    for root in (SYS / "h200", tmp_path):
        with pytest.raises(Unsupported) as caught:
            RailsSource(sys_root=root).read()
        assert caught.value.reason == "not_found"


def test_a_rail_moves_with_its_label_not_its_number(sys_root: Path) -> None:
    """Where another version numbers the channels differently, the name still finds its value."""
    spbm = _spbm(sys_root)
    (spbm / "power1_label").write_text("gpu\n")
    (spbm / "power8_label").write_text("sys_total\n")
    source = RailsSource(sys_root=sys_root)
    rails = source.read()
    source.close()
    assert (rails["gpu"], rails["sys_total"]) == (151.25, 78.125)


@pytest.mark.parametrize(
    "text", [b"", b"-5\n", b"4294967295000\n", b"12 34\n", b"\x00", b"x\n", b"9" * 400]
)
def test_a_channel_that_reads_nonsense_is_left_out(sys_root: Path, text: bytes) -> None:
    """A negative rail, a register that is not wired up and garbage are absent, not 0."""
    (_spbm(sys_root) / "power1_input").write_bytes(text)
    source = RailsSource(sys_root=sys_root)
    rails = source.read()
    source.close()
    assert "sys_total" not in rails
    assert rails["gpu"] == 78.125


def test_a_junction_at_zero_and_a_rail_named_like_a_flag_are_left_out(sys_root: Path) -> None:
    """0 C is an absent sensor, and a rail must not pass as ``prochot``."""
    spbm = _spbm(sys_root)
    (spbm / "temp1_input").write_text("0\n")
    (spbm / "power1_label").write_text("prochot\n")
    source = RailsSource(sys_root=sys_root)
    rails = source.read()
    source.close()
    assert "tj_max" not in rails
    assert rails["prochot"] == 0.0


def test_a_driver_that_stops_answering_is_unavailable_then_found_anew(sys_root: Path) -> None:
    """After a reload the device may have another number; the next reading looks for it."""
    source = RailsSource(sys_root=sys_root)
    source.read()
    shutil.move(_spbm(sys_root), sys_root / "aside")
    for path in (sys_root / "aside").glob("*"):
        path.write_bytes(b"")
    with pytest.raises(Unavailable) as caught:
        source.read()
    assert caught.value.reason == "malformed"
    with pytest.raises(Unsupported):
        source.read()
    shutil.copytree(
        SYS / "gb10" / "class" / "hwmon" / "hwmon2", _spbm(sys_root).with_name("hwmon9")
    )
    assert source.read()["gpu"] == 78.125
    source.close()


def test_fifos_and_folders_among_the_files_cost_only_themselves(sys_root: Path) -> None:
    """Nothing waits for a FIFO named like a device's name, label or value."""
    spbm = _spbm(sys_root)
    hwmon0 = sys_root / "class" / "hwmon" / "hwmon0" / "name"
    for path in (hwmon0, spbm / "power2_label", spbm / "power3_input"):
        path.unlink()
        os.mkfifo(path)
    (spbm / "power4_input").unlink()
    (spbm / "power4_input").mkdir()
    source = RailsSource(sys_root=sys_root)
    rails = source.read()
    source.close()
    assert {"soc_pkg", "cpu_gpu", "cpu_p"}.isdisjoint(rails)
    assert rails["sys_total"] == 151.25
