"""Every named scenario shows what it says, whole at any interval, and knows its own answer."""

from dataclasses import fields

import pytest

from spark_watch.model import GIB, Gpu, Memory, Sample, State
from spark_watch.sources.simulated import SCENARIOS, Scenario, SimulatedSource

OFF_SCREEN = {"rails", "extra", "stopped", "failed", "pending"}
"""Parts of a sample that a stock box in order does not have."""

NAMES = [
    "healthy-decode",
    "healthy-training",
    "model-load",
    "idle",
    "collapse",
    "slow-leak",
    "thermal-throttle",
    "stuck-low-power",
    "co-tenant-squeeze",
    "nvml-stall",
    "power-loss",
]


def told(name: str, *, interval: float = 5.0, seed: int = 1) -> list[Sample]:
    """The whole scenario."""
    return list(SimulatedSource(name, seed=seed, interval_seconds=interval).samples())


def at(samples: list[Sample], seconds: float) -> Sample:
    """The last sample that is not later than that many seconds after the first."""
    return [sample for sample in samples if sample.t <= samples[0].t + seconds][-1]


def gpu_of(sample: Sample) -> Gpu:
    """Its one GPU."""
    assert sample.gpus is not None
    (gpu,) = sample.gpus
    return gpu


def available_gib(sample: Sample) -> float:
    """MemAvailable in GiB."""
    assert sample.memory is not None
    assert sample.memory.available_bytes is not None
    return sample.memory.available_bytes / GIB


def test_the_promised_scenarios_exist_in_order() -> None:
    """Eleven names, the healthy ones first."""
    assert list(SCENARIOS) == NAMES


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_the_answer_is_whole_and_consistent(scenario: Scenario) -> None:
    """Spans and deadlines lie in the story; no fault span overlaps a quiet one."""
    assert scenario.spans
    for span in scenario.spans:
        assert 0 <= span.start <= span.end <= scenario.seconds
        assert span.quiet == (span.condition is None)
        if span.deadline is not None:
            assert span.start + span.deadline <= span.end
    for still in scenario.spans:
        for loud in scenario.spans:
            if still.quiet and not loud.quiet:
                assert still.end <= loud.start or loud.end <= still.start


def test_a_label_has_the_shape_of_a_labels_file() -> None:
    """A fault span is written with its gotcha, level and deadline; a quiet one with its ceiling."""
    first, _, last = SCENARIOS["stuck-low-power"].labels()["spans"]
    assert first == {
        "from": 0.0,
        "to": 58.0,
        "label": "quiet",
        "confidence": "high",
        "why": "a resident server at rest",
        "at_most": "info",
    }
    assert last["label"] == "quiet"
    fault = SCENARIOS["stuck-low-power"].spans[1]
    assert fault.at_least is State.CRITICAL
    assert fault.label() == {
        "from": 60.0,
        "to": 300.0,
        "label": ["G4"],
        "confidence": "high",
        "why": "busy at 700 MHz",
        "at_least": "critical",
        "condition_hint": "low_power_state",
        "deadline": 30.0,
    }


@pytest.mark.parametrize("interval", [1.0, 60.0])
@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_whole(name: str, interval: float) -> None:
    """Each sample has every key that a stock Spark has, but what a blocked driver takes away."""
    for sample in told(name, interval=interval):
        missing = {part.name for part in fields(sample) if getattr(sample, part.name) is None}
        blocked = {"gpus", "processes"} if sample.pending else set()
        assert missing - OFF_SCREEN == blocked
        assert sample.memory is not None
        assert all(getattr(sample.memory, part.name) is not None for part in fields(Memory))
        assert sample.machine is not None
        assert sample.machine.is_gb10


@pytest.mark.parametrize("name", NAMES)
def test_time_and_memory_are_those_of_a_machine(name: str) -> None:
    """Time only goes forward; free and available lie between nothing and the pool's total."""
    samples = told(name)
    times = [sample.t for sample in samples]
    assert times == sorted(set(times))
    for sample in samples:
        memory = sample.memory
        assert memory is not None
        assert 0 <= (memory.free_bytes or 0) <= (memory.total_bytes or 0)
        assert 0 <= (memory.available_bytes or 0) <= (memory.total_bytes or 0)
        assert (memory.driver_residual_bytes or 0) > 0
        assert 0 <= (memory.swap_free_bytes or 0) <= (memory.swap_total_bytes or 0)


def test_the_same_seed_tells_the_same_story_to_the_byte() -> None:
    """Two runs with one seed are equal, two seeds are not."""
    assert told("healthy-decode", seed=7) == told("healthy-decode", seed=7)
    assert told("healthy-decode", seed=7) != told("healthy-decode", seed=8)


@pytest.mark.parametrize("interval", [0.25, 2.0, 10.0])
def test_a_collapse_unfolds_alike_at_every_interval(interval: float) -> None:
    """32 GiB at 60 s, under 18 at 70 s, under 1 at 80 s, however often one looks."""
    samples = told("collapse", interval=interval)
    assert available_gib(at(samples, 60.0)) == pytest.approx(32.0, abs=0.5)
    assert 8 < available_gib(at(samples, 70.0)) < 18
    assert available_gib(at(samples, 80.0)) < 1
    assert available_gib(at(samples, 200.0)) > 110


def test_the_collapse_is_logged_and_thrashes() -> None:
    """Driver failures come in numbers, pressure passes one half, an OOM kill ends it."""
    samples = told("collapse", interval=1.0)
    events = [event for sample in samples for event in sample.kernel or ()]
    assert sum(event.count for event in events if event.kind == "nv_err_no_memory") > 20
    assert [event.kind for event in events if event.kind == "oom_kill"] == ["oom_kill"]
    assert (
        max(sample.pressure.full_avg10_ratio or 0.0 for sample in samples if sample.pressure) > 0.5
    )


def test_the_load_ends_with_room_and_fills_the_page_cache() -> None:
    """Free memory goes below 2 GiB while more than 20 GiB stay available all through."""
    samples = told("model-load", interval=1.0)
    assert min(available_gib(sample) for sample in samples) > 20
    assert min((s.memory.free_bytes or 0) / GIB for s in samples if s.memory is not None) < 2


def test_the_leak_is_slow_and_ends_near_two_gibibytes() -> None:
    """MemAvailable passes 8 GiB between 10 and 20 minutes and ends between 1.5 and 3."""
    samples = told("slow-leak", interval=10.0)
    assert available_gib(at(samples, 600.0)) > 8 > available_gib(at(samples, 1_200.0))
    assert 1.5 < available_gib(samples[-1]) < 3


def test_the_throttled_box_is_slowed_by_its_firmware() -> None:
    """The counter stands still while the air flows, then takes over a tenth of the time."""
    samples = told("thermal-throttle", interval=5.0)
    counter = [
        (gpu_of(at(samples, seconds)).event_seconds or {})["sw_thermal_slowdown"]
        for seconds in (0.0, 240.0, 500.0, 1_100.0)
    ]
    assert counter[1] == counter[0]
    assert counter[3] - counter[2] > 60.0
    assert (gpu_of(samples[-1]).sm_hertz or 0) < 2.1e9 < (gpu_of(samples[0]).sm_hertz or 0)


def test_the_stuck_box_is_well_before_and_after() -> None:
    """2.4 GHz at rest, under 0.9 GHz while busy, 2.4 GHz and more when it has recovered."""
    samples = told("stuck-low-power", interval=1.0)
    assert (gpu_of(at(samples, 30.0)).sm_hertz or 0) > 2.39e9
    for seconds in range(62, 300):
        assert (gpu_of(at(samples, seconds)).sm_hertz or 0) < 0.9e9
    assert (gpu_of(at(samples, 310.0)).sm_hertz or 0) > 2.2e9


def test_the_squeezed_server_is_paged_out_and_slows_down() -> None:
    """Its memory goes to swap and it faults by the thousand while the other process grows."""
    samples = told("co-tenant-squeeze", interval=5.0)

    def server(sample: Sample) -> tuple[int, int]:
        (engine,) = (
            process
            for process in sample.processes or ()
            if process.engine == "vllm" and process.kind == "compute"
        )
        return engine.swapped_bytes or 0, engine.major_faults or 0

    swapped_before, faults_before = server(at(samples, 175.0))
    swapped_after, faults_after = server(samples[-1])
    assert swapped_before == 0
    assert swapped_after > 1.0 * GIB
    assert faults_after - faults_before > 10_000


def test_the_power_goes_without_a_sign() -> None:
    """A minute before the gap every reading is healthy; after it the boot id is another."""
    samples = told("power-loss", interval=5.0)
    boots = [sample.boot_id for sample in samples]
    assert len(set(boots)) == 2
    last = boots.index(boots[-1]) - 1
    assert samples[last + 1].t - samples[last].t >= 90.0
    assert not any(sample.stopped for sample in samples)
    assert available_gib(samples[last]) > 40
    assert (gpu_of(samples[last]).temperature_celsius or 0) < 80
