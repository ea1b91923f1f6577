"""``spark-watch who``: who holds the pool."""

from __future__ import annotations

import json

import pytest

from spark_watch.cli import main
from spark_watch.cli.who import holders, pool_parts
from spark_watch.model import GIB, Memory, Process

POOL = Memory(
    total_bytes=100 * GIB,
    free_bytes=20 * GIB,
    cached_bytes=8 * GIB,
    buffers_bytes=GIB,
    anonymous_bytes=9 * GIB,
    reclaimable_slab_bytes=GIB,
    page_tables_bytes=GIB,
)
"""40 GiB have a line of their own, so 60 are the driver's."""

LAUNCHER = Process(
    pid=10, kind="launcher", engine="vllm", resident_bytes=2 * GIB, started_seconds=100.0,
    claim_ratio=0.5,
)  # fmt: skip
WORKERS = tuple(
    Process(
        pid=pid, kind="compute", engine="vllm", gpu_bytes=20 * GIB, resident_bytes=GIB,
        started_seconds=130.0, launcher_pid=10, claim_ratio=0.5, container="0123456789ab",
    )
    for pid in (11, 12)
)  # fmt: skip
DESKTOP = Process(pid=5, kind="graphics", name="Xorg", gpu_bytes=GIB // 2, resident_bytes=GIB)
ALL = (DESKTOP, LAUNCHER, *WORKERS)


def test_processes_of_one_engine_are_one_holder() -> None:
    """Its memory is the sum, its claim is one claim, its age the launcher's."""
    engine, desktop = holders(ALL, 100 * GIB, 3700.0)
    assert (engine.who, engine.processes, engine.container) == ("vllm/11", 3, "0123456789ab")
    assert (engine.gpu_bytes, engine.host_bytes) == (40 * GIB, 4 * GIB)
    assert (engine.claim_ratio, engine.age_seconds) == (0.5, 3600.0)
    assert (desktop.who, desktop.claim_ratio, desktop.age_seconds) == ("Xorg/5", None, None)


def test_parts_add_up_to_the_byte() -> None:
    """The driver's remainder is what 60 GiB of driver memory leave beside 40.5 of processes."""
    parts = pool_parts(POOL, holders(ALL, 100 * GIB, None))
    assert sum(part.held_bytes for part in parts) == POOL.total_bytes
    assert parts[0].what == "GPU memory of vllm/11"
    assert parts[2].what.startswith("the driver's remainder")
    assert parts[2].held_bytes == 19.5 * GIB


def test_memory_that_is_counted_twice_still_adds_up() -> None:
    """Where NVML counts what the kernel counts too, the difference is named and negative."""
    greedy = (Process(pid=1, kind="compute", name="job", gpu_bytes=70 * GIB),)
    parts = pool_parts(POOL, holders(greedy, 100 * GIB, None))
    assert sum(part.held_bytes for part in parts) == POOL.total_bytes
    assert [part.held_bytes for part in parts if part.what.startswith("counted twice")] == [
        -10 * GIB
    ]


def test_sizes_that_nobody_says_are_no_zeros() -> None:
    """A process whose size NVML keeps to itself is shown with a question mark."""
    (one,) = holders((Process(pid=1, kind="compute", name="job"),), 100 * GIB, None)
    assert (one.gpu_bytes, one.host_bytes) == (None, None)


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The table names the server, and the last line is the pool."""
    assert main(["who", "--source", "simulate:healthy-decode"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "who", "container", "GPU", "GiB", "host", "GiB", "claim", "capped", "age",
    ]  # fmt: skip
    assert lines[1].startswith("vllm/")
    assert lines[-1].strip() == "121.7 GiB  the pool (MemTotal)"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as one object, whose parts add up."""
    assert main(["who", "--source", "simulate:healthy-decode", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(part["held_bytes"] for part in told["parts"]) == told["pool_bytes"]
    assert told["claims_ratio"] == 0.7
