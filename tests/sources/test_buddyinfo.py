"""``/proc/buddyinfo``: block sizes from the column, counts over zones and nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import SourceError, Unavailable
from spark_watch.sources.buddyinfo import BuddyinfoSource, parse

PROC = Path(__file__).parents[1] / "fixtures" / "proc"
KIB = 1024
MIB = 1024 * KIB


def test_a_gb10_with_blocks_of_32_mib_is_read() -> None:
    """Fourteen columns are sizes from 4 KiB to 32 MiB, each summed over both zones."""
    source = BuddyinfoSource(proc_root=PROC / "gb10", page_bytes=4096)
    blocks = source.read()
    source.close()
    assert list(blocks) == [4 * KIB << order for order in range(14)]
    assert blocks[4 * KIB] == 12 + 4100
    assert blocks[MIB] == 1 + 14
    assert blocks[16 * MIB] == 1 + 0
    assert blocks[32 * MIB] == 20 + 45


def test_a_machine_with_two_nodes_and_eleven_columns_is_read() -> None:
    """Where the largest block is 4 MiB no larger size appears; nodes are added up."""
    source = BuddyinfoSource(proc_root=PROC / "h200", page_bytes=4096)
    blocks = source.read()
    source.close()
    assert max(blocks) == 4 * MIB
    assert blocks[4 * MIB] == 3 + 400 + 30_000 + 20_000


def test_sizes_follow_the_page() -> None:
    """On a kernel with 64 KiB pages the first column is 64 KiB."""
    assert parse(b"Node 0, zone Normal 5 7\n", page_bytes=65_536) == {64 * KIB: 5, 128 * KIB: 7}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"\x00" * 64,
        b"Node 0, zone Normal\n",
        b"Node 0, zone Normal 1 -2\n",
        b"Node 0, zone Normal 1 2x\n",
        b"Node 0, zone Normal 1 2\nNode 0, zone DMA 1 x\n",
        b"Node 0, zone Normal 1 2\nNode 0, zone DMA 1 1",
        b"Node 0, zone Normal " + b"1 " * 33 + b"\n",
        b"Node 0, zone Normal " + b"9" * 21 + b"\n",
        b"Node 0, zone Norm\xffal 1 \xd9\xa3\n",
    ],
)
def test_a_table_that_is_not_whole_is_refused(text: bytes) -> None:
    """One garbled or cut-off line spoils the sum, and too small a sum looks like a fault."""
    with pytest.raises(Unavailable) as caught:
        parse(text, page_bytes=4096)
    assert caught.value.reason == "malformed"


PIECES = st.sampled_from([b"Node 0, zone ", b"DMA", b" 1", b" 20", b" ", b"\n", b"Normal 3 4\n"])


@given(st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join))
def test_counts_never_exceed_what_stands_there(text: bytes) -> None:
    """Whatever the text, sizes are pages doubled and counts are sums of its own numbers."""
    try:
        blocks = parse(text, page_bytes=4096)
    except SourceError:
        return
    words = [int(word) for line in text.split(b"\n") for word in line.split()[4:]]
    assert sum(blocks.values()) == sum(words)
    assert set(blocks) == {4096 << order for order in range(len(blocks))}
