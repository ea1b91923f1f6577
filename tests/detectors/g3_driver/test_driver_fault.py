"""Timelines of ``driver_fault``: what driver and kernel say is broken stands for an hour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_watch.detectors.g3_driver.driver_fault import MAXIMUM_FAULTS, DriverFault
from spark_watch.model import Failure, Gpu, KernelEvent, Machine, Process, Sample, Vm
from spark_watch.settings.g3_driver import DriverFaultSettings
from tests.detectors.timelines import play, squeeze

SILENT: tuple[KernelEvent, ...] = ()


def at(
    second: float,
    *events: KernelEvent,
    log: bool = True,
    nvml: str | None = "",
    oom_kills: int | None = None,
    processes: tuple[Process, ...] | None = None,
) -> Sample:
    """Return a sample; ``nvml`` is empty for an answer, a reason for none, None for not asked."""
    return Sample(
        t=1e9 + second,
        kernel=events if log else None,
        gpus=(Gpu(index=0),) if nvml == "" else None,
        failed=(Failure(source="nvml", reason=nvml),) if nvml else (),
        vm=None if oom_kills is None else Vm(oom_kills=oom_kills),
        processes=processes,
    )


def xid(code: int | str) -> KernelEvent:
    """Return one Xid line."""
    return KernelEvent(kind="xid", code=code)


def quiet(start: int, count: int, *, log: bool = True, nvml: str | None = "") -> list[Sample]:
    """Return ``count`` samples a second apart without an event."""
    return [at(start + index, log=log, nvml=nvml) for index in range(count)]


def timeline(made: list[Sample], *, interval: float = 1.0, machine: Machine | None = None) -> str:
    """Play the samples and return the squeezed timeline."""
    states, _ = play(
        DriverFault(DriverFaultSettings()),
        made,
        interval_seconds=interval,
        machine=machine or Machine(gpu_name="NVIDIA GB10"),
    )
    return squeeze(states)


def test_healthy() -> None:
    """Both can be seen and say nothing: ok from the first sample on."""
    assert timeline(quiet(0, 60)) == ".60"


@pytest.mark.parametrize(
    ("event", "state"),
    [
        *((xid(code), "c") for code in (48, 62, 64, 74, 79, 95, 119, 120, 154, "79")),
        *((xid(code), "w") for code in (13, 31, 43, 45, 999)),
        (KernelEvent(kind="oom_kill"), "w"),
        (KernelEvent(kind="pcie_fatal"), "c"),
        (KernelEvent(kind="hung_task", code="nvidia-smi"), "c"),
        (KernelEvent(kind="hung_task", code="VLLM::EngineCor"), "c"),
        (KernelEvent(kind="hung_task", code="gnome-shell"), "c"),
        (KernelEvent(kind="hung_task"), "c"),
        (KernelEvent(kind="hung_task", code="jbd2/nvme0n1-8"), "i"),
        (KernelEvent(kind="nv_err_no_memory", count=90), "."),
    ],
)
def test_each_kind(event: KernelEvent, state: str) -> None:
    """Each message has its state at once, at the sample that brings it."""
    assert timeline([*quiet(0, 3), at(3.0, event), *quiet(4, 2)]) == (
        f".3 {state}3" if state != "." else ".6"
    )


def test_it_clears_an_hour_after_the_last() -> None:
    """One at second 10 and one at second 100: ok again 3600 s after the second."""
    made = [*quiet(0, 10), at(10.0, xid(79)), *quiet(11, 89), at(100.0, xid(79))]
    made += quiet(101, 3605)
    assert timeline(made) == ".10 c3690 .6"


def test_worst_stands_first() -> None:
    """A later warning does not hide what is critical; when that is over the warning is left."""
    made = [at(0.0, xid(79)), *quiet(1, 9), at(10.0, xid(31)), *quiet(11, 3595)]
    assert timeline(made) == "c3600 w6"


@pytest.mark.parametrize("reason", ["gpu_is_lost", "reset_required"])
def test_lost_gpu_stands_until_nvml_answers(reason: str) -> None:
    """Longer than an hour if need be, through silence of NVML, and no longer than its answer."""
    made = [*quiet(0, 5), *quiet(5, 10, nvml=reason)]
    made += quiet(15, 4000, nvml=None)
    made += quiet(4015, 5)
    assert timeline(made) == ".5 c4010 .5"


def test_one_of_two_gpus_lost() -> None:
    """NVML that answers for one GPU and has lost the other is no answer for that one."""
    lost = Sample(
        t=1e9 + 5,
        kernel=(),
        gpus=(Gpu(index=0),),
        failed=(Failure(source="nvml", reason="gpu_is_lost"),),
    )
    assert timeline([*quiet(0, 5), lost, at(6.0)]) == ".5 c1 .1"


def test_nvml_that_cannot_start() -> None:
    """Critical where the driver has made its device file, nothing at all where it has not."""
    assert timeline(quiet(0, 5, nvml="init_failed_with_device_node")) == "c5"
    assert timeline(quiet(0, 5, nvml="driver_not_loaded_with_device_node")) == "c5"
    for reason in ("driver_not_loaded", "library_not_found", "gpu_not_found", "not_supported"):
        assert timeline(quiet(0, 50, nvml=reason)) == "?50"


def test_driver_replaced_without_a_reboot() -> None:
    """A library that is newer than the driver is a warning until NVML answers."""
    made = [*quiet(0, 5), *quiet(5, 5, nvml="lib_rm_version_mismatch"), *quiet(10, 5)]
    assert timeline(made) == ".5 w5 .5"


def test_unreadable_log_is_not_ok() -> None:
    """Without the kernel log an Xid would go unseen, so there is no ok; a fault still shows."""
    assert timeline(quiet(0, 50, log=False)) == "?50"
    made = [*quiet(0, 5, log=False), *quiet(5, 5, log=False, nvml="gpu_is_lost")]
    assert timeline(made) == "?5 c5"


def test_lost_reading() -> None:
    """Either of the two away for more than 30 s ends the ok; neither ends a fault."""
    assert timeline([*quiet(0, 5), *quiet(5, 40, log=False)]) == ".35 ?10"
    assert timeline([*quiet(0, 5), *quiet(5, 40, nvml="timeout")]) == ".35 ?10"
    made = [*quiet(0, 5), at(5.0, xid(31)), *quiet(6, 60, log=False)]
    assert timeline(made) == ".5 w61"


def test_kills_are_counted_without_the_log() -> None:
    """The kernel's counter shows a kill where its log cannot be read; its restart shows none."""
    kills = [3, 3, 4, 4, 0, 0]
    made = [at(second, log=False, oom_kills=count) for second, count in enumerate(kills)]
    assert timeline(made) == "?2 w4"
    assert timeline(made[:2]) == "?2"
    assert timeline([made[0], made[4], made[5]]) == "?3"


def test_hung_task_of_a_listed_process() -> None:
    """A task is one of the driver's where it bears the cut-off name of a GPU process."""
    trainer = Process(pid=7, name="finetune-everything", kind="compute")
    task = KernelEvent(kind="hung_task", code="finetune-everyt")
    assert timeline([at(0.0), at(1.0, task)]) == ".1 i1"
    assert timeline([at(0.0, processes=(trainer,)), at(1.0, task)]) == ".1 c1"


@pytest.mark.parametrize("interval", [0.25, 10.0, 60.0])
def test_interval(interval: float) -> None:
    """At any interval the fault shows at its sample and stands for an hour."""
    count = round(3600 / interval)
    made = [at(index * interval) for index in range(3)]
    made += [at(3 * interval, xid(62))]
    made += [at((4 + index) * interval) for index in range(count + 4)]
    assert timeline(made, interval=interval) == f".3 c{count} .5"


def test_long_gap_keeps_the_fault() -> None:
    """Half an hour without a sample does not clear it, two hours do, once both can be seen."""
    assert timeline([at(0.0), at(1.0, xid(79)), at(1801.0), at(9000.0)]) == ".1 c2 .1"


def test_any_machine_is_judged() -> None:
    """An Xid is an Xid on a discrete card as well."""
    assert timeline([at(0.0, xid(79))], machine=Machine(gpu_name="NVIDIA H200")) == "c1"


def test_sentence_and_remedy() -> None:
    """What, when, how often, what else; and the remedy is that of the worst."""
    made = [
        at(0.0, KernelEvent(kind="oom_kill")),
        at(5.0, KernelEvent(kind="hung_task", code="nvidia-smi", count=3)),
    ]
    _, events = play(DriverFault(DriverFaultSettings()), made)
    assert events[-1].sentence == (
        "hung task nvidia-smi, last seen 0 s ago, signs in all: 3; also OOM kill; it stands for "
        "60 min after the last."
    )
    assert "cannot be killed" in events[-1].remedy
    _, events = play(DriverFault(DriverFaultSettings()), [at(0.0, xid(79))])
    assert events[-1].sentence.startswith("Xid 79 (the GPU has fallen off the bus), last seen")


@given(st.lists(st.sampled_from(["", "timeout", "not_supported", "driver_not_loaded"])))
def test_without_a_fault_it_never_fires(answers: list[str]) -> None:
    """No answer and no silence of NVML is a fault by itself."""
    made = [at(second, nvml=answer) for second, answer in enumerate(answers)]
    assert not set(timeline(made)) & set("iwc")


def test_names_from_outside_need_no_memory() -> None:
    """Ten thousand hung tasks of different names are kept as the last few, the worst first."""
    rule = DriverFault(DriverFaultSettings())
    made = [at(0.0, xid(79))]
    made += [
        at(index, KernelEvent(kind="hung_task", code=f"task-{index}")) for index in range(1, 10_000)
    ]
    states, _ = play(rule, made)
    assert len(rule._faults) == MAXIMUM_FAULTS
    assert states[3599] == "c"


def test_xid_without_a_number() -> None:
    """A recording may lack the number: it is a fault all the same, and the sentence says so."""
    made = quiet(0, 3)
    made.append(at(3, KernelEvent(kind="xid", code=None, count=1)))
    _, events = play(DriverFault(DriverFaultSettings()), made)
    assert events[-1].sentence.startswith("Xid without a number, last seen 0 s ago")
