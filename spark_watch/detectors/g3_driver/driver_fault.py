"""The driver or the GPU says itself that it is broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from spark_watch.detectors.condition import Condition, Judgement, spoken
from spark_watch.detectors.timeline import Tick
from spark_watch.model import KernelEvent, Process, State
from spark_watch.settings.g3_driver import DriverFaultSettings

LOST: Final = frozenset({"gpu_is_lost", "reset_required"})
"""NVML's reasons that mean a GPU which was there and is gone (``nvml.h``)."""

STALE_LIBRARY: Final = "lib_rm_version_mismatch"
"""NVML's reason after a driver upgrade without a reboot (``nvml.h``)."""

NODE_SUFFIX: Final = "_with_device_node"
"""How the reason ends where NVML cannot start although the driver has made its device file.

Without the file there may be no GPU in the machine at all, which is no fault.
"""

XID_MEANINGS: Final[Mapping[int, str]] = {
    13: "graphics engine exception",
    31: "GPU memory page fault",
    43: "a program's GPU work was stopped",
    45: "a program's GPU work was cleaned up",
    48: "double bit memory error",
    62: "the GPU's controller halted",
    64: "a memory row could not be remapped",
    74: "link error",
    79: "the GPU has fallen off the bus",
    95: "uncontained memory error",
    119: "the GPU's firmware does not answer",
    120: "error in the GPU's firmware",
    154: "the GPU asks for a reset or a reboot",
}
"""Source: docs.nvidia.com/deploy/xid-errors."""

GPU_TASKS: Final = (
    "nvidia",
    "nv_",
    "uvm",
    "cuda",
    "vllm",
    "sglang",
    "llama",
    "text-generation",
    "trtllm",
    "comfyui",
    "python",
    "xorg",
    "gnome-shell",
)
"""Parts of the names of tasks that hang in the driver when they hang on such a machine.

Source: nvidia-smi and gnome-shell in MiaAI-Lab/DeepSeek-v4.1-Flash-DGX-Sparks#23; engines by the
titles they give themselves.
"""

_ENDED_BY_ANSWER: Final = frozenset({"gpu_lost", "no_start", "stale_library"})
"""Faults that are over when NVML answers, and not before."""

MAXIMUM_FAULTS: Final = 64
"""Kinds of fault kept at a time; names of tasks come from outside."""

_RESET: Final = (
    "Stop the jobs, then power the machine off and on: a reset from software rarely brings this "
    "back, and restarting the container does not. Keep the kernel log (journalctl -k) for support."
)
_REMEDIES: Final[Mapping[str, str]] = {
    "hung_task": "Save what can be saved from a shell that is already open, then reboot. The task "
    "is in D state and cannot be killed: no kill-and-restart loops, and no nvidia-smi, which would "
    "hang beside it.",
    "oom_kill": "Look which process was killed (journalctl -k) and give the jobs less. A kill does "
    "not free what an engine process holds through the driver: look for leftovers (spark-watch "
    "who). More swap does not help CUDA memory.",
    "pcie_fatal": "Check the heat of board and network card and the cabling, then power the "
    "machine off and on. A restart of the job alone does not help.",
    "no_start": "Read why in the kernel log (journalctl -k | grep -i nvrm), then reboot once. If "
    "it comes back the same, go back to the driver and kernel that worked: some pairs never find "
    "the GPU again. Restarting containers or spark-watch does not help.",
    "stale_library": "Reboot when the running jobs allow it: the driver on disk is newer than the "
    "one that is loaded. Running jobs go on; new ones cannot start. Restarting spark-watch does "
    "not help.",
}


FAULTLESS: Final = Judgement(State.OK, "No fault in the kernel log and NVML answers.")


@dataclass(slots=True)
class _Fault:
    state: State
    what: str
    remedy: str
    count: int
    seen_at: float


class DriverFault(Condition[DriverFaultSettings]):
    """Faults in NVML's answers and in the kernel log; each stands for an hour after its last sign.

    A fault that stands is not taken back when its source falls silent: it has happened.
    """

    name = "driver_fault"
    gotcha = "G3"
    part = "kernel"
    sources = ("kernel_log", "nvml")
    summary = "GPU lost, NVML cannot start, Xid, hung task in the driver, OOM kill, PCIe fatal"
    remedies: ClassVar = {
        State.INFO: "Look at that task's own resource (a disk, a network share) first; watch "
        "whether GPU tasks follow.",
        State.WARNING: "Look at the kernel log (journalctl -k) of that moment and at the job that "
        "was running; most other Xids are a program's own error, and a restart of that program is "
        "enough. The machine needs no reboot for it.",
        State.CRITICAL: _RESET,
    }

    def __init__(self, settings: DriverFaultSettings) -> None:
        super().__init__(settings)
        self._faults: dict[tuple[str, object], _Fault] = {}
        self._processes: tuple[Process, ...] = ()
        self._oom_kills: int | None = None
        self._kernel_at: float | None = None
        self._nvml_at: float | None = None

    def judge(self, tick: Tick) -> Mapping[str, Judgement | None] | None:
        """Judge what stands; ok needs both the kernel log and NVML to have been seen lately."""
        sample = tick.sample
        if sample.kernel is not None:
            self._kernel_at = tick.now
            for event in sample.kernel:
                self._note_event(tick, event)
        if sample.vm is not None and sample.vm.oom_kills is not None:
            self._note_kills(tick, sample.vm.oom_kills)
        self._note_nvml(tick)
        if sample.processes is not None:
            self._processes = sample.processes
        if self._faults:
            self._forget(tick.now)
        if self._faults:
            return {"host": self._standing(tick.now)}
        return {"host": self._quiet(tick)}

    def _note_event(self, tick: Tick, event: KernelEvent) -> None:
        kind, code = event.kind, event.code
        if kind == "xid":
            number = int(code) if code is not None and str(code).isdecimal() else None
            critical = number in self.settings.critical_xids
            meaning = XID_MEANINGS.get(number) if number is not None else None
            what = "Xid without a number" if code is None else f"Xid {code}"
            what += f" ({meaning})" if meaning else ""
            self._note(
                tick, (kind, code), State.CRITICAL if critical else State.WARNING, what, event.count
            )
        elif kind == "hung_task":
            state = State.CRITICAL if self._on_gpu(code) else State.INFO
            self._note(
                tick, (kind, code), state, f"hung task {code or 'without a name'}", event.count
            )
        elif kind == "oom_kill":
            self._note(tick, (kind, None), State.WARNING, "OOM kill", event.count)
        elif kind == "pcie_fatal":
            self._note(tick, (kind, None), State.CRITICAL, "fatal PCIe error", event.count)

    def _on_gpu(self, task: str | int | None) -> bool:
        """Whether a hung task is one that uses the GPU; one without a name may be."""
        if task is None:
            return True
        name = str(task)
        listed = any(process.name and process.name[:15] == name for process in self._processes)
        return listed or any(part in name.lower() for part in GPU_TASKS)

    def _note_kills(self, tick: Tick, kills: int) -> None:
        """Take the kernel's count of kills, which can be read where its log cannot."""
        before, self._oom_kills = self._oom_kills, kills
        if before is not None and kills > before and tick.sample.kernel is None:
            self._note(tick, ("oom_kill", None), State.WARNING, "OOM kill", kills - before)

    def _note_nvml(self, tick: Tick) -> None:
        lost = False
        for failure in tick.sample.failed:
            if failure.source != "nvml":
                continue
            reason = failure.reason
            if reason in LOST:
                lost = True
                self._note(tick, ("gpu_lost", None), State.CRITICAL, f"NVML says {reason}", 1)
            elif reason.endswith(NODE_SUFFIX):
                lost = True
                what = f"NVML cannot start although the device file is there ({reason})"
                self._note(tick, ("no_start", None), State.CRITICAL, what, 1)
            elif reason == STALE_LIBRARY:
                lost = True
                what = "NVML is of another version than the driver that is loaded"
                self._note(tick, ("stale_library", None), State.WARNING, what, 1)
        if tick.sample.gpus is not None:
            self._nvml_at = tick.now
            if not lost and self._faults:
                for kind in _ENDED_BY_ANSWER:
                    self._faults.pop((kind, None), None)

    def _note(
        self, tick: Tick, key: tuple[str, object], state: State, what: str, count: int
    ) -> None:
        fault = self._faults.get(key)
        if fault is None:
            if len(self._faults) >= MAXIMUM_FAULTS:
                oldest = min(self._faults, key=lambda one: self._rank(self._faults[one]))
                del self._faults[oldest]
            remedy = _REMEDIES.get(key[0], "") if state >= State.WARNING else ""
            fault = self._faults[key] = _Fault(state, what, remedy, 0, tick.now)
        fault.what = what
        fault.count += count
        fault.seen_at = tick.now

    @staticmethod
    def _rank(fault: _Fault) -> tuple[State, float]:
        return fault.state, fault.seen_at

    def _forget(self, now: float) -> None:
        """Drop what is an hour old, except a lost GPU: only an answer of NVML ends that."""
        for key in [
            key
            for key, fault in self._faults.items()
            if now - fault.seen_at >= self.settings.stand_seconds and key[0] not in _ENDED_BY_ANSWER
        ]:
            del self._faults[key]

    def _standing(self, now: float) -> Judgement:
        ordered = sorted(self._faults.values(), key=self._rank, reverse=True)
        worst = ordered[0]
        values: dict[str, Any] = {
            "what": worst.what,
            "count": worst.count,
            "ago": spoken(now - worst.seen_at),
            "stand": spoken(self.settings.stand_seconds),
        }
        template = "{what}, last seen {ago} ago, signs in all: {count}"
        others = ordered[1:4]
        if others:
            values["others"] = ", ".join(fault.what for fault in others)
            template += "; also {others}"
        return Judgement(
            worst.state,
            template + "; it stands for {stand} after the last.",
            values,
            worst.remedy or None,
        )

    def _quiet(self, tick: Tick) -> Judgement:
        now = tick.now
        blind = [
            name
            for name, seen_at, part in (
                ("the kernel log", self._kernel_at, "kernel"),
                ("NVML", self._nvml_at, "gpus"),
            )
            if seen_at is None or now - seen_at > tick.stale_after(part)
        ]
        if blind:
            return Judgement(
                State.UNKNOWN,
                "No fault seen, but {blind} cannot be seen: a fault there would go unnoticed.",
                {"blind": " and ".join(blind)},
            )
        return FAULTLESS
