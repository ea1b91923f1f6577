"""The Prometheus page, from snapshots made by hand."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text
from prometheus_client.registry import CollectorRegistry

from spark_watch.detectors.catalogue import CATALOGUE, conditions
from spark_watch.detectors.judge import Judge
from spark_watch.detectors.timeline import Timeline
from spark_watch.export.families import FAMILIES
from spark_watch.export.families.conditions import MEASURES
from spark_watch.export.page import OPENMETRICS, Page, _SnapshotCollector
from spark_watch.export.snapshot import Snapshot
from spark_watch.model import STATE_LABELS, Gpu, Memory, Process, Sample, State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.simulated import SCENARIOS, SimulatedSource
from tests.conftest import ROOT
from tests.export.snapshots import GPU, SAMPLE, SNAPSHOT, changed, standing

GOLDEN = ROOT / "tests" / "golden" / "metrics.prom"

SUFFIXES = (
    "_bytes",
    "_bytes_total",
    "_bytes_per_second",
    "_seconds",
    "_seconds_total",
    "_timestamp_seconds",
    "_celsius",
    "_hertz",
    "_watts",
    "_joules_total",
    "_ratio",
    "_info",
    "_active",
    "_success",
    "_state",
    "_result",
)
"""How a name may end: a base unit, or the kind of flag it is."""

COUNTS = {
    "sparkwatch_condition_changes_total",
    "sparkwatch_major_faults_total",
    "sparkwatch_oom_kills_total",
    "sparkwatch_compaction_stalls_total",
    "sparkwatch_compaction_failures_total",
    "sparkwatch_direct_reclaims_total",
    "sparkwatch_refaults_total",
    "sparkwatch_gpu_process_major_faults_total",
    "sparkwatch_source_errors_total",
    "sparkwatch_ticks_total",
    "sparkwatch_missed_ticks_total",
    "sparkwatch_internal_errors_total",
    "sparkwatch_gpu_processes",
    "sparkwatch_cpu_load1",
    "sparkwatch_workloads",
    "sparkwatch_workload_generation_tokens_total",
    "sparkwatch_workload_prompt_tokens_total",
    "sparkwatch_workload_steps_total",
    "sparkwatch_workload_requests_running",
    "sparkwatch_workload_requests_waiting",
    "sparkwatch_workload_preemptions_total",
    "sparkwatch_recording_segments",
    "sparkwatch_recording_samples_total",
    "sparkwatch_recording_dropped_samples_total",
    "sparkwatch_recording_errors_total",
}
"""What is counted and has no unit."""


def page_of(snapshot: Snapshot, accept: str = "") -> str:
    """Return the page of a snapshot."""
    page = Page()
    page.publish(snapshot)
    return page.metrics(accept)[0].decode()


def series(snapshot: Snapshot) -> dict[str, dict[tuple[str, ...], float]]:
    """Return every series of the text page: by name, then by label values in the family's order."""
    order = {family.full_name: family.labels for family in FAMILIES}
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text(page_of(snapshot)):
        for sample in family.samples:
            labels = tuple(sample.labels[label] for label in order[sample.name])
            assert labels not in found.setdefault(sample.name, {}), "one series stands there twice"
            found[sample.name][labels] = sample.value
    return found


def test_the_whole_page() -> None:
    """The page is, byte for byte, what the golden file holds."""
    assert page_of(SNAPSHOT) == GOLDEN.read_text()


def test_both_forms_say_the_same() -> None:
    """OpenMetrics and text hold the same series, and each is taken by its own parser."""
    plain = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text(page_of(SNAPSHOT))
        for sample in family.samples
    }
    other = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in openmetrics(page_of(SNAPSHOT, OPENMETRICS))  # type: ignore[no-untyped-call]  # theirs
        for sample in family.samples
    }
    assert plain == other


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("text/plain", "text/plain"),
        ("application/openmetrics-text", "application/openmetrics-text"),
        ("Application/OpenMetrics-Text; version=1.0.0", "application/openmetrics-text"),
        (
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2,*/*;q=0.1",
            "application/openmetrics-text",
        ),
        ("text/html, application/openmetrics-text;q=0", "text/plain"),
        ("application/openmetrics-text; q=0.000", "text/plain"),
        ("application/openmetrics-textual", "text/plain"),
        ("x/application/openmetrics-text", "text/plain"),
        (";,;,;=", "text/plain"),
        ("q=0," * 3000, "text/plain"),
        ("\xff\x80", "text/plain"),
    ],
)
def test_the_form_is_the_one_that_was_asked_for(accept: str, form: str) -> None:
    """OpenMetrics where the header names it and does not refuse it, text for whatever else."""
    page = Page()
    page.publish(SNAPSHOT)
    assert page.metrics(accept)[1].partition(";")[0] == form


def test_describe_touches_nothing() -> None:
    """A collector is described without a snapshot: every family, none with a sample."""
    described = list(_SnapshotCollector(None).describe())
    assert len(described) == len(FAMILIES)
    assert [family.samples for family in described] == [[] for _ in FAMILIES]
    CollectorRegistry(auto_describe=True).register(_SnapshotCollector(None))


def test_before_the_first_sample_the_page_is_empty() -> None:
    """A scrape before the first sample gets a valid page without series."""
    page = Page()
    assert page.metrics("")[0] == b""
    assert page.metrics("application/openmetrics-text")[0] == b"# EOF\n"


def test_a_page_is_rendered_once_for_each_snapshot_and_form() -> None:
    """The same snapshot gives the same object again, a new one gives another page."""
    page = Page()
    page.publish(SNAPSHOT)
    first = page.metrics("")[0]
    other = page.metrics("application/openmetrics-text")[0]
    assert page.metrics("*/*")[0] is first
    assert page.metrics("application/openmetrics-text;q=0.1")[0] is other
    page.publish(changed(memory=None))
    assert page.metrics("")[0] is not first
    assert page.metrics("")[0] != first


def test_names_end_in_a_base_unit() -> None:
    """Every name ends in an allowed suffix or counts something, and no two are alike."""
    names = [family.full_name for family in FAMILIES]
    assert len(set(names)) == len(names)
    assert [name for name in names if not name.endswith(SUFFIXES) and name not in COUNTS] == []
    assert set(names) >= COUNTS
    for family in FAMILIES:
        assert (family.kind == "counter") == family.full_name.endswith("_total")
        assert re.fullmatch(r"sparkwatch(_[a-z0-9]+)+", family.full_name)


def test_every_family_says_where_it_comes_from() -> None:
    """A help text is one sentence, and no label is one that Prometheus sets itself."""
    for family in FAMILIES:
        assert family.help.endswith("."), family.name
        assert family.help[0].isupper() or family.help[0].isdigit(), family.name
        assert not {"hostname", "instance", "job", "alertname", "alertstate"} & set(family.labels)


def test_every_condition_has_five_states_of_which_one_is_true() -> None:
    """From the first sample on every condition of the catalogue has five series, one of them 1."""
    judge = Judge(conditions(ConditionSettings()), Timeline())
    judge.update(Sample(t=0.0))
    found = series(dataclasses.replace(SNAPSHOT, standings=judge.standing(0.0)))
    states = found["sparkwatch_condition_state"]
    for kind in CATALOGUE:
        values = [states[kind.gotcha, kind.name, label] for label in STATE_LABELS]
        assert sorted(values) == [0.0, 0.0, 0.0, 0.0, 1.0]
        assert states[kind.gotcha, kind.name, "unknown"] == 1.0
        changes = found["sparkwatch_condition_changes_total"]
        assert [changes[kind.gotcha, kind.name, label] for label in STATE_LABELS] == [0.0] * 5
    assert "sparkwatch_condition_last_change_timestamp_seconds" not in found


@pytest.mark.parametrize("state", list(State))
def test_the_state_shown_is_the_state_it_is_in(state: State) -> None:
    """The series at 1 is that of the condition's own state."""
    found = series(dataclasses.replace(SNAPSHOT, standings=(standing("gpu_hot", state),)))
    assert found["sparkwatch_condition_state"]["G3", "gpu_hot", state.label] == 1.0


def test_what_is_not_known_is_absent() -> None:
    """Without any reading the page holds what the daemon knows of itself and of its conditions."""
    bare = dataclasses.replace(
        SNAPSHOT,
        latest=Sample(t=0.0),
        measures={},
        marks={},
        identities=(),
        sources=(),
        loop=dataclasses.replace(SNAPSHOT.loop, memory_locked=None),
        recorder=None,
    )
    assert {name.split("_")[1] for name in series(bare)} == {
        "condition", "build", "ticks", "missed", "tick", "judge", "interval", "danger", "internal",
        "self", "start", "last",
    }  # fmt: skip


def test_a_gpu_that_tells_nothing_has_no_series() -> None:
    """A GPU whose every value is missing leaves no 0, -1 or NaN behind."""
    found = series(changed(gpus=(Gpu(index=0), Gpu(index=1, power_watts=9.0))))
    assert found["sparkwatch_gpu_power_watts"] == {("1",): 9.0}
    assert [name for name in found if name.startswith("sparkwatch_gpu_temp")] == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_absent(value: float) -> None:
    """A value that is not finite is left out like one that is missing; its neighbours stay."""
    found = series(changed(gpus=(dataclasses.replace(GPU, power_watts=value),)))
    assert "sparkwatch_gpu_power_watts" not in found
    assert found["sparkwatch_gpu_temperature_celsius"] == {("0",): 63.0}


def test_zero_is_a_value() -> None:
    """What was read as 0 is shown as 0."""
    found = series(SNAPSHOT)
    assert found["sparkwatch_gpu_energy_joules_total"] == {("0",): 0.0}
    assert found["sparkwatch_oom_kills_total"] == {(): 0.0}
    assert found["sparkwatch_gpu_performance_state"] == {("0",): 0.0}


def test_no_more_than_32_processes_and_the_largest_of_them() -> None:
    """Of 950 processes the 32 largest are on the page, and the count says how many there are."""
    many = tuple(
        Process(pid=number, name="python3", kind="compute", gpu_bytes=number * 1024)
        for number in range(1, 951)
    )
    found = series(changed(processes=many))
    shown = found["sparkwatch_gpu_process_memory_bytes"]
    assert {int(pid) for pid, _ in shown} == set(range(919, 951))
    assert found["sparkwatch_gpu_processes"] == {(): 950.0}


def test_a_launcher_is_no_gpu_process() -> None:
    """A launcher holds no GPU memory and has no series."""
    assert {pid for pid, *_ in series(SNAPSHOT)["sparkwatch_gpu_process_info"]} == {"900", "1234"}


def test_hostile_names_do_not_break_the_page() -> None:
    """Quotes, line ends, lone surrogates and doubles cost no other series."""
    hostile = 'a"b\\c\n# HELP x y\nsparkwatch_ticks_total 1'
    found = series(
        changed(
            processes=(
                Process(pid=1, name=hostile, kind="compute", gpu_bytes=5),
                Process(pid=2, name="\ud800x", kind="compute", gpu_bytes=6),
                Process(pid=3, name="twice", kind="compute", gpu_bytes=7),
                Process(pid=3, name="twice", kind="graphics", gpu_bytes=2),
            )
        )
    )
    assert found["sparkwatch_gpu_process_memory_bytes"] == {
        ("3", "twice"): 7.0,
        ("2", "?x"): 6.0,
        ("1", hostile): 5.0,
    }
    assert found["sparkwatch_ticks_total"] == {(): 10_000.0}


def test_the_file_that_is_replayed_is_not_named() -> None:
    """The page says that samples come from a recording, not from which."""
    assert "a-file-name" not in page_of(SNAPSHOT)


def _published() -> set[tuple[str, int]]:
    """Return every measure that stands in the detectors' source: its name and number of labels.

    A measure's key is a pair of a name and a tuple of label values, wherever it is written.
    """
    found = set()
    for path in sorted((ROOT / "spark_watch" / "detectors").rglob("*.py")):
        for node in ast.walk(ast.parse(Path(path).read_text())):
            match node:
                case ast.Tuple(elts=[ast.Constant(value=str(name)), ast.Tuple(elts=labels)]):
                    found.add((name, len(labels)))
    return found


def test_every_measure_has_a_family() -> None:
    """What a condition can publish has a family with as many labels, and the other way round."""
    assert _published() == {(family.name, len(family.labels)) for family in MEASURES}


@pytest.mark.parametrize("name", ["collapse", "thermal-throttle", "co-tenant-squeeze"])
def test_a_simulated_box_publishes_nothing_unknown(name: str) -> None:
    """Through a whole story every measure is one that the detectors' source shows to be there."""
    assert name in SCENARIOS
    source = SimulatedSource(name, interval_seconds=5.0)
    judge = Judge(conditions(ConditionSettings()), Timeline(interval_seconds=5.0))
    seen = set()
    for sample in source.samples():
        judge.update(sample)
        seen |= {(measure, len(labels)) for measure, labels in judge.measures}
    assert seen
    assert seen <= _published()


def test_a_full_box_has_no_more_than_650_series() -> None:
    """Eight GPU processes, every condition, source, reason and rail: at most 650 series."""
    judge = Judge(conditions(ConditionSettings()), Timeline())
    judge.update(SAMPLE)
    standings = tuple(
        dataclasses.replace(one, changed_at_seconds=1.0) for one in judge.standing(SAMPLE.t)
    )
    reasons = ("sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown", "sync_boost",
               "hw_power_brake_slowdown")  # fmt: skip
    every = {field.name: 1 for field in dataclasses.fields(Memory)}
    full = dataclasses.replace(
        SNAPSHOT,
        standings=standings,
        measures={
            (family.name, tuple(f"{index}" for index, _ in enumerate(family.labels))): 1.0
            for family in MEASURES
        }
        | {("gpu_event_reason_ratio", ("0", reason)): 1.0 for reason in reasons},
        latest=dataclasses.replace(
            SAMPLE,
            memory=Memory(**every),
            gpus=(
                dataclasses.replace(
                    GPU, event_reasons=reasons, event_seconds=dict.fromkeys(reasons, 1.0)
                ),
            ),
            free_blocks={4096 << order: 5 for order in range(14)},
            rails={f"rail{number}": 1.0 for number in range(20)} | {"prochot": 0.0},
            zones=SAMPLE.zones,
            processes=tuple(
                Process(
                    pid=pid,
                    name="python3",
                    kind="compute",
                    engine="vllm",
                    container="c",
                    gpu_bytes=1,
                    resident_bytes=1,
                    swapped_bytes=1,
                    major_faults=1,
                    claim_ratio=0.1,
                    claim_bytes=5,
                )
                for pid in range(8)
            ),
        ),
        sources=tuple(
            dataclasses.replace(SNAPSHOT.sources[0], source=f"source{number}")
            for number in range(12)
        ),
    )
    count = sum(len(found) for found in series(full).values())
    assert 450 < count <= 650
