"""Timelines of ``pool_overcommitted``: who shares the pool with whom, and what they claim of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g6_contention.pool_overcommitted import PoolOvercommitted
from spark_watch.model import GIB, Failure, Machine, Process, Sample
from spark_watch.settings.g6 import PoolOvercommittedSettings
from tests.detectors.g6.rows import launcher, listing, process
from tests.detectors.timelines import GB10, play, squeeze

Rows = tuple[Process, ...]

SERVER: Rows = (
    launcher(10, engine="vllm", claim_ratio=0.6),
    process(11, 70.0, engine="vllm", launcher_pid=10),
)
CAPPED: Rows = (
    launcher(10, engine="vllm", claim_ratio=0.5),
    process(11, 57.0, engine="vllm", launcher_pid=10),
)
SECOND: Rows = (
    launcher(20, engine="sglang", claim_ratio=0.5),
    process(21, 40.0, engine="sglang", launcher_pid=20),
)
THIRD: Rows = (
    launcher(20, engine="sglang", claim_ratio=0.35),
    process(21, 40.0, engine="sglang", launcher_pid=20),
)
SMALL_SERVER: Rows = (process(51, 2.0, engine="sglang"),)
SMALL: Rows = (process(31, 2.0),)
HEAVY: Rows = (process(31, 5.0),)
DESKTOP: Rows = (
    process(41, 0.1, kind="graphics", name="Xorg"),
    process(42, 9.0, kind="graphics", name="gnome-shell"),
)


def timeline(
    parts: list[tuple[int, Rows | None]],
    *,
    available_gib: float = 60.0,
    interval: float = 1.0,
    machine: Machine = GB10,
) -> str:
    """Play lists of processes, each for so many samples, and return the squeezed timeline."""
    made: list[Sample] = []
    for count, rows in parts:
        for _ in range(count):
            second = len(made) * interval
            if rows is None:
                failed = (Failure(source="processes", reason="permission_denied"),)
                made.append(listing(second, None, available_gib=available_gib, failed=failed))
            else:
                made.append(listing(second, rows, available_gib=available_gib))
    states, _ = play(
        PoolOvercommitted(PoolOvercommittedSettings()),
        made,
        interval_seconds=interval,
        machine=machine,
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([(20, SERVER)], ".20", id="one-server-alone"),
        pytest.param([(20, ())], ".20", id="nobody"),
        pytest.param([(20, SERVER + DESKTOP)], ".20", id="a-desktop-is-no-other"),
        pytest.param([(5, SERVER), (20, SERVER + SECOND)], ".10 w15", id="fault"),
        pytest.param([(5, SERVER), (5, SERVER + SECOND), (5, SERVER)], ".15", id="one-tick-short"),
        pytest.param(
            [(5, SERVER), (3, SERVER + SECOND), (1, SERVER), (4, SERVER + SECOND)],
            ".13",
            id="dip",
        ),
        pytest.param([(5, SERVER), (9, SERVER + SECOND), (3, SECOND)], ".10 w4 .3", id="one-stops"),
        pytest.param([(5, SERVER), (10, SERVER + THIRD)], ".10 i5", id="above-0.9-is-info"),
        pytest.param([(9, CAPPED + SMALL)], ".9", id="small-job-beside-a-capped-server"),
        pytest.param([(5, CAPPED), (9, CAPPED + HEAVY)], ".10 i4", id="heavy-job-beside-it"),
        pytest.param([(5, SERVER), (9, SERVER + SMALL)], ".10 i4", id="small-job-beside-a-big-one"),
        pytest.param([(9, (*SMALL, process(32, 3.9)))], ".9", id="two-small-jobs"),
        pytest.param([(9, SERVER + SECOND)], "?5 w4", id="warm-up"),
        pytest.param([(9, SERVER + SECOND), (40, None)], "?5 w34 ?10", id="lost-reading"),
        pytest.param(
            [(5, SERVER), (9, (*SERVER, process(31)))], ".5 ?5 i4", id="size-unknown-there"
        ),
        pytest.param([(9, (*CAPPED, process(31)))], "?9", id="size-unknown"),
    ],
)
def test_timeline(parts: list[tuple[int, Rows | None]], expected: str) -> None:
    """The state at every second is the one worked out beside the lists."""
    assert timeline(parts) == expected


def test_little_memory_makes_a_heavy_neighbour_a_warning() -> None:
    """Below 16 GiB it is a warning, which is left at 18 and not between the two."""
    rows = CAPPED + HEAVY
    made = [listing(second, CAPPED) for second in range(5)]
    for available in (40.0, 15.9, 17.0, 18.1):
        start = len(made)
        made += [listing(start + second, rows, available_gib=available) for second in range(10)]
    states, _ = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    # info after 5 s, warning 5 s after the fall below 16, kept at 17, gone at 18
    assert squeeze(states) == ".10 i10 w15 i10"


def test_heavy_is_left_below_its_own_level() -> None:
    """A job that was heavy stays so down to 3 GiB."""
    sizes = [5.0] * 8 + [3.5] * 5 + [2.9] * 5
    made = [listing(0.0, CAPPED)]
    made += [listing(1.0 + second, (*CAPPED, process(31, gib))) for second, gib in enumerate(sizes)]
    states, _ = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    assert squeeze(states) == ".6 i8 .5"


WORKERS = {
    "same-launcher": (
        launcher(10, claim_ratio=0.9),
        process(11, 50.0, launcher_pid=10),
        process(12, 50.0, launcher_pid=10),
    ),
    "launched-by-the-engine": (
        launcher(10, claim_ratio=0.9),
        process(11, 50.0, launcher_pid=10),
        process(12, 50.0, launcher_pid=11),
    ),
    "claims-repeated": (
        launcher(10, claim_ratio=0.9),
        process(11, 50.0, launcher_pid=10, claim_ratio=0.9),
        process(12, 50.0, launcher_pid=10, claim_ratio=0.9),
    ),
    "same-container": (
        process(11, 50.0, container="0123456789ab"),
        process(12, 50.0, container="0123456789ab"),
    ),
    "orphan-in-the-container": (
        process(11, 50.0, container="0123456789ab"),
        launcher(12, container="0123456789ab"),
        process(13, 50.0, container="0123456789ab", launcher_pid=12),
    ),
    "launcher-not-listed": (
        process(11, 50.0, launcher_pid=10),
        process(12, 50.0, launcher_pid=10),
    ),
    "pid-order": (
        process(9, 50.0, launcher_pid=300),
        launcher(300, launcher_pid=12),
        process(12, 50.0),
    ),
}


@pytest.mark.parametrize("rows", WORKERS.values(), ids=WORKERS)
def test_own_workers_are_no_others(rows: Rows) -> None:
    """Processes of one engine are one, however they belong together."""
    assert timeline([(12, rows)], available_gib=5.0) == ".12"


def test_a_claim_repeated_by_workers_counts_once() -> None:
    """Two engines of 0.4 each claim 0.8, however many workers say so."""
    rows = tuple(
        process(pid + worker, 1.0, launcher_pid=pid, claim_ratio=0.4)
        for pid in (10, 20)
        for worker in (1, 2)
    )
    assert timeline([(9, rows)]) == ".9"


def test_two_servers_in_one_container_are_two() -> None:
    """Each with its own launcher they have nothing in common but the box they came in."""
    rows = tuple(
        entry
        for pid in (10, 20)
        for entry in (
            launcher(pid, container="0123456789ab", claim_ratio=0.6),
            process(pid + 1, 50.0, container="0123456789ab", launcher_pid=pid),
        )
    )
    assert timeline([(9, rows)]) == "?5 w4"


def test_claim_in_bytes_is_a_share_of_the_pool() -> None:
    """Two sizes of 64 GiB are more than 121.7, and a size overrides the fraction beside it."""
    rows = (
        process(11, 10.0, claim_bytes=64 * GIB, claim_ratio=0.1),
        process(12, 10.0, claim_bytes=64 * GIB, claim_ratio=0.1),
    )
    assert timeline([(9, rows)]) == "?5 w4"
    # the sizes are of caches: what is held beyond them is taken as well
    rows = (process(11, 80.0, claim_bytes=GIB), process(12, 45.0, claim_bytes=GIB))
    assert timeline([(9, rows)]) == "?5 w4"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # the hold of 5 s
        pytest.param(0.25, ".21 w19", id="quarter-second"),
        # three samples
        pytest.param(10.0, ".3 w37", id="ten-seconds"),
        pytest.param(60.0, ".3 w37", id="a-minute"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """The hold counts seconds, and no fewer than three samples."""
    parts: list[tuple[int, Rows | None]] = [(1, SERVER), (39, SERVER + SECOND)]
    assert timeline(parts, interval=interval) == expected


def test_long_gap_starts_the_hold_anew() -> None:
    """Nobody saw whether both were there in a hole of a minute."""
    made = [listing(float(second), SERVER) for second in range(3)]
    made += [listing(3.0 + second, SERVER + SECOND) for second in range(4)]
    made += [listing(70.0 + second, SERVER + SECOND) for second in range(8)]
    states, _ = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    assert squeeze(states) == ".12 w3"


def test_restart_of_a_server_beside_itself() -> None:
    """The old engine and the new one overlap for four seconds: no alarm for a restart."""
    new = (
        launcher(50, engine="vllm", claim_ratio=0.6),
        process(51, 1.0, engine="vllm", launcher_pid=50),
    )
    assert timeline([(5, SERVER), (4, SERVER + new), (5, new)]) == ".14"


def test_hidden_processes_are_not_none() -> None:
    """An empty list while the driver holds 80 GiB means that they cannot be seen."""
    made = [listing(float(second), (), residual_gib=80.0) for second in range(5)]
    states, events = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    assert squeeze(states) == "?5"
    assert not events


def test_other_machine_is_not_judged() -> None:
    """Where the GPU has memory of its own a claim is no share of this pool."""
    assert timeline([(9, SERVER + SECOND)], machine=Machine(gpu_name="NVIDIA H200")) == "?9"


def test_sentences() -> None:
    """Who, how much, of what, and what does not help."""
    made = [listing(float(second), SERVER + SECOND) for second in range(6)]
    _, events = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    assert events[0].subject == "vllm/11"
    assert events[0].sentence == (
        "2 engines claim 1.10 of the pool (level 1.00): vllm/11 0.60, sglang/21 0.50."
    )
    assert "no hard cap" in events[0].remedy
    big = (launcher(10, claim_ratio=0.9), process(11, 105.0, engine="vllm", launcher_pid=10))
    made = [listing(float(second), big + SMALL, available_gib=9.0) for second in range(6)]
    _, events = play(PoolOvercommitted(PoolOvercommittedSettings()), made)
    assert events[0].sentence == (
        "vllm/11 holds 105.0 GiB of GPU memory with a claim of 0.90 of the pool, near its "
        "capacity, beside python3/31 (2.0 GiB); 9.0 GiB are available."
    )


@given(
    st.floats(min_value=0.0, max_value=120.0),
    st.floats(min_value=0.0, max_value=120.0),
    st.booleans(),
)
def test_one_engine_never_fires(gib: float, available: float, claimed: bool) -> None:
    """Alone on the pool nothing is overcommitted, whatever it holds or claims."""
    rows = (process(11, gib, claim_ratio=0.99 if claimed else None),)
    assert timeline([(20, rows)], available_gib=available) == ".20"


@given(
    st.lists(st.floats(min_value=0.01, max_value=1.0), min_size=2, max_size=5),
    st.floats(min_value=0.2, max_value=1.5),
)
def test_looser_level_fires_no_later(claims: list[float], level: float) -> None:
    """A lower level for the sum of claims never leaves out what a higher one says."""
    rows = tuple(process(10 + index, 1.0, claim_ratio=claim) for index, claim in enumerate(claims))
    made = [listing(float(second), rows) for second in range(10)]
    found = [
        play(
            PoolOvercommitted(
                PoolOvercommittedSettings(warning_claims_ratio=one, info_claims_ratio=0.1)
            ),
            made,
        )[0]
        for one in (level, level + 0.2)
    ]
    assert found[0].count("w") >= found[1].count("w")


def loop(*, beside: bool, life: int = 40, rest: int = 20, count: int = 4) -> list[Sample]:
    """Return a small vLLM that starts again and again, each time under another pid."""
    samples = []
    for start in range(count):
        for second in range(life + rest):
            rows: Rows = SMALL_SERVER if beside else ()
            if second < life:
                rows = (*rows, process(100 + start, 1.0, engine="vllm"))
            samples.append(listing(start * (life + rest) + second, rows))
    return samples


def test_restarts_beside_another_are_information() -> None:
    """Lives of 40 s, one a minute, beside a server. The first was there before the watch, so nobody
    knows its age; the others end at 100, 160 and 220 s.
    """
    timeline, events = play(PoolOvercommitted(PoolOvercommittedSettings()), loop(beside=True))
    assert squeeze(timeline).endswith(" i20")
    assert events[-1].sentence == (
        "vllm has ended 3 times within 300 s of its start in the last 15 min, beside sglang/51: it "
        "may find too little memory."
    )


def test_restarts_alone_are_none_of_ours() -> None:
    """Alone there was room, and long lives are no failed starts."""
    rule = PoolOvercommitted(PoolOvercommittedSettings())
    assert "i" not in play(rule, loop(beside=False))[0]
    rule = PoolOvercommitted(PoolOvercommittedSettings(short_life_seconds=30.0))
    assert "i" not in play(rule, loop(beside=True))[0]


def test_a_week_of_comers_and_goers_leaves_nothing_behind() -> None:
    """Ten thousand processes, one after the other, are not remembered."""
    rule = PoolOvercommitted(PoolOvercommittedSettings())
    made = [listing(60.0 * index, (*CAPPED, process(100 + index, 6.0))) for index in range(10_000)]
    states, _ = play(rule, made, interval_seconds=60.0)
    assert states.endswith("i" * 9_990)
    assert len(vars(rule)) == 8
    assert (len(rule._restarts._born), len(rule._restarts._ends)) == (1, 0)
