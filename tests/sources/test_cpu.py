"""CPU load between two readings, worked out by hand, and nothing from one reading alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import Cpu
from spark_watch.sources.cpu import CpuSource

FIXTURES = Path(__file__).parents[1] / "fixtures"
SYS = FIXTURES / "sys" / "gb10"


@pytest.fixture
def proc_root(tmp_path: Path) -> Path:
    """A copy of the GB10's tree that a test may change."""
    return Path(shutil.copytree(FIXTURES / "proc" / "gb10", tmp_path / "proc"))


def _stat(*cores: tuple[int, ...]) -> str:
    """The text of ``stat`` for cores of (user, system, idle, iowait), in hundredths of a second."""
    lines = ["cpu  1 2 3 4 5 6 7 8 9 10\n"]
    for number, (user, system, idle, iowait) in enumerate(cores):
        lines.append(f"cpu{number} {user} 0 {system} {idle} {iowait} 0 0 0 0 0\n")
    return "".join(lines)


def test_the_first_reading_has_no_load_but_a_clock(proc_root: Path) -> None:
    """One reading of cumulative times says nothing of now; clock and load average do."""
    source = CpuSource(proc_root=proc_root, sys_root=SYS)
    cpu = source.read()
    source.close()
    assert cpu == Cpu(max_hertz=3.9e9, load1=3.42)


def test_load_is_what_was_not_idle_between_two_readings(proc_root: Path) -> None:
    """A core busy 25 of 100 and one busy 75 of 100 are half busy, the busiest three quarters."""
    stat = proc_root / "stat"
    source = CpuSource(proc_root=proc_root, sys_root=SYS)
    stat.write_text(_stat((100, 0, 900, 0), (100, 0, 900, 0)))
    source.read()
    stat.write_text(_stat((120, 5, 965, 10), (160, 15, 915, 10)))
    cpu = source.read()
    source.close()
    assert cpu.busy_ratio == pytest.approx(0.5)
    assert cpu.busiest_core_ratio == pytest.approx(0.75)


def test_no_load_without_time_or_with_other_cores(proc_root: Path) -> None:
    """Where time stood still, or a core came, the shares are absent and then come back."""
    stat = proc_root / "stat"
    source = CpuSource(proc_root=proc_root, sys_root=SYS)
    stat.write_text(_stat((100, 0, 900, 0)))
    source.read()
    still = source.read()
    stat.write_text(_stat((150, 0, 950, 0), (1, 0, 1, 0)))
    more = source.read()
    stat.write_text(_stat((250, 0, 950, 0), (1, 0, 101, 0)))
    again = source.read()
    source.close()
    assert (still.busy_ratio, still.busiest_core_ratio) == (None, None)
    assert (more.busy_ratio, more.busiest_core_ratio) == (None, None)
    assert again.busy_ratio == pytest.approx(0.5)
    assert again.busiest_core_ratio == pytest.approx(1.0)


def test_waiting_that_runs_backwards_keeps_shares_within_bounds(proc_root: Path) -> None:
    """The kernel may take back waiting for I/O; a share stays within 0 and 1."""
    stat = proc_root / "stat"
    source = CpuSource(proc_root=proc_root, sys_root=SYS)
    stat.write_text(_stat((100, 0, 900, 50)))
    source.read()
    stat.write_text(_stat((200, 0, 900, 0)))
    cpu = source.read()
    source.close()
    assert cpu.busy_ratio == 1.0


def test_clock_and_load_average_are_absent_where_they_cannot_be_read(
    proc_root: Path, tmp_path: Path
) -> None:
    """A virtual machine has no cpufreq; a garbled load average costs itself alone."""
    (proc_root / "loadavg").write_bytes(b"nan nan\n")
    source = CpuSource(proc_root=proc_root, sys_root=tmp_path)
    assert source.read() == Cpu()
    (proc_root / "loadavg").unlink()
    assert source.read() == Cpu()
    source.close()


def test_the_clock_is_that_of_the_fastest_core_that_says(proc_root: Path, tmp_path: Path) -> None:
    """A later reading shows a later clock; one that cannot be read leaves the others to speak."""
    policies = tmp_path / "sys" / "devices" / "system" / "cpu" / "cpufreq"
    for number, kilohertz in enumerate(("1000000\n", "2000000\n")):
        (policies / f"policy{number}").mkdir(parents=True)
        (policies / f"policy{number}" / "scaling_cur_freq").write_text(kilohertz)
    (policies / "policy2").mkdir()
    (policies / "boost").write_text("1\n")
    source = CpuSource(proc_root=proc_root, sys_root=tmp_path / "sys")
    assert source.read().max_hertz == 2e9
    (policies / "policy1" / "scaling_cur_freq").write_text("<unknown>\n")
    assert source.read().max_hertz == 1e9
    (policies / "policy0" / "scaling_cur_freq").write_text("0\n")
    assert source.read().max_hertz is None
    source.close()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00" * 100,
        b"cpu 1 2 3\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 x 5 6 7 8 9 10\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 nan 2 3 4 5 6 7 8 9 10\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 inf 5 6 7 8 9 10\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 -9 2 3 -4 5 6 7 8 9 10\n",
        b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 \xff\xfe\n",
    ],
)
def test_core_times_that_make_no_sense_are_malformed(proc_root: Path, text: bytes) -> None:
    """Garbage is an error; the load after it is that since the last reading that succeeded."""
    source = CpuSource(proc_root=proc_root, sys_root=SYS)
    (proc_root / "stat").write_text(_stat((100, 0, 900, 0)))
    source.read()
    (proc_root / "stat").write_bytes(text)
    with pytest.raises(Unavailable) as caught:
        source.read()
    assert caught.value.reason == "malformed"
    (proc_root / "stat").write_text(_stat((150, 0, 1050, 0)))
    assert source.read().busy_ratio == pytest.approx(0.25)
    source.close()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("missing", "not_found"), ("directory", "not_a_file"), ("fifo", "not_a_file")],
)
def test_what_is_no_file_is_an_error_without_waiting(
    proc_root: Path, kind: str, reason: str
) -> None:
    """A missing file, a directory and a FIFO are errors at once."""
    path = proc_root / "stat"
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(Unavailable) as caught:
        CpuSource(proc_root=proc_root, sys_root=SYS).read()
    assert caught.value.reason == reason


PIECES = st.sampled_from([b"cpu", b"cpu0 ", b"1 ", b"2 3 4 5 6 7 8 9 10", b"\n", b"1e400 ", b"-1 "])


@given(
    first=st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join),
    second=st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join),
)
def test_shares_stay_shares(
    tmp_path_factory: pytest.TempPathFactory, first: bytes, second: bytes
) -> None:
    """Whatever two readings hold, a share is absent or 0 to 1."""
    root = tmp_path_factory.mktemp("proc")
    source = CpuSource(proc_root=root, sys_root=root)
    for text in (first, second):
        (root / "stat").write_bytes(text)
        try:
            cpu = source.read()
        except SourceError:
            continue
        assert cpu.busy_ratio is None or 0 <= cpu.busy_ratio <= 1
        assert cpu.busiest_core_ratio is None or 0 <= cpu.busiest_core_ratio <= 1
    source.close()
