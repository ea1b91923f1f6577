"""Timelines of ``unclean_reboot``: how the boot before ended, and what stood before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g4_power.unclean_reboot import UncleanReboot
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.model import GIB, Gpu, Memory, Sample, State
from spark_watch.settings.g4_boot import UncleanRebootSettings
from tests.detectors.g3_driver.said import Said
from tests.detectors.timelines import GB10, play, squeeze


def boot(
    boot_id: str | None,
    start: float,
    count: int,
    *,
    interval: float = 1.0,
    stopped: bool = False,
) -> list[Sample]:
    """Return samples of one boot, the last of them of a clean stop or not."""
    return [
        Sample(
            t=1e9 + start + index * interval,
            monotonic_seconds=20.0 + index * interval,
            boottime_seconds=20.0 + index * interval,
            boot_id=boot_id,
            stopped=stopped and index == count - 1,
        )
        for index in range(count)
    ]


def timeline(made: list[Sample], *, interval: float = 1.0) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(
        UncleanReboot(UncleanRebootSettings()),
        made,
        interval_seconds=interval,
        own_recording=True,
    )
    return squeeze(states)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(boot("a", 0, 60), "?60", id="one-boot-says-nothing-of-the-last"),
        pytest.param(
            boot("a", 0, 10, stopped=True) + boot("b", 100, 10), "?10 .10", id="clean-reboot"
        ),
        pytest.param(boot("a", 0, 10) + boot("b", 100, 10), "?10 w10", id="fault"),
        pytest.param(
            boot("a", 0, 10) + boot("b", 100, 10, stopped=True) + boot("c", 200, 10),
            "?10 w20",
            id="a-clean-one-does-not-clear-it",
        ),
        pytest.param(
            boot("a", 0, 10) + boot("b", 100, 10) + boot("c", 200, 10),
            "?10 w10 c10",
            id="twice-is-critical",
        ),
        pytest.param(
            [*boot("a", 0, 10), Sample(t=1e9 + 50), *boot("b", 100, 10)],
            "?11 w10",
            id="boot-id-unread-for-a-moment",
        ),
        pytest.param(boot(None, 0, 10) + boot(None, 100, 10), "?10 w10", id="clock-began-anew"),
        pytest.param([Sample(t=1e9 + i) for i in range(10)], "?10", id="nothing-known"),
    ],
)
def test_timeline(made: list[Sample], expected: str) -> None:
    """The state at every sample is the one worked out beside the boots."""
    assert timeline(made) == expected


def test_killed_daemon_is_no_restart() -> None:
    """Samples of the same boot after a hole without a stop mark: the machine stayed up."""
    made = [sample for sample in boot("a", 0, 1000) if not 1e9 + 100 <= sample.t < 1e9 + 900]
    assert timeline(made) == "?200"
    # and it changes nothing of what is known of the boot before
    made = boot("z", -100, 10, stopped=True) + made
    assert timeline(made) == "?10 .200"


def test_it_stands_for_a_day() -> None:
    """At a sample a minute it is a warning 1440 times; two are critical as long as both stand."""
    made = boot("a", 0, 10, interval=60.0) + boot("b", 3600, 1500, interval=60.0)
    assert timeline(made, interval=60.0) == "?10 w1440 .60"
    # the third boot begins 12 h after the second: both stand for 12 h, the later for 24
    made = boot("a", 0, 10, interval=60.0) + boot("b", 3600, 720, interval=60.0)
    made += boot("c", 3600 + 43_200, 1500, interval=60.0)
    assert timeline(made, interval=60.0) == "?10 w720 c720 w720 .60"


@pytest.mark.parametrize("interval", [0.25, 10.0, 60.0])
def test_interval(interval: float) -> None:
    """It is said at the first sample of the new boot at any interval."""
    made = boot("a", 0, 5, interval=interval) + boot("b", 1000, 5, interval=interval)
    assert timeline(made, interval=interval) == "?5 w5"


def test_acknowledged() -> None:
    """Once somebody has seen it, it is over; the next one counts as the second."""
    judge = Judge(
        [UncleanReboot(UncleanRebootSettings())], Timeline(own_recording=True, machine=GB10)
    )
    states = []
    for sample in boot("a", 0, 3) + boot("b", 100, 3):
        judge.update(sample)
        states.append(judge.states()["unclean_reboot"])
    judge.acknowledge("unclean_reboot")
    for sample in boot("b", 103, 3) + boot("c", 200, 3):
        judge.update(sample)
        states.append(judge.states()["unclean_reboot"])
    unknown, warning, ok, critical = State.UNKNOWN, State.WARNING, State.OK, State.CRITICAL
    assert states == [unknown] * 3 + [warning] * 3 + [ok] * 3 + [critical] * 3


def told(said: dict[float, State], *, gap: float = 60.0) -> str:
    """Return the sentence after a boot of 1000 s in which a condition said what it is told."""
    judge = Judge(
        [Said(said), UncleanReboot(UncleanRebootSettings())],
        Timeline(own_recording=True, machine=GB10),
    )
    events = []
    for sample in boot("a", 0, 1000) + boot("b", 999 + gap, 1):
        events += judge.update(sample)
    return next(
        e.sentence for e in events if e.to_state is State.WARNING and "restart" in e.sentence
    )


def test_what_stood_before_is_told() -> None:
    """Only what stood in the last ten minutes, at warning or above, and never as the cause."""
    assert "before it stood memory_collapse (critical);" in told({995.0: State.CRITICAL})
    assert "before it stood memory_collapse (warning);" in told(
        {100.0: State.WARNING, 450.0: State.OK}
    )
    assert "no precursor recorded;" in told({100.0: State.WARNING, 300.0: State.OK})
    assert "no precursor recorded;" in told({995.0: State.INFO})
    assert "no precursor recorded;" in told({})


def test_a_condition_later_in_the_catalogue_is_told_too() -> None:
    """What stood at the last sample is known whichever condition was judged first."""
    judge = Judge(
        [UncleanReboot(UncleanRebootSettings()), Said({9.0: State.CRITICAL})],
        Timeline(own_recording=True, machine=GB10),
    )
    events = []
    for sample in boot("a", 0, 10) + boot("b", 100, 1):
        events += judge.update(sample)
    sentence = next(event.sentence for event in events if event.to_state is State.WARNING)
    assert "before it stood memory_collapse (critical);" in sentence


def test_what_a_new_boot_says_at_once_is_no_precursor() -> None:
    """A condition that raises at the first sample of the new boot did not stand before it."""
    assert "no precursor recorded;" in told({999.5: State.CRITICAL})
    assert "before it stood memory_collapse (warning);" in told(
        {995.0: State.WARNING, 999.5: State.CRITICAL}
    )


def test_sentence() -> None:
    """Age, what stood, what was seen, and nothing about a cause."""
    made = boot("a", 0, 10)
    made[8] = Sample(
        t=made[8].t,
        monotonic_seconds=made[8].monotonic_seconds,
        boottime_seconds=made[8].boottime_seconds,
        boot_id="a",
        memory=Memory(available_bytes=round(45.5 * GIB)),
        gpus=(Gpu(index=0, temperature_celsius=43.0),),
    )
    _, events = play(
        UncleanReboot(UncleanRebootSettings()), made + boot("b", 309, 3), own_recording=True
    )
    assert events[0].sentence == (
        "The machine restarted without a clean stop, seen 0 s ago; the last sample before was 5 "
        "min old; no precursor recorded; it showed 45.5 GiB available, GPU die 43 C."
    )
    assert "no precursor" not in events[0].remedy


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_only_unclean_stops_raise(stops: list[bool]) -> None:
    """After any row of boots it is ok exactly where every one of them ended in order."""
    made: list[Sample] = []
    for index, clean in enumerate(stops):
        made += boot(f"boot-{index}", 100.0 * index, 5, stopped=clean)
    made += boot("last", 100.0 * len(stops), 3)
    state = timeline(made).split()[-1][0]
    unclean = stops.count(False)
    assert state == (".", "w", "c")[min(unclean, 2)]


def test_a_crash_loop_needs_no_memory() -> None:
    """A thousand restarts are remembered as the last few."""
    rule = UncleanReboot(UncleanRebootSettings())
    made = [sample for index in range(1000) for sample in boot(f"b{index}", 100.0 * index, 2)]
    states, _ = play(rule, made, own_recording=True)
    assert states.endswith("c" * 1000)
    assert len(rule._restarts) == 16
