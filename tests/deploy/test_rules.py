"""The rules say what the catalogue says, and Prometheus' own engine acts on them as it should."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from spark_watch.blackbox.trace import TraceHeader
from spark_watch.daemon.replay import judge_for
from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.export.alert_push import alert_name
from spark_watch.export.families import FAMILIES
from spark_watch.model import GIB, Sample, State
from spark_watch.settings.conditions import ConditionSettings
from spark_watch.sources.simulated import SimulatedSource
from tests.conftest import ROOT
from tests.deploy.rule_tests import Check, run, series, states
from tests.house import rules, runbook

HERE = {"instance": "a:9810", "job": "spark-watch"}
"""The box of most tests here."""

RULES: list[dict[str, Any]] = [
    rule for group in rules.alerts()["groups"] for rule in group["rules"]
]
CONDITIONS = [kind for kind in CATALOGUE if rules.severities(kind)]

UNITS = {
    "memory_collapse": ("memory_available_bytes", 6.5 * GIB, "6.5GiB can still be allocated."),
    "memory_low": ("memory_available_bytes", 1.25 * GIB, "1.25GiB can still be allocated."),
    "memory_stalled": (
        "memory_pressure_full_ratio",
        0.62,
        "All of it waited for memory 62 % of 10 s.",
    ),
    "page_cache_squeeze": (
        "memory_free_bytes",
        2 * GIB,
        "2GiB are free, which is all that CUDA sees.",
    ),
    "swap_thrash": ("swap_in_bytes_per_second", 2**25, "32MiB/s come back from swap."),
    "memory_fragmented": ("memory_free_bytes", 64 * GIB, "64GiB are free, in small pieces."),
    "driver_allocation_failures": (
        "memory_driver_residual_bytes",
        110 * GIB,
        "The driver holds 110GiB.",
    ),
    "driver_fault": ('source_success{source="nvml"}', 0, "NVML answers (1) or fails (0): 0."),
    "driver_stalled": (
        'source_pending_seconds{source="nvml"}',
        75,
        "A call to NVML has been out for 75 s.",
    ),
    "telemetry_gap": ("memory_available_bytes", 8 * GIB, "8GiB can still be allocated."),
    "low_power_state": ("gpu_sm_clock_hertz", 695e6, "The SM clock is at 695 MHz."),
    "thermal_slowdown": (
        'gpu_event_reason_ratio{reason="sw_thermal_slowdown"}',
        0.125,
        "Heat has held the clock down for 12.5 % of 10 min.",
    ),
    "power_plateau": ("gpu_power_watts", 61, "The GPU draws 61 W."),
    "board_hot": ("thermal_hottest_celsius", 97.4, "The hottest zone is at 97 C."),
    "gpu_hot": ("gpu_temperature_celsius", 91, "The die is at 91 C."),
    "unclean_reboot": (
        'condition_last_change_timestamp_seconds{condition="unclean_reboot"}',
        1796000000,
        "Seen after the start at 1796000000 (Unix seconds).",
    ),
    "bandwidth_degraded": (
        "workload_step_seconds",
        0.094,
        "The slowest workload takes 0.094 s a step.",
    ),
    "pool_overcommitted": ("memory_available_bytes", 12 * GIB, "12GiB can still be allocated."),
    "squeezed": ("memory_available_bytes", 5 * GIB, "5GiB can still be allocated."),
    "orphaned_memory": ("memory_available_bytes", 9 * GIB, "9GiB can still be allocated."),
    "busy_without_progress": ("gpu_power_watts", 22, "The GPU draws 22 W."),
}
"""For each condition a reading and the words that the alert must make of it."""


@pytest.mark.parametrize("path", rules.FILES, ids=lambda path: path.name)
def test_the_files_are_those_of_the_catalogue(path: Path) -> None:
    """What is committed is what the catalogue gives (`python -m tests.house.rules`)."""
    assert path.read_text() == rules.written(rules.FILES[path]())


def test_every_verdict_that_needs_somebody_is_an_alert() -> None:
    """Each condition has an alert for each severity it can reach and none for information."""
    about = [
        (condition[1], rule["labels"]["severity"])
        for rule in RULES
        if (condition := re.search(r'_state\{condition="(\w+)"', rule["expr"]))
    ]
    assert sorted(about) == sorted(
        (kind.name, state.label)
        for kind in CATALOGUE
        for state in kind.remedies
        if state >= State.WARNING
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_whole(rule: dict[str, Any]) -> None:
    """Each alert says what it is, what helps and where the runbook is; a critical one stays."""
    assert set(rule["annotations"]) == {"summary", "description", "remedy", "runbook_url"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule.get("keep_firing_for") == (
        "15m" if rule["labels"]["severity"] == "critical" else None
    )
    anchor = re.search(r"/runbook#(\w+)", rule["annotations"]["runbook_url"])
    assert anchor
    assert anchor[1] in {entry.name for entry in runbook.entries(runbook.RUNBOOK.read_text())}


def test_what_the_daemon_has_held_is_not_held_again() -> None:
    """Only the alerts about the watch and the fleet wait; a condition's pages at once."""
    of_conditions = {name for kind in CONDITIONS for name in _names(kind)}
    assert of_conditions & {rule["alert"] for rule in RULES if "for" in rule} == set()


def _names(kind: Any) -> list[str]:
    return [alert_name(kind.name, severity) for severity in rules.severities(kind)]


def test_the_rules_use_only_metrics_that_exist() -> None:
    """A metric that was renamed leaves no rule behind that can never fire."""
    text = "".join(path.read_text() for path in rules.FILES)
    used = set(re.findall(r"\bsparkwatch_[a-z0-9_]+", text))
    recorded = {
        part
        for rule in rules.recording()["groups"][0]["rules"]
        for part in rule["record"].split(":")
    }
    assert used - recorded - {family.full_name for family in FAMILIES} == set()


@pytest.mark.integration
def test_promtool_takes_configuration_and_rules(promtool: Path) -> None:
    """The files as committed, the example of a fleet's targets included, are valid."""
    place = ROOT / "deploy" / "prometheus"
    checked = subprocess.run(
        [promtool, "check", "config", place / "prometheus.yml"],
        check=True,
        capture_output=True,
        text=True,
    )
    linted = subprocess.run(
        [promtool, "check", "rules", "--lint-fatal", *rules.FILES],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "FAILED" not in checked.stdout + linted.stdout


@pytest.mark.integration
@pytest.mark.parametrize("kind", CONDITIONS, ids=lambda kind: kind.name)
def test_a_condition_pages_as_long_as_it_stands(kind: Any, promtool: Path, tmp_path: Path) -> None:
    """Silent while ok or info, firing with the state, resolved after it, and right without data.

    Minutes 0-2 ok, 3-4 info, 5-9 warning, 10-14 critical, 15-39 ok, 40-44 critical, then no data.
    A warning stands through the critical state and goes with the data; a critical alert outlives
    state and data by 15 minutes. A condition that is never critical stays at its warning.
    """
    levels = rules.severities(kind)
    worst = levels[0]
    timeline = ["ok"] * 3 + ["info"] * 2 + ["warning"] * 5 + [worst] * 5
    timeline += ["ok"] * 25 + [worst] * 5 + ["-"]
    labels = {**HERE, "gotcha": kind.gotcha, "condition": kind.name}
    firing = {
        "warning": {
            **dict.fromkeys((5, 9, 10, 14, 40, 44), 1),
            **dict.fromkeys((4, 15, 39, 45), 0),
        },
        "critical": {
            **dict.fromkeys((10, 14, 15, 29, 40, 44, 45, 59), 1),
            **dict.fromkeys((9, 31, 39, 61), 0),
        },
    }
    run(
        promtool,
        tmp_path,
        states(kind.name, kind.gotcha, timeline),
        [
            (minute, alert_name(kind.name, level), [{**labels, "severity": level}] * fires)
            for level in levels
            for minute, fires in firing[level].items()
        ],
    )


@pytest.mark.integration
@pytest.mark.parametrize("kind", CONDITIONS, ids=lambda kind: kind.name)
def test_an_alert_says_its_number(kind: Any, promtool: Path, tmp_path: Path) -> None:
    """Each alert has the judged quantity in words with its unit, and loses only that without it."""
    metric, value, words = UNITS[kind.name]
    name, _, matchers = metric.partition("{")
    more = dict(re.findall(r'(\w+)="(\w+)"', matchers))
    level = rules.severities(kind)[0]
    alert = alert_name(kind.name, level)
    rule = next(rule for rule in RULES if rule["alert"] == alert)
    bare = {
        key: re.sub(r"\{\{ with .*?\{\{ end \}\}", "", text).replace(
            "{{ $labels.instance }}", HERE["instance"]
        )
        for key, text in rule["annotations"].items()
    }
    full = bare | {
        "description": bare["description"].replace(
            " The daemon's own", f" {words} The daemon's own"
        )
    }
    labels = {**HERE, "gotcha": kind.gotcha, "condition": kind.name, "severity": level}
    for words_now, inputs in (
        (bare, {}),
        (full, {series(name, **HERE, **more): f"{value}x2"}),
    ):
        run(
            promtool,
            tmp_path,
            states(kind.name, kind.gotcha, [level] * 3) | inputs,
            spoken=[
                {
                    "eval_time": "1m",
                    "alertname": alert,
                    "exp_alerts": [{"exp_labels": labels, "exp_annotations": words_now}],
                }
            ],
        )


@pytest.mark.integration
def test_a_watch_that_cannot_be_reached(promtool: Path, tmp_path: Path) -> None:
    """Down after two minutes, not for one missed scrape, and over with the first that succeeds."""
    down = {**HERE, "severity": "warning"}
    run(
        promtool,
        tmp_path,
        {series("up", **HERE): "1 1 1 0 1 1 0x5 1x5"},
        [
            (3, "*", []),
            (4, "*", []),
            (7, "*", []),
            (8, "SparkWatchDown", [down]),
            (11, "SparkWatchDown", [down]),
            (12, "*", []),
        ],
    )


@pytest.mark.integration
def test_a_watch_that_is_not_in_the_job_is_nobody_s(promtool: Path, tmp_path: Path) -> None:
    """Other targets that are down, or no target at all, are no alert of these rules."""
    other = {"instance": "db:9100", "job": "node"}
    run(promtool, tmp_path, {series("up", **other): "0x9"}, [(9, "*", [])])
    run(promtool, tmp_path, {}, [(9, "*", [])])


@pytest.mark.integration
def test_a_loop_that_stands_still(promtool: Path, tmp_path: Path) -> None:
    """Stale where ticks stop and the page goes on; not where the box is down, which is said."""
    ticks = series("ticks_total", **HERE)
    stale = {**HERE, "severity": "warning"}
    run(
        promtool,
        tmp_path,
        {ticks: "0+60x5 300x9 360+60x9", series("up", **HERE): "1x25"},
        [
            (5, "*", []),
            (10, "*", []),
            (13, "SparkWatchStale", [stale]),
            (14, "SparkWatchStale", [stale]),
            (16, "*", []),
        ],
    )
    run(
        promtool,
        tmp_path,
        {ticks: "0+60x5 stale", series("up", **HERE): "1x5 0x15"},
        [(minute, "SparkWatchStale", []) for minute in (8, 12, 20)],
    )


@pytest.mark.integration
def test_a_source_that_fails(promtool: Path, tmp_path: Path) -> None:
    """Stale after ten minutes for a source that had answered; never for one that cannot be read."""
    inputs = {
        series("source_success", source="rails", **HERE): "1x2 0x14 1x9",
        series("source_last_success_timestamp_seconds", source="rails", **HERE): "60x26",
        series("source_success", source="kernel_log", **HERE): "0x26",
    }
    stale = {**HERE, "source": "rails", "severity": "warning"}
    run(
        promtool,
        tmp_path,
        inputs,
        [
            (12, "*", []),
            (13, "SparkWatchSourceStale", [stale]),
            (17, "SparkWatchSourceStale", [stale]),
            (18, "*", []),
        ],
    )
    gone = {name: f"{values.split(' 1x9')[0]} stale" for name, values in inputs.items()}
    run(promtool, tmp_path, gone, [(19, "SparkWatchSourceStale", [])])


@pytest.mark.integration
def test_a_condition_that_went_blind(promtool: Path, tmp_path: Path) -> None:
    """Blind where it was judged and its source failed, or does not come back, for five minutes."""
    blind = {**HERE, "gotcha": "G3", "condition": "memory_low", "severity": "warning"}
    timeline = ["ok"] * 3 + ["unknown"] * 10 + ["ok"] * 3
    judged = {
        series("condition_changes_total", gotcha="G3", condition="memory_low", to="ok", **HERE): (
            "1x15"
        )
    }
    failed = {series("source_success", source="meminfo", **HERE): "1x2 0x9 1x2"}
    out = {
        series("source_success", source="meminfo", **HERE): "1x15",
        series("source_pending_seconds", source="meminfo", **HERE): "_x3 0+60x9 stale",
    }
    checks = [
        (7, "SparkWatchConditionBlind", []),
        (9, "SparkWatchConditionBlind", [blind]),
        (12, "SparkWatchConditionBlind", [blind]),
        (13, "SparkWatchConditionBlind", []),
    ]
    here = states("memory_low", "G3", timeline)
    run(promtool, tmp_path, here | judged | failed, checks)
    run(promtool, tmp_path, here | judged | out, checks)
    quiet: list[Check] = [(minute, "SparkWatchConditionBlind", []) for minute in (9, 12)]
    run(promtool, tmp_path, here | failed, quiet)  # it was never judged
    run(promtool, tmp_path, here | judged | {next(iter(failed)): "1x15"}, quiet)  # unknown, but fed


@pytest.mark.integration
def test_unknown_for_want_of_load_is_not_blind(promtool: Path, tmp_path: Path) -> None:
    """A rule that needs load or a feed is unknown half of the day, whatever its sources do."""
    inputs = {series("source_success", source="nvml", **HERE): "0x15"}
    for kind in CATALOGUE:
        if kind.needs is not None:
            labels = {"gotcha": kind.gotcha, "condition": kind.name}
            inputs |= states(kind.name, kind.gotcha, ["unknown"] * 15)
            inputs[series("condition_changes_total", to="ok", **labels, **HERE)] = "1x15"
    run(promtool, tmp_path, inputs, [(9, "*", []), (14, "*", [])])


@pytest.mark.integration
def test_a_box_that_is_lost(promtool: Path, tmp_path: Path) -> None:
    """Down within a quarter of an hour of something critical is a page of its own that stays."""
    critical = ["ok"] * 3 + ["critical"] * 3 + ["-"]
    lost = {**HERE, "severity": "critical"}
    inputs = states("memory_collapse", "G3", critical) | {series("up", **HERE): "1x5 0x50"}
    run(
        promtool,
        tmp_path,
        inputs,
        [
            (6, "SparkWatchBoxLost", []),
            (7, "SparkWatchBoxLost", [lost]),
            (33, "SparkWatchBoxLost", [lost]),
            (38, "SparkWatchBoxLost", []),
        ],
    )


@pytest.mark.integration
@pytest.mark.parametrize(
    ("condition", "timeline"),
    [
        ("unclean_reboot", ["critical"] * 6 + ["-"]),
        ("memory_collapse", ["warning"] * 6 + ["-"]),
        ("memory_collapse", ["critical"] + ["ok"] * 20 + ["-"]),
    ],
    ids=["a reboot that stands for a day", "a warning", "long before"],
)
def test_a_box_that_is_only_down(
    condition: str, timeline: list[str], promtool: Path, tmp_path: Path
) -> None:
    """What is over, was no more than a warning or is long past does not make a box lost."""
    here = [minute != "-" for minute in timeline]
    up = " ".join("1" if seen else "0" for seen in here) + " 0x10"
    inputs = states(condition, "G4", timeline) | {series("up", **HERE): up}
    run(
        promtool,
        tmp_path,
        inputs,
        [(len(timeline) + minute, "SparkWatchBoxLost", []) for minute in range(8)],
    )


@pytest.mark.integration
def test_several_boxes_at_once(promtool: Path, tmp_path: Path) -> None:
    """Two of three are one cause; one of three is not, nor are two of seven."""
    said = {
        "job": "spark-watch",
        "gotcha": "G4",
        "condition": "board_hot",
        "severity": "warning",
    }

    def fleet(size: int, hot: int) -> dict[str, str]:
        inputs: dict[str, str] = {}
        for number in range(size):
            box = {"instance": f"{number}:9810"}
            state = "warning" if number < hot else "ok"
            inputs |= states("board_hot", "G4", ["ok"] * 2 + [state] * 4 + ["ok"] * 3, **box)
            inputs[series("up", **{**HERE, **box})] = "1x9"
        return inputs

    name = "SparkWatchSeveralBoxes"
    run(promtool, tmp_path, fleet(3, 2), [(2, name, []), (4, name, [said]), (6, name, [])])
    run(promtool, tmp_path, fleet(3, 1), [(4, name, [])])
    run(promtool, tmp_path, fleet(7, 2), [(4, name, [])])


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "metric", "values"),
    [
        ("SparkWatchHotterThanPeers", "thermal_hottest_celsius", ("70", "89")),
        ("SparkWatchSlowerThanPeers", "gpu_sm_clock_hertz", ("2.4e9", "1.6e9")),
    ],
)
def test_one_box_unlike_its_peers(
    name: str, metric: str, values: tuple[str, str], promtool: Path, tmp_path: Path
) -> None:
    """One busy box of three that stands out is named; an idle one, or one of two, is not."""
    usual, odd = values
    gpu = {"gpu": "0"} if metric.startswith("gpu") else {}

    def fleet(size: int, load: str) -> dict[str, str]:
        inputs: dict[str, str] = {}
        for number in range(size):
            box = {**HERE, "instance": f"{number}:9810"}
            value = odd if number == 0 else usual
            inputs[series(metric, **box, **gpu)] = f"{usual}x10 {value}x40 {usual}x30"
            inputs[series("gpu_utilization_ratio", gpu="0", **box)] = (
                f"{load if number == 0 else '0.95'}x90"
            )
        return inputs

    said = {**HERE, "instance": "0:9810", "severity": "warning"}
    checks = [(12, name, []), (45, name, [said]), (80, name, []), (100, name, [])]
    run(promtool, tmp_path, fleet(3, "0.95"), checks)
    run(promtool, tmp_path, fleet(3, "0.1"), [(45, name, [])])
    run(promtool, tmp_path, fleet(2, "0.95"), [(45, name, [])])


def _full_and_hot(samples: Iterator[Sample]) -> Iterator[Sample]:
    """Take a healthy box to the edge of health: 98 % in use and flat, 86 C, 100 W, 2.2 GHz."""
    for sample in samples:
        memory = sample.memory
        if memory is not None and memory.total_bytes is not None:
            left = memory.total_bytes // 50
            memory = replace(
                memory, available_bytes=left, free_bytes=left // 2, cached_bytes=left // 2
            )
        gpus = sample.gpus and tuple(
            replace(
                gpu,
                power_watts=100.0,
                temperature_celsius=86.0,
                sm_hertz=2.2e9,
                utilization_ratio=0.96,
            )
            for gpu in sample.gpus
        )
        yield replace(sample, memory=memory, gpus=gpus)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "edge"),
    [
        ("healthy-decode", False),
        ("healthy-decode", True),
        ("healthy-training", False),
        ("model-load", False),
        ("idle", False),
    ],
)
def test_nobody_is_woken_by_a_healthy_box(
    name: str, edge: bool, promtool: Path, tmp_path: Path
) -> None:
    """Half an hour of a healthy box, judged by the product, raises no alert at any minute."""
    source = SimulatedSource(name, interval_seconds=1.0)
    header = TraceHeader(
        interval_seconds=1.0, machine=source.machine, origin="", recorder="spark-watch"
    )
    judge = judge_for(header, ConditionSettings())
    samples = islice(source.samples(), 1800)
    timelines: dict[tuple[str, str], list[str]] = {}
    for number, sample in enumerate(_full_and_hot(samples) if edge else samples):
        judge.update(sample)
        if number % 15 == 14:
            for standing in judge.standing(sample.t):
                finding = standing.finding
                timelines.setdefault((finding.condition, finding.gotcha), []).append(
                    finding.state.label
                )
    inputs = {series("up", **HERE): "1x120", series("ticks_total", **HERE): "0+15x120"}
    for (condition, gotcha), timeline in timelines.items():
        inputs |= states(condition, gotcha, timeline)
    minutes = len(next(iter(timelines.values()))) // 4
    assert minutes >= 8
    checks: list[Check] = [(minute, "*", []) for minute in range(minutes)]
    run(promtool, tmp_path, inputs, checks, interval="15s")
