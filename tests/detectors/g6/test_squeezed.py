"""Timelines of ``squeezed``: a server loses memory while another process takes it.

The server is there from the start, so it is old enough to be judged. The other begins at second
70 with 5 GiB and grows. What the server loses is compared with the oldest look of the last minute;
looks are kept every 5 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_watch.detectors.g6_contention.squeezed import Squeezed
from spark_watch.model import GIB, Failure, Machine, Process, Progress, Sample, Vm
from spark_watch.settings.g6 import SqueezedSettings
from tests.detectors.g6.rows import launcher, pool, process
from tests.detectors.timelines import GB10, play, squeeze

START = 70.0


def ramp(rate: float, *, start: float = START, stop: float = 1e9) -> Callable[[float], float]:
    """Return what has come together by a moment, at ``rate`` a second between two moments."""
    return lambda second: rate * (min(max(second, start), stop) - start)


NONE = ramp(0.0)
GROWS = ramp(0.5, stop=130.0)


class Scene:
    """A server and another process over time; sizes in GiB by second.

    Args:
        lost: what the server's resident memory has lost.
        swapped: what of it has gone to swap.
        faults: its major faults.
        refaults: those of the machine.
        own_refaults: those of its control group.
        grown: what the other has taken beyond its 5 GiB.
        frozen_from: from when on the server makes no token.
        running: how many requests it says are running.
    """

    def __init__(
        self,
        *,
        lost: Callable[[float], float] = NONE,
        swapped: Callable[[float], float] = NONE,
        faults: Callable[[float], float] = NONE,
        refaults: Callable[[float], float] = NONE,
        own_refaults: Callable[[float], float] = NONE,
        grown: Callable[[float], float] = GROWS,
        available_gib: float = 4.0,
        frozen_from: float | None = None,
        running: float = 3.0,
        other_from: float = START,
        **other: object,
    ) -> None:
        self.lost, self.swapped, self.faults, self.refaults = lost, swapped, faults, refaults
        self.own_refaults = own_refaults
        self.grown = grown
        self.available_gib = available_gib
        self.frozen_from = frozen_from
        self.running = running
        self.other_from = other_from
        self.other = other

    def server(self, second: float, **more: object) -> tuple[Process, ...]:
        """Return the server's launcher and engine."""
        fields: dict[str, object] = {
            "engine": "vllm",
            "launcher_pid": 10,
            "resident_bytes": round((20.0 - self.lost(second)) * GIB),
            "swapped_bytes": round(self.swapped(second) * GIB),
            "major_faults": 40 + int(self.faults(second)),
            "cgroup_refaults": int(self.own_refaults(second)),
            "started_seconds": 100.0,
            **more,
        }
        return (launcher(10, engine="vllm"), process(11, 60.0, **fields))

    def co_tenant(self, second: float) -> tuple[Process, ...]:
        """Return the other process, once it is there."""
        if second < self.other_from:
            return ()
        fields: dict[str, object] = {
            "resident_bytes": GIB,
            "swapped_bytes": 0,
            "major_faults": 237,
            "started_seconds": 9000.0 + self.other_from,
            **self.other,
        }
        return (process(31, 5.0 + self.grown(second), **fields),)

    def at(self, second: float) -> Sample:
        """Return the sample of a moment."""
        progress = None
        if self.frozen_from is not None:
            tokens = 10.0 * min(second, self.frozen_from)
            progress = (
                Progress(
                    workload="vllm",
                    generation_tokens_total=tokens,
                    requests_running=self.running,
                ),
            )
        return Sample(
            t=1e9 + second,
            boottime_seconds=9000.0 + second,
            memory=pool(self.available_gib),
            processes=self.server(second) + self.co_tenant(second),
            vm=Vm(refaults=int(self.refaults(second)), swapped_in_bytes=0),
            progress=progress,
        )


def timeline(made: Iterable[Sample], *, interval: float = 1.0, machine: Machine = GB10) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(Squeezed(SqueezedSettings()), made, interval_seconds=interval, machine=machine)
    return squeeze(states)


def seconds(scene: Scene, count: int, *, start: float = 0.0) -> list[Sample]:
    """Return a sample each second."""
    return [scene.at(start + second) for second in range(count)]


SWAPPED = ramp(0.06, stop=100.0)
"""0.24 GiB at second 74, 0.30 at 75, 1.8 from 100 on."""


@pytest.mark.parametrize(
    ("scene", "count", "expected"),
    [
        pytest.param(Scene(), 200, ".200", id="healthy"),
        # breached from 75 on, held for 10 s
        pytest.param(Scene(swapped=SWAPPED), 120, ".85 w35", id="swapped"),
        pytest.param(Scene(swapped=ramp(0.06, stop=74.0)), 200, ".200", id="just-less-swapped"),
        # from second 156 on the oldest look is that of 100: nothing since, gone 60 s later
        pytest.param(Scene(swapped=SWAPPED), 220, ".85 w131 .4", id="over"),
        # 0.99 GiB at 79, 1.1 at 80, more than a tenth of it to swap
        pytest.param(
            Scene(lost=ramp(0.11, stop=85.0), swapped=ramp(0.012, stop=85.0)),
            120,
            ".90 w30",
            id="lost",
        ),
        pytest.param(
            Scene(lost=ramp(0.11, stop=79.0), swapped=ramp(0.012, stop=79.0)),
            200,
            ".200",
            id="just-less-lost",
        ),
        pytest.param(
            Scene(lost=ramp(0.11, stop=85.0), own_refaults=ramp(6.0)),
            120,
            ".90 w30",
            id="lost-and-missed",
        ),
        pytest.param(
            Scene(lost=ramp(0.5, stop=120.0), swapped=ramp(0.004, stop=85.0), refaults=ramp(90.0)),
            200,
            ".200",
            id="it-frees-its-own-cache",
        ),
        pytest.param(
            Scene(lost=ramp(0.11), swapped=SWAPPED, grown=NONE, other_from=0.0),
            200,
            "?55 .145",
            id="nobody-grows",
        ),
        pytest.param(
            Scene(lost=ramp(0.11), swapped=SWAPPED, other_from=1e9), 200, ".200", id="alone"
        ),
        # 50 faults at second 120, held for 10 s
        pytest.param(
            Scene(faults=ramp(1.0), refaults=ramp(2.0), grown=ramp(0.05)),
            150,
            ".130 w20",
            id="faults-with-refaults",
        ),
        pytest.param(Scene(faults=ramp(1.0)), 200, ".200", id="faults-without-refaults"),
        pytest.param(Scene(faults=ramp(237.0, stop=71.0)), 200, ".200", id="first-touch-of-a-file"),
        pytest.param(Scene(faults=ramp(0.8), refaults=ramp(90.0)), 200, ".200", id="fewer-faults"),
        # frozen since 70: a minute later, at 130, it is critical
        pytest.param(Scene(swapped=ramp(0.06), frozen_from=70.0), 150, ".85 w45 c20", id="frozen"),
        pytest.param(
            Scene(swapped=ramp(0.06), frozen_from=1e9), 150, ".85 w65", id="moves-all-the-same"
        ),
        pytest.param(
            Scene(swapped=ramp(0.06), frozen_from=70.0, running=0.0),
            150,
            ".85 w65",
            id="no-requests",
        ),
        pytest.param(Scene(frozen_from=70.0), 150, ".150", id="frozen-alone-is-not-ours"),
        pytest.param(Scene(other_from=0.0), 60, "?55 .5", id="warm-up"),
        pytest.param(
            Scene(swapped=ramp(0.06, start=0.0), other_from=0.0, grown=ramp(0.5, start=0.0)),
            30,
            "?15 w15",
            id="warm-up-may-raise",
        ),
    ],
)
def test_timeline(scene: Scene, count: int, expected: str) -> None:
    """The state at every second is the one worked out beside the scene."""
    assert timeline(seconds(scene, count)) == expected


def test_growth_into_swap_is_growth() -> None:
    """The other is paged out itself as fast as it grows: it takes memory all the same."""
    scene = Scene(swapped=SWAPPED, other_from=0.0, grown=NONE)
    made = []
    for second in range(120):
        pushed = process(
            31,
            5.0,
            resident_bytes=GIB,
            swapped_bytes=round(ramp(0.21)(second) * GIB),
            started_seconds=100.0,
        )
        made.append(replace(scene.at(second), processes=(*scene.server(second), pushed)))
    assert timeline(made) == "?55 .30 w35"


def test_pid_given_out_again_is_a_new_process() -> None:
    """Another process under the pid of one that held as much has taken all that it holds."""
    scene = Scene(swapped=SWAPPED, other_from=0.0, grown=NONE)
    made = []
    for second in range(120):
        started = 50.0 if second < START else 9000.0 + START
        other = process(31, 5.0, resident_bytes=GIB, swapped_bytes=0, started_seconds=started)
        made.append(replace(scene.at(second), processes=(*scene.server(second), other)))
    assert timeline(made) == "?55 .30 w35"


def test_own_workers_do_not_squeeze_each_other() -> None:
    """Memory that goes from one worker of an engine to another is nobody's loss."""
    scene = Scene(lost=ramp(0.11), swapped=SWAPPED, launcher_pid=10)
    assert timeline(seconds(scene, 150)) == ".150"


def test_start_of_a_process_is_its_own() -> None:
    """What a process frees and faults in its first 300 s is no loss, though another grows."""
    young = 9000.0 - 200.0
    scene = Scene(lost=ramp(0.11, stop=140.0), swapped=ramp(0.03, stop=140.0))
    made = []
    for second in range(150):
        rows = scene.server(second, started_seconds=young) + scene.co_tenant(second)
        made.append(replace(scene.at(second), processes=rows))
    # 300 s old at second 100: it is held against the last minute from then on
    assert timeline(made) == ".110 w40"


def test_exit_and_restart_of_the_watched() -> None:
    """A server that ends, or comes back under its pid with less memory, was not squeezed."""
    scene = Scene(grown=ramp(0.5))
    made = seconds(scene, 100)
    gone = [
        Sample(t=1e9 + s, memory=pool(4.0), vm=Vm(refaults=0), processes=scene.co_tenant(s))
        for s in range(100, 150)
    ]
    assert timeline(made + gone) == ".150"
    back = [
        Sample(
            t=1e9 + s,
            boottime_seconds=9000.0 + s,
            memory=pool(4.0),
            vm=Vm(refaults=0),
            processes=(
                *scene.co_tenant(s),
                process(11, 1.0, resident_bytes=GIB, swapped_bytes=0, started_seconds=9100.0),
            ),
        )
        for s in range(100, 150)
    ]
    assert timeline(made + back) == ".150"


def test_counters_that_begin_anew() -> None:
    """Fault counts that fall are no faults."""
    scene = Scene(
        faults=lambda s: 5000.0 if s < 100 else 0.0, refaults=lambda s: 9e6 if s < 90 else 0
    )
    assert timeline(seconds(scene, 150)) == ".150"


def test_lost_reading() -> None:
    """Without a list it stands for 30 s and is unknown then, and a new list must be watched."""
    made = seconds(Scene(swapped=ramp(0.06)), 100)
    failed = (Failure(source="processes", reason="timeout"),)
    made += [Sample(t=1e9 + 100 + s, failed=failed, memory=pool(4.0)) for s in range(40)]
    assert timeline(made) == ".85 w45 ?10"


def test_long_gap_is_not_compared_across() -> None:
    """What was lost in ten minutes that nobody saw says nothing of one of them."""
    scene = Scene(swapped=lambda s: 0.0 if s < 300 else 3.0, other_from=0.0, grown=NONE)
    made = seconds(scene, 100) + seconds(scene, 100, start=700.0)
    assert timeline(made) == "?55 .45 ?55 .45"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # breached at 74.25 s (0.255 GiB), held for 10 s
        pytest.param(0.25, ".337 w63", id="quarter-second"),
        # at 80 s, 90 s and 100 s: three samples
        pytest.param(10.0, ".10 w30", id="ten-seconds"),
        # at 120 s, 180 s and 240 s: three samples, over two minutes each
        pytest.param(60.0, ".4 w36", id="a-minute"),
    ],
)
def test_interval(interval: float, expected: str) -> None:
    """The window counts seconds, the hold no fewer than three samples."""
    scene = Scene(swapped=ramp(0.06), grown=ramp(0.05))
    count = 400 if interval == 0.25 else 40
    made = [scene.at(index * interval) for index in range(count)]
    assert timeline(made, interval=interval) == expected


def test_what_cannot_be_read_is_not_ok() -> None:
    """Two engines of which one hides its swap: unknown, not ok."""
    scene = Scene(other_from=0.0, swapped_bytes=None)
    assert timeline(seconds(scene, 70)) == "?70"
    hidden = [
        Sample(t=1e9 + s, processes=(), memory=pool(4.0, residual_gib=80.0)) for s in range(9)
    ]
    assert timeline(hidden) == "?9"


def test_other_machine_is_not_judged() -> None:
    """Where GPU memory is the GPU's own, its growth takes nothing from a process of the host."""
    made = seconds(Scene(swapped=SWAPPED), 120)
    assert timeline(made, machine=Machine(gpu_name="NVIDIA H200")) == "?120"


def test_sentence_says_evicted_only_with_evidence() -> None:
    """Swap alone is a squeeze; with refaults the pages were wanted back."""
    _, events = play(Squeezed(SqueezedSettings()), seconds(Scene(swapped=SWAPPED), 90))
    assert events[-1].subject == "vllm/11"
    assert events[-1].sentence == (
        "vllm/11 is squeezed: 0.9 GiB went to swap within 60 s while python3/31 grows, for 10 s."
    )
    scene = Scene(swapped=SWAPPED, refaults=ramp(9.0))
    _, events = play(Squeezed(SqueezedSettings()), seconds(scene, 90))
    assert events[-1].sentence == (
        "vllm/11 is evicted: 0.9 GiB went to swap, and pages are read back within 60 s while "
        "python3/31 grows, for 10 s."
    )


@settings(max_examples=25)
@given(st.floats(min_value=0.0, max_value=3.0), st.floats(min_value=0.0, max_value=3.0))
def test_growth_alone_never_fires(rate: float, available: float) -> None:
    """However fast the other grows and however little is left: no loss, no squeeze."""
    scene = Scene(grown=ramp(rate), available_gib=available)
    assert timeline([scene.at(5.0 * index) for index in range(60)], interval=5.0) == ".60"


def test_a_week_of_comers_and_goers_leaves_nothing_behind() -> None:
    """Thousands of processes, one after the other, are forgotten when they go."""
    rule = Squeezed(SqueezedSettings())
    made = [
        Sample(
            t=1e9 + 60.0 * index,
            memory=pool(4.0),
            vm=Vm(refaults=0),
            processes=(process(100 + index, 6.0, resident_bytes=GIB, swapped_bytes=0),),
            progress=(Progress(workload=f"job-{index}", requests_running=1.0),),
        )
        for index in range(5000)
    ]
    play(rule, made, interval_seconds=60.0)
    assert len(rule._victims) == 1
    assert len(rule._progress._moves) == 1
    assert len(rule._progress._preempted) == 0
    assert len(rule._looks._looks) <= 14
