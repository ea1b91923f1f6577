"""``/proc/meminfo`` read by whole keys, in bytes, and nothing the text does not hold."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.errors import SourceError, Unavailable
from spark_watch.model import GIB, Memory
from spark_watch.sources.meminfo import MeminfoSource, parse

PROC = Path(__file__).parents[1] / "fixtures" / "proc" / "gb10"
KIB = 1024


def test_a_serving_gb10_is_read_in_bytes() -> None:
    """Sizes are kB times 1024, page counts stay counts, and the driver's share follows."""
    source = MeminfoSource(proc_root=PROC)
    memory = source.read()
    source.close()
    assert memory == Memory(
        total_bytes=127_562_340 * KIB,
        free_bytes=9 * GIB,
        available_bytes=20 * GIB,
        cached_bytes=12 * GIB,
        buffers_bytes=GIB // 4,
        reclaimable_slab_bytes=GIB,
        unreclaimable_slab_bytes=GIB * 3 // 4,
        anonymous_bytes=8 * GIB,
        shared_bytes=GIB // 2,
        locked_bytes=GIB // 16,
        mapped_bytes=2 * GIB,
        dirty_bytes=1536 * KIB,
        page_tables_bytes=GIB // 8,
        kernel_stack_bytes=GIB // 32,
        vmalloc_used_bytes=GIB // 4,
        per_cpu_bytes=20_480 * KIB,
        swap_total_bytes=16_777_212 * KIB,
        swap_free_bytes=16_515_068 * KIB,
        huge_pages_total=4,
        huge_pages_free=3,
        huge_page_bytes=2048 * KIB,
        cma_total_bytes=131_072 * KIB,
        cma_free_bytes=98_304 * KIB,
    )


def test_keys_are_whole() -> None:
    """A key that only contains a known one, or has something before it, is another key."""
    text = b"xMemFree: 1 kB\nMemFreeX: 2 kB\n MemFree: 3 kB\nSwapCached: 4 kB\nMemTotal: 5 kB\n"
    assert parse(text) == Memory(total_bytes=5 * KIB)


def test_only_a_line_that_says_kb_is_multiplied() -> None:
    """Without a unit a number stands as it is; with another unit it is not read."""
    text = b"HugePages_Total: 7\nMemTotal: 9 kB\nMemFree: 9 MB\nCached: 9 kB more\nDirty: 9 KB\n"
    assert parse(text) == Memory(huge_pages_total=7, total_bytes=9 * KIB)


def test_a_garbled_line_costs_its_own_field_only() -> None:
    """Each kind of garbage leaves its field None and its neighbours readable."""
    text = (
        b"MemTotal: 100 kB\nMemFree: -5 kB\nMemAvailable: 12\x0034 kB\nCached:\nBuffers: 1e3 kB\n"
        b"AnonPages: \xd9\xa3 kB\nShmem: 99999999999999999999999 kB\nMapped 4 kB\nDirty: 8 kB\n"
    )
    assert parse(text) == Memory(total_bytes=100 * KIB, dirty_bytes=8 * KIB)


def test_a_number_cut_off_at_the_end_is_not_read() -> None:
    """The last line counts without its newline only if its unit shows that it is whole."""
    assert parse(b"MemTotal: 100 kB\nMemAvailable: 12") == Memory(total_bytes=100 * KIB)
    assert parse(b"MemTotal: 100 kB") == Memory(total_bytes=100 * KIB)


@pytest.mark.parametrize("text", [b"", b"\x00" * 512, b"\n\n", b"MemTotal: kB\n", b"no: 1 kB\n"])
def test_a_text_without_any_known_line_is_malformed(text: bytes) -> None:
    """Where nothing could be read there is no reading, rather than an empty one."""
    with pytest.raises(Unavailable) as caught:
        parse(text)
    assert caught.value.reason == "malformed"


PIECES = st.sampled_from(
    [
        b"MemTotal",
        b"MemAvailable",
        b"HugePages_Total",
        b":",
        b" ",
        b"\n",
        b" kB",
        b"0",
        b"127562340",
    ]
)


@given(st.lists(PIECES | st.binary(max_size=6), max_size=40).map(b"".join))
def test_no_value_is_invented(text: bytes) -> None:
    """Whatever the text, each value is a number of it, as it stands or times 1024."""
    try:
        memory = parse(text)
    except SourceError:
        return
    numbers = {int(word) for word in re.findall(rb"[0-9]+", text)}
    for field in fields(memory):
        value = getattr(memory, field.name)
        assert value is None or value in numbers or (not value % KIB and value // KIB in numbers)
