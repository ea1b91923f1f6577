"""``/proc/vmstat``: the wanted counters by whole keys, pages in bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import Vm
from spark_watch.sources.vmstat import VmstatSource, parse

PROC = Path(__file__).parents[1] / "fixtures" / "proc" / "gb10"


def test_a_serving_gb10_is_read() -> None:
    """Swap is in bytes of the given page; reclaims and refaults are sums over their keys."""
    source = VmstatSource(proc_root=PROC, page_bytes=4096)
    vm = source.read()
    source.close()
    assert vm == Vm(
        swapped_in_bytes=640 * 4096,
        swapped_out_bytes=65_536 * 4096,
        major_faults=8421,
        oom_kills=2,
        compaction_stalls=310,
        compaction_failures=45,
        direct_reclaims=17 + 25,
        refaults=1200 + 34_000,
    )


def test_swap_is_in_bytes_of_the_machines_own_page() -> None:
    """On a kernel with 64 KiB pages a swapped page is 64 KiB."""
    assert parse(b"pswpin 3\n", page_bytes=65_536) == Vm(swapped_in_bytes=3 * 65_536)


def test_older_kernels_have_one_refault_counter_and_one_stall_counter() -> None:
    """``workingset_refault`` and plain ``allocstall`` are read where the newer keys are absent."""
    text = b"workingset_refault 7\nallocstall 9\n"
    assert parse(text, page_bytes=4096) == Vm(refaults=7, direct_reclaims=9)


def test_a_sum_with_a_garbled_part_is_not_given() -> None:
    """A partial sum would make a cumulative counter run backwards."""
    text = (
        b"workingset_refault_anon 7\nworkingset_refault_file x\n"
        b"allocstall_normal 1\nallocstall_movable -2\npgmajfault 5\n"
    )
    assert parse(text, page_bytes=4096) == Vm(major_faults=5)


def test_keys_are_whole_and_the_last_line_must_be_whole() -> None:
    """``pswpin`` is not found inside other keys, nor read from a line that was cut off."""
    text = b"thp_pswpin 5\npswpinx 6\noom_kill 1\npswpin 12"
    assert parse(text, page_bytes=4096) == Vm(oom_kills=1)


@pytest.mark.parametrize("text", [b"", b"\x00" * 64, b"nr_free_pages 1\n", b"pswpin -1\n", b"\n"])
def test_a_text_without_any_wanted_counter_is_malformed(text: bytes) -> None:
    """Where nothing could be read there is no reading, rather than an empty one."""
    with pytest.raises(Unavailable) as caught:
        parse(text, page_bytes=4096)
    assert caught.value.reason == "malformed"


PIECES = st.sampled_from(
    [b"pswpin ", b"pgmajfault ", b"allocstall", b"_x ", b"workingset_refault ", b"\n", b"0", b"41"]
)


@given(st.lists(PIECES | st.binary(max_size=6), max_size=40).map(b"".join))
def test_no_value_is_invented(text: bytes) -> None:
    """Whatever the text, each plain counter is a number of it and swap is a multiple of one."""
    try:
        vm = parse(text, page_bytes=4096)
    except SourceError:
        return
    numbers = {int(word) for word in re.findall(rb"[0-9]+", text)}
    assert vm.major_faults is None or vm.major_faults in numbers
    assert vm.refaults is None or vm.refaults in numbers
    assert vm.swapped_in_bytes is None or vm.swapped_in_bytes // 4096 in numbers
    assert vm.direct_reclaims is None or vm.direct_reclaims <= sum(
        int(word) for word in re.findall(rb"[0-9]+", text)
    )
