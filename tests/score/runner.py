"""Running traces through the product's own judge, on two cores."""

from __future__ import annotations

import io
import itertools
import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from spark_watch.blackbox.trace import TraceHeader, TraceWriter, read_trace
from spark_watch.daemon.replay import judge_for
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.simulated import SCENARIOS, Scenario, SimulatedSource, Span
from tests.score.family import Timed, families
from tests.score.grade import Grader, Score
from tests.score.recorded import labelled
from tests.score.spoil import decide, header, is_whole, spoil

GOTCHAS: Final = {kind.name: kind.gotcha for kind in CATALOGUE}
WORKERS: Final = 2
START_SECONDS: Final = 1_764_460_800.0
THROUGH_A_FILE_EVERY: Final = 7
"""Every seventh seed is written as a trace and read back before it is judged."""

JUDGED_SECONDS: Final = 1_800.0
"""A trace of that length fills every window, so that nothing in it need stay unknown."""

NAMED: Final = "named"
NAMED_SEEDS: Final = 4


@dataclass(frozen=True, slots=True)
class Task:
    """One trace to score: a family and a seed, a named scenario and a seed, or a file."""

    family: str
    seed: int = 0
    path: Path | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A generated trace, ready to be judged or written."""

    header: TraceHeader
    scenario: Scenario
    samples: Iterable[Timed]


def tasks(seeds: int, folder: Path | None) -> list[Task]:
    """Everything there is to score: recorded traces, then every seed of every family.

    The named scenarios differ by their noise alone, so that a few seeds say it all.
    """
    generated = [Task(family, seed) for seed in range(seeds) for family in families()]
    generated += [Task(name, seed) for seed in range(min(seeds, NAMED_SEEDS)) for name in named()]
    real = [] if folder is None else [Task("", 0, path, spans) for path, spans in labelled(folder)]
    return real + generated


def named() -> tuple[str, ...]:
    """The product's named scenarios, as families of their own."""
    return tuple(f"{NAMED}:{name}" for name in SCENARIOS)


def generate(family: str, seed: int) -> Generated:
    """The trace of one family and seed; the same two give the same trace, byte for byte."""
    if family.startswith(f"{NAMED}:"):
        return _generate_named(family, seed)
    kind = families()[family]
    told = kind.tell_seed(seed)
    scenario = kind.scenario(seed, told)
    interval = kind.interval(seed)
    source = SimulatedSource(scenario, seed=seed, interval_seconds=interval, start=START_SECONDS)
    spoiling = decide(kind, seed, scenario.seconds)
    head = header(kind, spoiling, told.machine or source.machine, interval)
    timed: Iterable[Timed] = ((one.t - START_SECONDS, one) for one in source.samples())
    if told.edit is not None:
        timed = told.edit(timed)
    return Generated(
        header=head, scenario=scenario, samples=spoil(timed, spoiling, head.machine, seed)
    )


def _generate_named(family: str, seed: int) -> Generated:
    scenario = SCENARIOS[family.removeprefix(f"{NAMED}:")]
    source = SimulatedSource(scenario, seed=seed, interval_seconds=1.0, start=START_SECONDS)
    head = TraceHeader(
        interval_seconds=1.0, machine=source.machine, origin=family, recorder="spark-watch"
    )
    return Generated(
        header=head,
        scenario=replace(scenario, name=f"{family}/{seed}"),
        samples=((one.t - START_SECONDS, one) for one in source.samples()),
    )


def write(generated: Generated, stream: io.BufferedIOBase) -> list[float]:
    """Write the trace; return the story's time of each sample."""
    writer = TraceWriter(stream, generated.header)
    times = []
    for elapsed, sample in generated.samples:
        writer.write(sample)
        times.append(elapsed)
    return times


def score(task: Task) -> Score:
    """Judge one trace and grade what stood."""
    if task.path is not None:
        return _score_recorded(task.path, task.spans)
    generated = generate(task.family, task.seed)
    name = generated.scenario.name
    timed = generated.samples
    if task.seed % THROUGH_A_FILE_EVERY == 1:
        timed = _through_a_file(generated)
    grader = Grader(name, generated.scenario.spans, GOTCHAS, recorded=False)
    result = _grade(grader, generated.header, timed)
    kind = families().get(task.family)
    long_enough = generated.scenario.seconds >= JUDGED_SECONDS
    if kind is not None and is_whole(task.seed) and long_enough:
        judged = set(result.unjudged)
        result.unjudged = [name for name in kind.judged if name in judged]
    else:
        result.unjudged = []
    return result


def _through_a_file(generated: Generated) -> Iterator[Timed]:
    stream = io.BytesIO()
    times = write(generated, stream)
    stream.seek(0)
    return zip(times, read_trace(stream, generated.scenario.name), strict=True)


def _score_recorded(path: Path, spans: tuple[Span, ...]) -> Score:
    with read_trace(path) as reader:
        first, samples = itertools.tee(reader)
        start = next(first).t
        del first
        timed = ((sample.t - start, sample) for sample in samples)
        grader = Grader(path.stem, spans, GOTCHAS, recorded=True)
        result = _grade(grader, reader.header, timed)
    result.unjudged = []
    return result


def _grade(grader: Grader, head: TraceHeader, timed: Iterable[Timed]) -> Score:
    """``unjudged`` of the result are all conditions that were unknown at every sample."""
    judge = judge_for(head, ConditionSettings())
    sentences: dict[str, str] = {}
    for elapsed, sample in timed:
        for event in judge.update(sample):
            sentences[event.condition] = f"{event.subject}: {event.sentence}"
        grader.see(elapsed, judge.states(), sentences)
        if judge.errors:
            grader.score.errors.append(f"{elapsed:.1f} s: {judge.errors[0]!r}")
            break
    result = grader.finish()
    result.unjudged = [name for name in GOTCHAS if name not in judge.judged]
    return result


def run(everything: list[Task], workers: int = WORKERS) -> Iterator[Score]:
    """Score every trace, in whatever order they get ready."""
    if workers == 1:
        yield from map(score, everything)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(workers) as pool:
        yield from pool.imap_unordered(score, everything, chunksize=4)
