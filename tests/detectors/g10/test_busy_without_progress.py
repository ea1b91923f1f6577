"""Timelines of ``busy_without_progress``: busy on paper, and nothing comes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g10_progress.busy_without_progress import BusyWithoutProgress
from spark_watch.model import Failure, Machine, Sample
from spark_watch.settings.g10 import BusyWithoutProgressSettings
from tests.detectors.g10.reports import START, at, loop, server
from tests.detectors.timelines import play, squeeze


def rule(**settings_: float) -> BusyWithoutProgress:
    """Return the condition with its defaults, or with some of them replaced."""
    return BusyWithoutProgress(BusyWithoutProgressSettings(**settings_))


def states(samples: list[Sample], interval: float = 1.0) -> str:
    """Return the timeline, runs of one state written together."""
    return squeeze(play(rule(), samples, interval_seconds=interval)[0])


def frozen(seconds: range, since: int = 0, celsius: float = 50.0) -> list[Sample]:
    """Return samples a second apart in which tokens stand from ``since`` on."""
    return [at(n, server(100 + min(n, since)), celsius=celsius) for n in seconds]


def test_work_is_ok_at_once() -> None:
    """The power alone excludes the rule: decode at 40 W needs no feed and no window."""
    assert states([at(n, watts=40.0) for n in range(5)]) == ".5"


def test_fault_with_a_frozen_feed() -> None:
    """Decode at 44 W; at 10 s it freezes at 19 W. 60 s later it is a warning, 120 s critical.

    The first frozen reading is that of second 11 and equals that of second 10, where the power
    falls too: the warning comes at second 70, the critical at second 130.
    """
    work = [at(n, server(100 + n), watts=44.0) for n in range(10)]
    assert states(work + frozen(range(10, 140), since=10)) == ".70 w60 c10"


def test_fault_without_a_feed_is_information() -> None:
    """Nobody says whether it moves: decode may look like this, so it is never more than info."""
    work = [at(n, watts=44.0) for n in range(10)]
    assert states(work + [at(n) for n in range(10, 400)]) == ".70 i330"


def test_frozen_after_long_decode_at_idle_power() -> None:
    """It has decoded at 19 W for 200 s: what counts for critical is how long it is frozen."""
    assert states(frozen(range(330), since=200)) == "?1 .259 w60 c10"


def test_two_equal_reports_a_minute_apart_are_no_duration() -> None:
    """Reports once a minute: a pause of just over a minute shows twice, and proves nothing."""
    told = {0: 100, 60: 200, 120: 200, 180: 300, 240: 300, 300: 400}
    samples = [at(n, server(told[n // 60 * 60]), silent=n % 60 != 0) for n in range(330)]
    assert "w" not in play(rule(), samples)[0]


def test_frozen_from_the_first_sample_on() -> None:
    """A watch that starts in the middle knows nothing for a minute, then everything."""
    assert states(frozen(range(130))) == "?60 w60 c10"


def test_decode_at_seventeen_watts_that_moves() -> None:
    """What moves is fine whatever it draws; before a second report nobody knows."""
    assert states([at(n, server(100 + n), watts=17.0) for n in range(300)]) == "?1 .299"


def test_decode_that_moves_every_ten_seconds() -> None:
    """A feed that is read every 10 s beside a GPU that is read every second."""
    samples = [at(n, server(100 + n), silent=n % 10 != 0, watts=17.0) for n in range(300)]
    assert states(samples) == "?10 .290"


def test_frozen_feed_that_is_read_every_ten_seconds() -> None:
    """The last token is seen at 20 s; the reading of 80 s makes it a minute."""
    samples = [
        at(n, server(100 + min(n, 20)), silent=n % 10 != 0, watts=44.0 if n < 20 else 19.0)
        for n in range(160)
    ]
    assert states(samples) == ".80 w60 c20"


def test_long_prefill() -> None:
    """No token for five minutes at 46 W is a prefill, whether the prompt is counted or not."""
    assert states([at(n, server(100), watts=46.0) for n in range(300)]) == ".300"
    prompt = [at(n, server(100, prompt=10.0 * n), watts=20.0) for n in range(300)]
    assert states(prompt) == "?1 .299"


def test_phase_prefill_is_no_proof() -> None:
    """A workload that says it prefills makes no token: its stillness proves nothing."""
    samples = [at(n, server(100, phase="prefill")) for n in range(300)]
    assert states(samples) == "?60 i240"


def test_no_request_is_no_proof() -> None:
    """A server without requests need not move; what spins there may be another program."""
    assert states([at(n, server(100, running=0)) for n in range(300)]) == "?60 i240"


def test_one_tick_short() -> None:
    """A token in the last second before the hold starts it anew."""
    samples = [at(n, server(100 + n // 60)) for n in range(300)]
    assert "w" not in play(rule(), samples)[0]


def test_loop_of_long_steps() -> None:
    """66 s a step at 25 W moves: three steps may pass before it is called still."""
    samples = [at(n, loop(n // 66, 66.0), watts=25.0) for n in range(600)]
    timeline, _ = play(rule(), samples)
    assert set(timeline[132:]) == {"."}


def test_loop_that_stops() -> None:
    """12 s a step; the last step ends at 120 s: a warning 60 s later, critical at 240 s."""
    samples = [
        at(n, loop(min(n, 120) // 12, 12.0), watts=36.0 if n < 120 else 18.0) for n in range(260)
    ]
    assert states(samples) == ".180 w60 c20"


def test_warming_die_works() -> None:
    """A die that goes from 42 to 60 C in a minute does work, at whatever power is read."""
    samples = [at(n, celsius=42.0 + 0.3 * n) for n in range(120)]
    assert states(samples) == "?60 .60"


def test_warmth_takes_nothing_back() -> None:
    """What was said stays said while the GPU stays so."""
    samples = frozen(range(100)) + frozen(range(100, 130), celsius=56.0)
    assert states(samples) == "?60 w60 c10"


def test_low_clock_explains_low_power() -> None:
    """Without a feed a GPU at 799 MHz is the business of another rule."""
    assert states([at(n, mhz=799.0) for n in range(90)]) == "?60 .30"


def test_end_of_the_job() -> None:
    """The job is killed at 130 s; ten seconds at rest end it."""
    samples = frozen(range(130)) + [at(n, percent=0, watts=11.0) for n in range(130, 150)]
    assert states(samples) == "?60 w60 c20 .10"


@pytest.mark.parametrize("interval", [1.0, 10.0, 60.0])
@pytest.mark.parametrize(("percent", "watts"), [(0.0, 11.0), (96.0, 45.0)])
def test_way_out_says_nothing_new(percent: float, watts: float, interval: float) -> None:
    """A low clock explained the low power; a reading at rest or at work accuses nobody then."""
    stuck = [at(n * interval, mhz=799.0) for n in range(90)]
    after = [at(n * interval, percent=percent, watts=watts) for n in range(90, 110)]
    assert "i" not in play(rule(), stuck + after, interval_seconds=interval)[0]


def test_it_goes_on() -> None:
    """Tokens that come again end it at once."""
    samples = frozen(range(130)) + [at(n, server(n)) for n in range(130, 140)]
    assert states(samples) == "?60 w60 c10 .10"


def test_lost_gpu_reading_never_clears() -> None:
    """NVML stops answering: the state stands for 30 s, then nobody knows."""
    lost = [
        Sample(t=START + n, failed=(Failure(source="nvml", reason="timeout"),))
        for n in range(130, 170)
    ]
    assert states(frozen(range(130)) + lost) == "?60 w60 c40 ?10"


def test_lost_feed_holds_then_is_information() -> None:
    """An engine whose endpoint hangs as well: critical for 30 s more, then what can be seen."""
    samples = frozen(range(130)) + [at(n) for n in range(130, 170)]
    assert states(samples) == "?60 w60 c40 i10"


def test_another_workload_that_moves_explains_the_gpu() -> None:
    """One of two servers stands, the other decodes at 20 W: the GPU is not stuck."""
    samples = [at(n, server(100), loop(n, 1.0), watts=20.0) for n in range(200)]
    assert states(samples) == "?1 .199"


def test_engine_restart_and_reset_are_movement() -> None:
    """Counters that start anew every 50 s are no stillness."""
    samples = [at(n, server(1000 - n // 50)) for n in range(300)]
    assert "w" not in play(rule(), samples)[0]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (0.25, ".260 w240 c20"),
        (0.5, ".140 w120 c20"),
        (1.0, ".80 w60 c20"),
        (5.0, ".32 w12 c20"),
        (10.0, ".26 w6 c20"),
        (60.0, ".22 c20"),
    ],
)
def test_every_interval(interval: float, expected: str) -> None:
    """Sixty and 120 s at any interval, or three samples where those take longer.

    It freezes at the 21st sample; that sample is the last with a new token.
    """
    total = sum(int(part[1:]) for part in expected.split())
    samples = [
        at(n * interval, server(100 + min(n, 20)), watts=44.0 if n < 20 else 19.0)
        for n in range(total)
    ]
    assert states(samples, interval) == expected


def test_sentence_names_both_causes() -> None:
    """The warning says value, level, how long, what stands still, and both machines' reasons."""
    _, events = play(rule(), frozen(range(130)))
    assert [event.to_state.label for event in events] == ["warning", "critical"]
    assert events[0].sentence == (
        "GPU 0 at 96 % utilisation with 19.0 W for 60 s (level 28 W), and vllm has made no token "
        "for 8 requests for 60 s: on one machine a kernel that spins or a UVM livelock, across "
        "two a collective that waits for the other."
    )
    assert "py-spy" in events[0].remedy
    assert "DDP or FSDP" in events[1].remedy


def test_another_unit_is_not_judged() -> None:
    """A discrete card idles at 79 W: these watts are a GB10's."""
    timeline, _ = play(rule(), frozen(range(130)), machine=Machine(gpu_name="NVIDIA H200"))
    assert set(timeline) == {"?"}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    moves=st.lists(st.integers(0, 3), min_size=1, max_size=120),
    interval=st.sampled_from([0.25, 1.0, 5.0, 10.0, 60.0]),
    watts=st.floats(28.0, 100.0),
)
def test_power_of_work_never_fires(moves: list[int], interval: float, watts: float) -> None:
    """Whatever the feed says, a GPU that draws the power of work is not stuck."""
    total = 0
    samples = []
    for n, more in enumerate(moves):
        total += more
        samples.append(at(n * interval, server(total), watts=watts))
    assert set(play(rule(), samples, interval_seconds=interval)[0]) == {"."}
