"""The loop's side of the black box: what goes into it, and what it tells a new run of the last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from spark_watch.blackbox.ring import (
    FOLDER,
    RUNS_LIMIT,
    RecorderStatus,
    RingFolder,
    RingWriter,
    Run,
    history,
    runs_of,
)
from spark_watch.blackbox.trace import TraceHeader
from spark_watch.daemon.replay import event_as_json
from spark_watch.detectors.judge import Judge
from spark_watch.model import Event, Sample, State
from spark_watch.sources.feed import Moment
from spark_watch.sources.kernel_past import was_oom_killed

ACKNOWLEDGED: Final = "acknowledged"
"""The file in the state directory whose time of change says when somebody saw the last restart."""

ONE_SHOT: Final = "unclean_reboot"
"""The condition that can be acknowledged."""

DAMAGES_LIMIT: Final = 5
"""Damaged segments that are named at a start; more of them say nothing new."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the run before ended: its last sample, and who killed it where that is known."""

    last: Sample
    killed_by: str | None


class BlackBox:
    """Puts every sample into the ring, with what changed by it and what stands.

    Args:
        state_dir: the daemon's state directory; the ring is a folder in it.
        header: of this run's stream; runs of another origin are none of its past.
        max_bytes: what the ring may take on disk.
        log: a structlog logger whose writes do not wait.
        judge: gives the judge that is in force now.
        kmsg_path: the kernel log.
        tail_seconds: how much of the last run's end the judge sees again.
        back_seconds: how far back restarts of the machine matter.
    """

    def __init__(
        self,
        state_dir: Path,
        header: TraceHeader,
        *,
        max_bytes: int,
        log: Any,
        judge: Callable[[], Judge],
        kmsg_path: Path,
        tail_seconds: float,
        back_seconds: float,
    ) -> None:
        self._folder = state_dir / FOLDER
        self._mark = state_dir / ACKNOWLEDGED
        self._header = replace(header, extra={**header.extra, "pid": os.getpid()})
        self._max_bytes = max_bytes
        self._log = log
        self._judge = judge
        self._kmsg_path = kmsg_path
        self._tail_seconds = tail_seconds
        self._back_seconds = back_seconds
        self._writer: RingWriter | None = None
        self._ended: Ended | None = None
        self._acknowledged = self._acknowledged_seconds()
        self._active: bool | None = None
        self._reason: str | None = None
        self._last: Sample | None = None

    @property
    def status(self) -> RecorderStatus:
        """How the recorder stands."""
        return RecorderStatus() if self._writer is None else self._writer.status

    def recall(self, judge: Judge, moment: Moment) -> None:
        """Show the judge what the ring holds of earlier runs; nothing of it counts as a change.

        Whatever is wrong with the ring, the daemon starts; what could not be read is logged.
        """
        try:
            runs = runs_of(self._folder)
        except FileNotFoundError:
            return
        except OSError as error:
            self._log.warning("recording_unreadable", error=str(error))
            return
        if RingFolder(self._folder).taken():
            self._log.warning("recording_in_use", folder=str(self._folder))
            return
        runs = [run for run in runs[-RUNS_LIMIT:] if self._is_ours(run)]
        told = history(
            runs,
            now=moment.t,
            tail_seconds=self._tail_seconds,
            back_seconds=self._back_seconds,
        )
        last, samples = self._replay(judge, told)
        judge.begin()
        damages = [damage for run in runs for damage in run.damages]
        for name, why in damages[:DAMAGES_LIMIT]:
            self._log.warning("recording_damaged", segment=name, why=why)
        if last is None:
            return
        self._ended = Ended(last, None if last.stopped else self._killer(runs[-1]))
        self._log.info(
            "recalled",
            runs=len(runs),
            samples=samples,
            last_sample_age_seconds=round(moment.t - last.t, 3),
            clean=last.stopped,
        )
        for standing in judge.standing(last.t):
            if standing.finding.state >= State.WARNING:
                self._log.warning(
                    "condition_stands",
                    condition=standing.finding.condition,
                    state=standing.finding.state.label,
                    sentence=standing.finding.sentence,
                )

    def _is_ours(self, run: Run) -> bool:
        first = run.first()
        return first is not None and first[0].origin == self._header.origin

    def _replay(self, judge: Judge, told: Iterable[Sample]) -> tuple[Sample | None, int]:
        """Judge earlier samples, the acknowledgement in its place among them.

        Returns:
            The last of them and how many there were.
        """
        waiting = self._acknowledged
        last = None
        count = 0
        for sample in told:
            if waiting is not None and sample.t > waiting:
                judge.acknowledge(ONE_SHOT)
                waiting = None
            judge.update(sample)
            last = sample
            count += 1
        if waiting is not None and last is not None:
            judge.acknowledge(ONE_SHOT)
        return last, count

    def _killer(self, run: Run) -> str | None:
        """Return who ended a run, as far as the kernel log of this boot tells."""
        first = run.first()
        pid = first[0].extra.get("pid") if first is not None else None
        if type(pid) is int and was_oom_killed(pid, path=self._kmsg_path):
            return "oom_killer"
        return None

    def write(self, sample: Sample, events: Sequence[Event]) -> None:
        """Queue a sample for the ring, and say how the recorder fares. Never waits."""
        if self._writer is None:
            self._writer = self._begin(sample)
        standing = {
            name: state.label
            for name, state in self._judge().states().items()
            if state >= State.WARNING
        }
        extra: dict[str, Any] = {}
        if events:
            extra["events"] = [_compact(event) for event in events]
        if standing:
            extra["standing"] = standing
        self._last = sample
        if extra:
            sample = replace(sample, extra={**sample.extra, **extra})
        self._writer.put(sample, urgent=bool(standing))
        self._say(self._writer.status)
        self._acknowledge(self._writer.acknowledged_seconds)

    def _begin(self, sample: Sample) -> RingWriter:
        """Make this run's writer, and say how the run before ended where it was killed."""
        header = self._header
        ended = self._ended
        if ended is not None and not ended.last.stopped and _same_boot(ended.last, sample):
            killed_by = ended.killed_by or "unknown"
            self._log.warning(
                "daemon_was_killed",
                by=killed_by,
                last_sample_age_seconds=round(sample.t - ended.last.t, 3),
            )
            header = replace(header, extra={**header.extra, "before_killed_by": killed_by})
        writer = RingWriter(
            self._folder, header, max_bytes=self._max_bytes, acknowledged=self._mark
        )
        writer.start()
        return writer

    def _say(self, status: RecorderStatus) -> None:
        """Log when recording begins, stops and begins again; changes, not samples."""
        reason = status.reason
        if reason is not None and reason != self._reason:
            self._log.warning("recording_off", reason=reason, folder=str(self._folder))
        elif reason is None and status.active and self._active is not True:
            self._log.info("recording_on", folder=str(self._folder))
        self._reason = reason
        self._active = status.active

    def _acknowledged_seconds(self) -> float | None:
        try:
            return self._mark.stat().st_mtime
        except OSError:
            return None

    def _acknowledge(self, seconds: float | None) -> None:
        if seconds is not None and seconds != self._acknowledged:
            self._acknowledged = seconds
            self._judge().acknowledge(ONE_SHOT)
            self._log.info("acknowledged", condition=ONE_SHOT)

    def close(self, moment: Moment, *, clean: bool) -> None:
        """End, with the mark of a clean stop as the recording's last line where it was one.

        It has the clocks of the last sample: those of a played source are its own.
        """
        del moment
        last = self._last
        if self._writer is None or last is None:
            return
        if clean:
            mark = Sample(
                t=last.t,
                monotonic_seconds=last.monotonic_seconds,
                boottime_seconds=last.boottime_seconds,
                boot_id=last.boot_id,
                stopped=True,
            )
            self._writer.put(mark, urgent=True)
        self._writer.close()


def _compact(event: Event) -> Mapping[str, Any]:
    """An event as it lies in the ring: the remedy follows from the catalogue."""
    line = event_as_json(event, event.at_seconds)
    del line["remedy"]
    return line


def _same_boot(before: Sample, after: Sample) -> bool:
    """Whether the machine stayed up between two samples, by its boot id or else by its clock."""
    if before.boot_id is not None and after.boot_id is not None:
        return before.boot_id == after.boot_id
    if before.monotonic_seconds is None or after.monotonic_seconds is None:
        return False
    return after.monotonic_seconds >= before.monotonic_seconds
