"""Two files of a process, as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_watch.sources.proc_stat import kibibytes, parse_stat

KIB = 1024


def test_a_name_may_hold_parentheses_and_blanks() -> None:
    """Fields are counted from the last parenthesis."""
    fields = " ".join(str(number) for number in range(4, 30))
    stat = parse_stat(f"7 (a) S 1 (b) c) R {fields}\n".encode())
    assert stat is not None
    assert (stat.comm, stat.state, stat.parent) == (b"a) S 1 (b) c", b"R", 4)
    assert (stat.major_faults, stat.started) == (12, 22)


def test_kibibytes_takes_whole_keys_and_whole_lines_only() -> None:
    """A longer key, a line without its unit and a line without its end are not read."""
    text = b"Name:\tVmRSS: 7 kB\nxVmRSS: 1 kB\nVmRSSx: 2 kB\nVmRSS:\t  3 kB\nVmSwap: 4\nVmHWM: 5 kB"
    assert kibibytes(text, b"VmRSS") == 3 * KIB
    assert kibibytes(text, b"VmSwap") is None
    assert kibibytes(text, b"VmHWM") is None
    assert kibibytes(text, b"VmPTE") is None


PIECES = st.sampled_from(
    [b"1 ", b"(", b")", b"S ", b"99 ", b"-1 ", b"4 5 6 7 8 9 10 11 12 13 14 15 "]
)


@given(st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join))
def test_no_number_of_stat_is_invented(text: bytes) -> None:
    """Whatever the text, each number of the result stands in it as a word."""
    stat = parse_stat(text)
    if stat is not None:
        words = text.rpartition(b")")[2].split()
        for number in (stat.parent, stat.major_faults, stat.started):
            assert number in [int(word) for word in words if word.isdigit()]
