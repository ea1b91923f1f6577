"""``/proc/pressure/memory``: percent becomes a share, microseconds become seconds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import SourceError, Unavailable, Unsupported
from spark_watch.model import Pressure
from spark_watch.sources.pressure import PressureSource, parse

PROC = Path(__file__).parents[1] / "fixtures" / "proc" / "gb10"
SOME = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def test_a_box_under_light_pressure_is_read() -> None:
    """1.25 % is 0.0125, and 7,250,000 microseconds are 7.25 seconds."""
    source = PressureSource(proc_root=PROC)
    pressure = source.read()
    source.close()
    assert pressure == Pressure(
        some_avg10_ratio=0.0125, full_avg10_ratio=0.0075, some_seconds=7.25, full_seconds=3.5
    )


def test_a_kernel_without_pressure_is_unsupported(tmp_path: Path) -> None:
    """Without the file the machine will never answer."""
    with pytest.raises(Unsupported) as caught:
        PressureSource(proc_root=tmp_path).read()
    assert caught.value.reason == "not_found"


def test_pressure_switched_off_at_boot_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there and answers EOPNOTSUPP: the machine will never answer either."""

    def refuse(*_: int) -> bytes:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "pread", refuse)
    with pytest.raises(Unsupported) as caught:
        PressureSource(proc_root=PROC).read()
    assert caught.value.reason == "not_supported"


@pytest.mark.parametrize(
    "line",
    [
        b"full avg10=101.00 avg60=0.00 avg300=0.00 total=1\n",
        b"full avg10=-1.00 avg60=0.00 avg300=0.00 total=1\n",
        b"full avg10=nan avg60=0.00 avg300=0.00 total=1\n",
        b"full avg10=0.00 avg60=0.00 avg300=0.00 total=1" + b"0" * 30 + b"\n",
        b"full avg10=0.00 avg60=0.00 avg300=0.00 total=12",
        b"full avg10=0.00 total=1\n",
        b"\xffull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        b"",
    ],
)
def test_a_garbled_line_costs_its_own_fields_only(line: bytes) -> None:
    """Whatever is wrong with one line, the other is read and the first is None."""
    assert parse(SOME + line) == Pressure(some_avg10_ratio=0.0, some_seconds=0.0)


@pytest.mark.parametrize("text", [b"", b"\x00" * 64, SOME[:-1], SOME.replace(b"some", b"none")])
def test_a_text_without_a_line_is_malformed(text: bytes) -> None:
    """Where neither line can be read there is no reading."""
    with pytest.raises(Unavailable) as caught:
        parse(text)
    assert caught.value.reason == "malformed"


PIECES = st.sampled_from(
    [
        b"some",
        b"full",
        b" avg10=",
        b"12.50",
        b" avg60=0.00 avg300=0.00 total=",
        b"7",
        b"\n",
        b"999.99",
    ]
)


@given(st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join))
def test_shares_stay_shares(text: bytes) -> None:
    """Whatever the text, a share is 0 to 1, a time is not negative, and both come together."""
    try:
        pressure = parse(text)
    except SourceError:
        return
    for share, seconds in (
        (pressure.some_avg10_ratio, pressure.some_seconds),
        (pressure.full_avg10_ratio, pressure.full_seconds),
    ):
        assert (share is None) == (seconds is None)
        assert share is None or 0 <= share <= 1
        assert seconds is None or seconds >= 0
