"""Timelines of ``bandwidth_degraded``: the same work, well below its own speed."""

from __future__ import annotations

import pytest

from spark_watch.detectors.g5_bandwidth.bandwidth_degraded import KINDS, BandwidthDegraded
from spark_watch.detectors.g5_bandwidth.own_speed import MOST_READINGS
from spark_watch.model import Progress, Sample
from spark_watch.settings.g5 import BandwidthDegradedSettings
from tests.detectors.g10.reports import at, loop, server
from tests.detectors.timelines import play, squeeze


def rule() -> BandwidthDegraded:
    """Return the condition with its defaults."""
    return BandwidthDegraded(BandwidthDegradedSettings())


def states(samples: list[Sample], interval: float = 1.0) -> str:
    """Return the timeline, runs of one state written together."""
    return squeeze(play(rule(), samples, interval_seconds=interval)[0])


def steps(
    *stretches: tuple[int, float, float, float],
    interval: float = 10.0,
    batch: float | None = 8,
) -> list[Sample]:
    """Return a loop that reports every ten seconds.

    Args:
        stretches: how many reports, seconds a step, watts and megahertz.
        interval: seconds between two reports.
        batch: the batch it names.
    """
    samples = []
    done = 0.0
    second = 0.0
    for count, step_seconds, watts, mhz in stretches:
        for _ in range(count):
            done += interval / step_seconds
            report = loop(float(int(done)), step_seconds, batch=batch)
            samples.append(at(second, report, watts=watts, mhz=mhz))
            second += interval
    return samples


FAST = (60, 0.063, 36.0, 2400.0)
SLOW = (60, 0.094, 19.0, 2400.0)


def test_constant_speed() -> None:
    """Learnt after 300 s of the first difference between two reports, and fine from then on."""
    assert states(steps(FAST)) == "?31 .29"


def test_fault_at_the_same_batch() -> None:
    """63 ms a step become 94 with half the power: the median of five turns at the third slow one.

    The 61st report is the first slow one, the 63rd makes the median slow, and 120 s later it is a
    warning: 12 reports, the 75th.
    """
    timeline = states(steps(FAST, SLOW))
    assert timeline == "?31 .43 w46"


def test_it_recovers() -> None:
    """Fast again for 120 s, it is over."""
    timeline = states(steps(FAST, SLOW, FAST))
    assert timeline == "?31 .43 w60 .46"


def test_same_batch_proves_it_without_a_fall_of_power() -> None:
    """The loop itself says that its work is the same."""
    assert states(steps(FAST, (60, 0.094, 36.0, 2400.0))) == "?31 .43 w46"


def test_unnamed_work_at_the_same_power_is_information() -> None:
    """Longer sequences take longer at the same power: nothing says that this is the same work."""
    timeline = states(steps(FAST, (60, 0.094, 36.0, 2400.0), batch=None))
    assert timeline == "?31 .43 i46"


def test_unnamed_work_at_half_the_power() -> None:
    """Slow memory draws less: with the fall of power it is a warning."""
    assert states(steps(FAST, SLOW, batch=None)) == "?31 .43 w46"


def test_low_clock_explains_it() -> None:
    """A GPU at 1.6 GHz is slower for a reason that another rule names."""
    timeline, events = play(rule(), steps(FAST, (60, 0.094, 25.0, 1600.0)), interval_seconds=10.0)
    assert squeeze(timeline) == "?31 .43 i46"
    assert events[-1].sentence.endswith("; the clock explains it: 1600 MHz after 2400.")


def test_bigger_steps_are_other_work() -> None:
    """Steps of half as many bytes again take half as long again: not slower at the same work."""
    samples = []
    done, moved = 0, 0.0
    for n in range(120):
        step_seconds, size = (0.05, 1.0e10) if n < 60 else (0.08, 1.6e10)
        count = round(10 / step_seconds)
        done += count
        moved += count * size
        report = loop(done, step_seconds, batch=8, bytes_total=moved)
        samples.append(at(10 * n, report, watts=36.0))
    timeline, events = play(rule(), samples, interval_seconds=10.0)
    assert squeeze(timeline) == "?31 .43 i46"
    assert events[-1].sentence.endswith("; a step has 1.6 times as much in it.")


def test_another_batch_is_other_work() -> None:
    """A larger batch takes longer a step and is learnt anew."""
    samples = steps(FAST)
    samples += [at(600 + 10 * n, loop(1e5 + 100 * n, 0.1, batch=16), watts=36.0) for n in range(60)]
    assert states(samples) == "?31 .29 ?30 .30"


def test_slow_first_step() -> None:
    """The first step of a run is 12 % slower, which is nothing."""
    samples = [at(0, loop(1, 37.4), watts=80.0)]
    samples += [at(37.4 + 33.5 * n, loop(2 + n, 33.5), watts=80.0) for n in range(60)]
    assert set(states(samples, 33.5)) <= set("?. 0123456789")


def test_checkpoints_are_pauses() -> None:
    """Every 300 s no step comes for 30 s."""
    samples = []
    done = 0.0
    for n in range(2000):
        if n % 330 < 300:
            done += 2.0
        samples.append(at(n, loop(done, 0.5, batch=4), watts=85.0))
    timeline, _ = play(rule(), samples)
    assert set(timeline) == {"?", "."}
    assert "?" not in timeline[400:]


def test_restart_of_the_loop_forgets() -> None:
    """A new run under the same name may do other work: its speed is learnt anew."""
    samples = steps(FAST)
    samples += [at(600 + 10 * n, loop(100.0 * n, 0.1, batch=8), watts=36.0) for n in range(60)]
    assert states(samples) == "?31 .29 ?31 .29"


def tokens(
    *stretches: tuple[int, float, float, float], interval: float = 10.0, mhz: float = 2400.0
) -> list[Sample]:
    """Return a server: how many reports, tokens a second, requests running, watts."""
    samples = []
    total = 0.0
    second = 0.0
    for count, rate, running, watts in stretches:
        for _ in range(count):
            total += rate * interval
            report = server(total, running=running, prompt=100.0)
            samples.append(at(second, report, watts=watts, mhz=mhz))
            second += interval
    return samples


def test_decode_at_half_its_power() -> None:
    """After half an hour at one speed four requests decode at two thirds of it, at half the power.

    The 201st report is the first slow one; the median turns two later, the hold takes twelve.
    """
    assert states(tokens((200, 60, 4, 36), (60, 40, 4, 18))) == "?31 .183 w46"


def test_one_of_two_nodes() -> None:
    """A node that waits for another changes speed and power every ten minutes."""
    speeds = [(60, 60, 4, 46), (60, 30, 4, 23), (60, 45, 4, 35), (60, 28, 4, 21)] * 3
    assert "w" not in states(tokens(*speeds))


def test_drafts_that_are_switched_off() -> None:
    """Speculative decoding off: half the tokens at the same power is no fault of the memory."""
    assert states(tokens((60, 60, 4, 36), (60, 30, 4, 35))) == "?31 .43 i46"


def test_other_concurrency_is_other_work() -> None:
    """One request makes fewer tokens a second than eight."""
    timeline = states(tokens((60, 88, 8, 44), (60, 14, 1, 33)))
    assert "w" not in timeline
    assert "i" not in timeline


def test_requests_that_come_and_go_are_not_learnt_from() -> None:
    """Four requests at one report, eight at the next: nobody knows whose speed was in between."""
    stretches = [(1, 44, 4, 36), (1, 88, 8, 44)] * 60
    assert states(tokens(*stretches)) == "?120"


def test_unsteady_speed_is_not_learnt() -> None:
    """A loop whose steps take 50 ms or 80, by turns of a minute, has no speed of its own."""
    stretches = [(6, 0.05, 36.0, 2400.0), (6, 0.08, 36.0, 2400.0)] * 10
    assert states(steps(*stretches)) == "?120"


def test_prefill_is_no_decode() -> None:
    """While prompts are read the speed of decode tells nothing."""
    samples = tokens((60, 60, 4, 36))
    for n in range(60):
        report = server(36000.0 + n, running=4, prompt=100.0 + 1000 * n)
        samples.append(at(600 + 10 * n, report, watts=88.0))
    assert states(samples) == "?31 .89"


def test_idle_keeps_the_last_word() -> None:
    """No request for ten minutes: what was judged stands."""
    samples = tokens((60, 60, 4, 36))
    samples += [
        at(600 + 10 * n, server(36000, running=0, prompt=100.0), percent=0, watts=11)
        for n in range(70)
    ]
    assert states(samples) == "?31 .99"


def test_feed_that_ends_is_unknown() -> None:
    """A workload that is gone has no state; without reports nobody knows after ten minutes."""
    samples = steps(FAST) + [at(600 + 10 * n) for n in range(70)]
    assert states(samples) == "?31 .89 ?10"


def test_without_a_gpu_it_is_information() -> None:
    """A clock that nobody read may explain it."""
    samples = [Sample(t=one.t, progress=one.progress) for one in steps(FAST, SLOW)]
    assert states(samples, 10.0) == "?31 .43 i46"


@pytest.mark.parametrize("interval", [0.25, 1.0, 5.0, 30.0, 60.0])
def test_every_interval(interval: float) -> None:
    """At any interval the fault is found within five minutes and two readings."""
    count = int(900 / interval) + 12
    samples = steps((count, 0.063, 36.0, 2400.0), (count, 0.094, 19.0, 2400.0), interval=interval)
    timeline, _ = play(rule(), samples, interval_seconds=interval)
    assert "w" not in timeline[:count]
    found = timeline.index("w") - count
    assert 120 <= found * interval <= 300 + 2 * interval


def test_sentence() -> None:
    """The warning says both speeds, the level, for how long, the clock and the power."""
    _, events = play(rule(), steps(FAST, SLOW), interval_seconds=10.0)
    assert events[-1].sentence == (
        "train at 94 ms a step for 2 min, 67 % of its own 63 ms a step at the same work (level "
        "75 %), at a normal clock (2400 MHz) and 19.0 W after 36.0."
    )


def test_memory_is_bounded() -> None:
    """A hundred thousand readings of many kinds keep a few dozen each."""
    condition = rule()
    samples = [
        at(n, Progress(workload="train", steps_total=n, step_seconds=0.5, batch=n // 500))
        for n in range(20_000)
    ]
    play(condition, samples)
    (workload,) = condition._workloads.values()
    assert len(workload.kinds) == KINDS
    assert all(len(one._readings) <= MOST_READINGS for one in workload.kinds.values())
