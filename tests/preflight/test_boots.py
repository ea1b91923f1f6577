"""How the last boots ended, from a real ring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_watch.blackbox.ring import FOLDER
from spark_watch.errors import Unavailable
from spark_watch.preflight.boots import WINDOW_SECONDS, Boots, boots
from tests.blackbox.ring.boxes import BOOT, OTHER_BOOT, START, Box, sample


def run(state: Path, boot: str, *, first: float, stopped: bool) -> None:
    """Add a run of the daemon to the ring in a state directory."""
    box = Box(state / FOLDER)
    for second in range(3):
        box.put(sample(first + second, boot=boot))
    if stopped:
        box.put(replace(sample(first + 3, boot=boot), stopped=True), urgent=True)
    box.kill()


def test_a_boot_that_ended_cleanly(tmp_path: Path) -> None:
    """A stop before the restart leaves its mark, wherever in the places the ring lies."""
    run(tmp_path, BOOT, first=0, stopped=True)
    run(tmp_path, OTHER_BOOT, first=100, stopped=False)
    found = boots((tmp_path / "none", tmp_path), boot_id=OTHER_BOOT, now=START + 200)
    assert found == Boots(clean=1)


def test_a_boot_that_did_not(tmp_path: Path) -> None:
    """Without a mark the last sample before the restart is the moment, 2 s after the start."""
    run(tmp_path, BOOT, first=0, stopped=False)
    run(tmp_path, OTHER_BOOT, first=100, stopped=False)
    assert boots((tmp_path,), boot_id=OTHER_BOOT, now=START + 200) == Boots(unclean=(START + 2,))


def test_the_restart_after_the_last_run(tmp_path: Path) -> None:
    """It counts although no daemon has run in this boot; an unknown boot proves none."""
    run(tmp_path, BOOT, first=0, stopped=False)
    assert boots((tmp_path,), boot_id=OTHER_BOOT, now=START + 200).unclean == (START + 2,)
    assert boots((tmp_path,), boot_id=None, now=START + 200) == Boots()


def test_a_daemon_that_was_killed_is_no_restart(tmp_path: Path) -> None:
    """Two runs in one boot say nothing of the machine."""
    run(tmp_path, BOOT, first=0, stopped=False)
    run(tmp_path, BOOT, first=100, stopped=False)
    assert boots((tmp_path,), boot_id=BOOT, now=START + 200) == Boots()


def test_what_is_long_ago(tmp_path: Path) -> None:
    """An end of more than a week ago is left out."""
    run(tmp_path, BOOT, first=0, stopped=False)
    run(tmp_path, OTHER_BOOT, first=100, stopped=False)
    late = START + 3 + WINDOW_SECONDS
    assert boots((tmp_path,), boot_id=OTHER_BOOT, now=late) == Boots()


def test_no_recording(tmp_path: Path) -> None:
    """A machine without one says so."""
    with pytest.raises(Unavailable) as raised:
        boots((tmp_path, tmp_path / "none"), boot_id=BOOT, now=START)
    assert raised.value.reason == "not_found"
