"""Writes the dashboards: ``python -m tests.grafana.generate`` from the root of the tree.

A dashboard's uid is its file's name. Levels drawn into panels are those of the settings' defaults.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from spark_watch.model import GIB
from spark_watch.settings.conditions import ConditionSettings
from tests.conftest import ROOT

FOLDER: Final = ROOT / "grafana" / "dashboards"

Json = dict[str, Any]

LEVELS: Final = ConditionSettings()

DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}

BOX: Final = 'job=~"$job", instance=~"$instance"'
"""The selector of every query: the boxes that are chosen above the panels."""

WEIGHTS: Final = {"ok": 0, "unknown": 1, "info": 2, "warning": 3, "critical": 4}
DOWN: Final = 5

COLOURS: Final = {
    "ok": "green",
    "unknown": "purple",
    "info": "blue",
    "warning": "orange",
    "critical": "red",
    "down": "dark-red",
}


def metric(name: str, *labels: str) -> str:
    """Return a series of the chosen boxes."""
    return f"sparkwatch_{name}{{{', '.join((BOX, *labels))}}}"


def state() -> str:
    """Return every condition's state as a number, the larger the worse."""
    series = [
        f"{metric('condition_state', f'state={chr(34)}{label}{chr(34)}')} * {weight}"
        for label, weight in WEIGHTS.items()
    ]
    return f"sum by (job, instance, gotcha, condition) ({' or '.join(series)})"


def worst() -> str:
    """Return the worst state of every box; a box that does not answer is down, never fine."""
    silent = f"(up{{{BOX}}} == bool 0) * {DOWN - WEIGHTS['unknown']} + {WEIGHTS['unknown']}"
    return f"max by (job, instance) ({state()}) or max by (job, instance) ({silent})"


def rate(name: str, *labels: str) -> str:
    """Return the rate of a counter."""
    return f"rate({metric(name, *labels)}[$__rate_interval])"


def target(expression: str, legend: str, ref: str, kind: str) -> Json:
    """Return a query. A table's and a number's is asked for the range's end only.

    Over the whole range a number would be the last there was, however long ago that is.
    """
    instant = kind in {"table", "stat"}
    return {
        "datasource": DATASOURCE,
        "expr": expression,
        "instant": instant,
        "range": not instant,
        "format": "table" if kind == "table" else "time_series",
        "legendFormat": legend,
        "refId": ref,
    }


def states_mapping() -> list[Json]:
    """Return the words and colours of the states."""
    options = {
        str(weight): {"text": label, "color": COLOURS[label], "index": weight}
        for label, weight in (*WEIGHTS.items(), ("down", DOWN))
    }
    return [{"type": "value", "options": options}]


def steps(*levels: tuple[float, str], base: str = "transparent") -> Json:
    """Return thresholds: a colour from each level on."""
    return {
        "mode": "absolute",
        "steps": [
            {"value": None, "color": base},
            *({"value": value, "color": colour} for value, colour in levels),
        ],
    }


def panel(
    kind: str,
    title: str,
    description: str,
    queries: list[tuple[str, str]],
    *,
    unit: str,
    size: tuple[int, int],
    defaults: Json | None = None,
    options: Json | None = None,
    overrides: list[Json] | None = None,
    transformations: list[Json] | None = None,
) -> Json:
    """Return a panel without its place.

    Args:
        kind: a panel of Grafana itself.
        title: what it shows.
        description: what to read off it.
        queries: expression and legend.
        unit: Grafana's name of the unit.
        size: width of 24 and height.
        defaults: of the fields, beside the unit.
        options: the panel's own.
        overrides: for single fields.
        transformations: before drawing.
    """
    made: Json = {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": [
            target(expression, legend, chr(ord("A") + number), kind)
            for number, (expression, legend) in enumerate(queries)
        ],
        "fieldConfig": {
            "defaults": {"unit": unit, **(defaults or {})},
            "overrides": overrides or [],
        },
        "options": options or {},
        "gridPos": {"w": size[0], "h": size[1], "x": 0, "y": 0},
    }
    if transformations:
        made["transformations"] = transformations
    return made


def series(
    title: str,
    description: str,
    queries: list[tuple[str, str]],
    *,
    unit: str,
    levels: Json | None = None,
    stacked: bool = False,
    lowest: float | None = 0,
    highest: float | None = None,
    size: tuple[int, int] = (12, 8),
    overrides: list[Json] | None = None,
) -> Json:
    """Return a chart over time; ``levels`` are drawn as lines across it."""
    custom: Json = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "line" if levels else "off"},
    }
    defaults: Json = {"custom": custom, "color": {"mode": "palette-classic"}}
    if levels:
        defaults["thresholds"] = levels
    if lowest is not None:
        defaults["min"] = lowest
    if highest is not None:
        defaults["max"] = highest
    return panel(
        "timeseries",
        title,
        description,
        queries,
        unit=unit,
        size=size,
        defaults=defaults,
        options={
            "legend": {
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
                "calcs": [],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        overrides=overrides,
    )


def timeline(
    title: str,
    description: str,
    queries: list[tuple[str, str]],
    *,
    size: tuple[int, int],
    mappings: list[Json] | None = None,
) -> Json:
    """Return a row of coloured stretches for each series."""
    return panel(
        "state-timeline",
        title,
        description,
        queries,
        unit="none",
        size=size,
        defaults={
            "custom": {"fillOpacity": 80, "lineWidth": 0},
            "color": {"mode": "thresholds"},
            "mappings": mappings or states_mapping(),
            "thresholds": steps(base="text"),
        },
        options={
            "mergeValues": True,
            "showValue": "never",
            "alignValue": "left",
            "rowHeight": 0.85,
            "legend": {
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": False,
                "calcs": [],
            },
            "tooltip": {"mode": "single", "sort": "none"},
        },
    )


def stat(
    title: str,
    description: str,
    expression: str,
    *,
    unit: str,
    defaults: Json,
    size: tuple[int, int] = (4, 4),
) -> Json:
    """Return one number."""
    return panel(
        "stat",
        title,
        description,
        [(expression, "{{instance}}")],
        unit=unit,
        size=size,
        defaults=defaults,
        options={
            "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
            "orientation": "auto",
            "textMode": "auto",
            "wideLayout": True,
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "showPercentChange": False,
            "percentChangeColorMode": "standard",
        },
    )


def column(name: str, shown: str, **properties: Any) -> Json:
    """Return how one column of a table is shown."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [
            {"id": "displayName", "value": shown},
            *({"id": key.replace("__", "."), "value": value} for key, value in properties.items()),
        ],
    }


def coloured(name: str, colour: str) -> Json:
    """Return the colour of one line."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
    }


def table(
    title: str,
    description: str,
    queries: list[tuple[str, str]],
    *,
    by: str,
    columns: list[Json],
    hidden: list[str],
    size: tuple[int, int],
    unit: str = "none",
) -> Json:
    """Return a table with a row for each series, largest first.

    Args:
        title: what it shows.
        description: what to read off it.
        queries: expression and nothing.
        by: the column it is sorted by, as it is shown.
        columns: how columns are shown.
        hidden: labels that are no columns.
        size: width and height.
        unit: of columns without their own.
    """
    transformations: list[Json] = []
    if len(queries) > 1:
        transformations.append(
            {"id": "joinByField", "options": {"byField": "instance", "mode": "outer"}}
        )
    transformations.append(
        {
            "id": "organize",
            "options": {
                "excludeByName": dict.fromkeys(hidden, True),
                "indexByName": {},
                "renameByName": {},
            },
        }
    )
    return panel(
        "table",
        title,
        description,
        queries,
        unit=unit,
        size=size,
        defaults={"custom": {"align": "left", "cellOptions": {"type": "auto"}, "inspect": False}},
        options={
            "showHeader": True,
            "cellHeight": "sm",
            "frameIndex": 0,
            "sortBy": [{"displayName": by, "desc": True}],
        },
        overrides=columns,
        transformations=transformations,
    )


def conditions(size: tuple[int, int]) -> Json:
    """Return the timeline of all conditions."""
    return timeline(
        "Conditions",
        "The state of every condition: green ok, purple unknown, blue info, orange warning, red "
        "critical. A hole is time in which Prometheus got no answer.",
        [(state(), "{{gotcha}} {{condition}}")],
        size=size,
    )


def available() -> Json:
    """Return the pool's reserve with the levels of memory_low."""
    low = LEVELS.memory_low
    return series(
        "Available memory",
        "What can still be allocated, with the lowest reading of each minute, and what CUDA calls "
        "free. Lines: where memory_low begins to look at the slope, and where it is nearly gone.",
        [
            (metric("memory_available_bytes"), "available"),
            (metric("memory_available_low_bytes"), "available, lowest of 60 s"),
            (metric("memory_free_bytes"), "free (what CUDA sees)"),
        ],
        unit="bytes",
        levels=steps((low.gone_gib * GIB, "red"), (low.low_gib * GIB, "orange")),
    )


def power() -> Json:
    """Return the GPU's power with the practical ceiling."""
    return series(
        "GPU power",
        "Power with its lowest and highest reading of each minute. The line is the practical "
        "ceiling of a GB10's GPU: there it is as fast as it gets.",
        [
            (metric("gpu_power_watts"), "GPU {{gpu}}"),
            (metric("gpu_power_low_watts"), "GPU {{gpu}}, lowest of 60 s"),
            (metric("gpu_power_high_watts"), "GPU {{gpu}}, highest of 60 s"),
        ],
        unit="watt",
        levels=steps((LEVELS.power_plateau.ceiling_watts, "blue")),
    )


def temperature() -> Json:
    """Return die and board with the levels of gpu_hot and board_hot."""
    board = LEVELS.board_hot
    return series(
        "Temperature",
        "The GPU's die and the hottest thermal zone. Lines: gpu_hot warns for the die, board_hot "
        "warns and is critical for the zone.",
        [
            (metric("gpu_temperature_celsius"), "GPU {{gpu}} die"),
            (metric("thermal_hottest_celsius"), "hottest zone"),
        ],
        unit="celsius",
        lowest=20,
        levels=steps(
            (LEVELS.gpu_hot.warning_celsius, "yellow"),
            (board.warning_celsius, "orange"),
            (board.critical_celsius, "red"),
        ),
    )


def clock() -> Json:
    """Return the SM clock with the levels of low_power_state."""
    return series(
        "SM clock",
        "The clock with its lowest reading of each minute. Under load a clock below the line is "
        "low_power_state; at rest it says nothing.",
        [
            (metric("gpu_sm_clock_hertz"), "GPU {{gpu}}"),
            (metric("gpu_sm_clock_low_hertz"), "GPU {{gpu}}, lowest of 60 s"),
        ],
        unit="hertz",
        levels=steps((LEVELS.low_power_state.low_hertz, "orange")),
    )


def reasons(size: tuple[int, int] = (12, 8)) -> Json:
    """Return the clock's event reasons."""
    return timeline(
        "Clock event reasons",
        "What NVML says holds the clock down: blue while a reason stands. gpu_idle is rest, "
        "sw_power_cap the usual ceiling; slowdown by heat is what matters.",
        [(metric("gpu_event_reason_active"), "GPU {{gpu}} {{reason}}")],
        size=size,
        mappings=[
            {
                "type": "value",
                "options": {
                    "0": {"text": "no", "color": "transparent", "index": 0},
                    "1": {"text": "stands", "color": "blue", "index": 1},
                },
            }
        ],
    )


def processes() -> Json:
    """Return who holds the pool."""
    return series(
        "GPU memory by process",
        "What each process holds of the pool as NVML counts it, live processes only.",
        [(metric("gpu_process_memory_bytes"), "{{name}} {{pid}}")],
        unit="bytes",
        stacked=True,
    )


def pressure() -> Json:
    """Return memory pressure with the levels of memory_stalled."""
    stalled = LEVELS.memory_stalled
    return series(
        "Memory pressure",
        "Share of ten seconds in which some, or every, task waited for memory. A healthy box is at "
        "0 or a few per cent; the line is where memory_stalled warns.",
        [
            (metric("memory_pressure_some_ratio"), "some"),
            (metric("memory_pressure_full_ratio"), "full"),
        ],
        unit="percentunit",
        highest=1,
        levels=steps((stalled.full_ratio, "orange")),
    )


def swap() -> Json:
    """Return the swap traffic with the level of swap_thrash."""
    return series(
        "Swap traffic",
        "Bytes read back from swap and written to it. Cold pages that leave are nothing; reading "
        "back above the line is swap_thrash.",
        [
            (rate("swapped_in_bytes_total"), "in"),
            (rate("swapped_out_bytes_total"), "out"),
        ],
        unit="binBps",
        levels=steps((LEVELS.swap_thrash.mib_per_second * 1024**2, "orange")),
    )


def box() -> list[Json]:
    """Return one box during a run."""
    shared = metric("memory_shared_bytes")
    cache = f"{metric('memory_cached_bytes')} + {metric('memory_buffers_bytes')} - {shared}"
    return [
        stat(
            "Worst state",
            "The worst state of all conditions; down where the box does not answer.",
            worst(),
            unit="none",
            defaults={"mappings": states_mapping(), "thresholds": steps(base="text")},
            size=(6, 4),
        ),
        stat(
            "Available",
            "What can still be allocated from the pool.",
            metric("memory_available_bytes"),
            unit="bytes",
            defaults={"thresholds": steps(base="text")},
            size=(6, 4),
        ),
        stat(
            "Until the pool is empty",
            "Seconds at the present rate of falling; none while it does not fall or is unknown.",
            metric("memory_exhaustion_seconds"),
            unit="s",
            defaults={"thresholds": steps(base="text"), "noValue": "-"},
            size=(6, 4),
        ),
        stat(
            "GPU busy",
            "Utilisation as NVML says: a spinning kernel counts as busy.",
            metric("gpu_utilization_ratio"),
            unit="percentunit",
            defaults={"thresholds": steps(base="text")},
            size=(6, 4),
        ),
        conditions((24, 15)),
        series(
            "The pool",
            "One pool for CPU and GPU: the driver's part (what no line of /proc/meminfo accounts "
            "for), programs, shared memory, page cache and what is free.",
            [
                (metric("memory_driver_residual_bytes"), "driver"),
                (metric("memory_anonymous_bytes"), "anonymous"),
                (shared, "shared"),
                (cache, "page cache"),
                (metric("memory_free_bytes"), "free"),
            ],
            unit="bytes",
            stacked=True,
            overrides=[
                coloured("driver", "purple"),
                coloured("anonymous", "blue"),
                coloured("shared", "light-blue"),
                coloured("page cache", "yellow"),
                coloured("free", "green"),
            ],
        ),
        available(),
        processes(),
        pressure(),
        power(),
        temperature(),
        clock(),
        reasons(),
        series(
            "Memory bandwidth",
            "Bytes a workload moves, where it says so. From the line on it is memory bound: plan "
            "with this number, not with the specification.",
            [(metric("workload_memory_bytes_per_second"), "{{workload}}")],
            unit="Bps",
            levels=steps((LEVELS.bandwidth_ceiling.budget_low_bytes_per_second, "blue")),
        ),
        series(
            "Progress",
            "Tokens, prompt tokens and steps a second, as the workloads report them.",
            [
                (rate("workload_generation_tokens_total"), "{{workload}} tokens"),
                (rate("workload_prompt_tokens_total"), "{{workload}} prompt tokens"),
                (rate("workload_steps_total"), "{{workload}} steps"),
            ],
            unit="cps",
        ),
        swap(),
        timeline(
            "Sources",
            "Whether each source answers. Red: its readings are missing and its conditions turn "
            "unknown.",
            [(metric("source_success"), "{{source}}")],
            size=(12, 8),
            mappings=answers(),
        ),
        *daemon(),
    ]


def answers() -> list[Json]:
    """Return the words and colours of 1 and 0 where 1 is good."""
    return [
        {
            "type": "value",
            "options": {
                "0": {"text": "fails", "color": "red", "index": 0},
                "1": {"text": "answers", "color": "green", "index": 1},
            },
        }
    ]


def daemon() -> list[Json]:
    """Return the black box's and the daemon's own health."""
    return [
        series(
            "Black box",
            "Samples written to disk and samples lost, a second. Nothing written while the daemon "
            "runs: after a power loss there is no record.",
            [
                (rate("recording_samples_total"), "written"),
                (rate("recording_dropped_samples_total"), "lost"),
            ],
            unit="cps",
            size=(8, 7),
        ),
        series(
            "Lateness of the loop",
            "How late ticks begin. More than two intervals while memory is short means that user "
            "space itself no longer runs.",
            [
                (metric("tick_lateness_high_seconds"), "highest of late"),
                (metric("tick_duration_seconds"), "time a tick takes"),
            ],
            unit="s",
            size=(8, 7),
        ),
        series(
            "Cost of spark-watch",
            "Share of one core that the daemon itself takes.",
            [(rate("self_cpu_seconds_total"), "CPU")],
            unit="percentunit",
            size=(8, 7),
        ),
    ]


def fleet() -> list[Json]:
    """Return all boxes, a row each, worst first."""
    link = {
        "title": "This box",
        "url": "/d/spark-watch-box?var-datasource=${datasource}&var-job=${job:queryparam}"
        "&var-instance=${__data.fields.instance}&${__url_time_range}",
        "targetBlank": False,
    }

    def per_box(expression: str) -> tuple[str, str]:
        return f"max by (instance) ({expression})", ""

    return [
        table(
            "Boxes",
            "A row for each box, worst first. A box that does not answer is down; a value that is "
            "not known is empty, never 0.",
            [
                per_box(worst()),
                (f"min by (instance) ({metric('memory_available_bytes')})", ""),
                per_box(metric("gpu_power_watts")),
                per_box(metric("gpu_temperature_celsius")),
                per_box(metric("thermal_hottest_celsius")),
                (f"min by (instance) ({metric('gpu_sm_clock_hertz')})", ""),
                per_box(metric("gpu_utilization_ratio")),
                per_box(f"time() - {metric('last_sample_timestamp_seconds')}"),
            ],
            by="state",
            columns=[
                column("instance", "box", links=[link]),
                column(
                    "Value #A",
                    "state",
                    mappings=states_mapping(),
                    custom__cellOptions={"type": "color-background", "mode": "basic"},
                ),
                column("Value #B", "available", unit="bytes"),
                column("Value #C", "power", unit="watt"),
                column("Value #D", "GPU die", unit="celsius"),
                column("Value #E", "hottest zone", unit="celsius"),
                column("Value #F", "SM clock", unit="hertz"),
                column("Value #G", "busy", unit="percentunit"),
                column("Value #H", "age of sample", unit="s"),
            ],
            hidden=["Time", *(f"Time {number}" for number in range(1, 9))],
            size=(24, 12),
        ),
        timeline(
            "State of each box",
            "The worst state of each box over time; dark red is a box that does not answer.",
            [(worst(), "{{instance}}")],
            size=(24, 9),
        ),
        series(
            "Available memory",
            "What can still be allocated on each box.",
            [(metric("memory_available_bytes"), "{{instance}}")],
            unit="bytes",
        ),
        series(
            "GPU power",
            "Power of each box's GPU: under one job the box that differs is the one to look at.",
            [(metric("gpu_power_watts"), "{{instance}} GPU {{gpu}}")],
            unit="watt",
        ),
        series(
            "SM clock",
            "Clock of each box's GPU: under one job the slow one holds up all.",
            [(metric("gpu_sm_clock_hertz"), "{{instance}} GPU {{gpu}}")],
            unit="hertz",
        ),
        series(
            "Hottest zone",
            "The hottest thermal zone of each box.",
            [(metric("thermal_hottest_celsius"), "{{instance}}")],
            unit="celsius",
            lowest=20,
            levels=steps(
                (LEVELS.board_hot.warning_celsius, "orange"),
                (LEVELS.board_hot.critical_celsius, "red"),
            ),
        ),
    ]


def incident() -> list[Json]:
    """Return what is asked after the fact: what stood, in which order, and who held memory."""
    raised = metric("condition_changes_total", 'to=~"warning|critical"')
    times = f"sum by (instance, gotcha, condition, to) (increase({raised}[$__range])) > 0.5"
    stood = metric("condition_state", 'state=~"warning|critical"')
    ever = f"max by (instance, condition) (max_over_time({stood}[$__range])) == 1"
    most = f"max_over_time({metric('gpu_process_memory_bytes')}[$__range])"
    return [
        table(
            "What was raised",
            "How often each condition became a warning or critical in the time shown.",
            [(times, "")],
            by="times",
            columns=[
                column("instance", "box"),
                column("to", "became"),
                column("Value", "times", decimals=0),
            ],
            hidden=["Time"],
            size=(12, 9),
        ),
        table(
            "Last changes",
            "When each condition last changed its state, as of the end of the time shown; newest "
            "first.",
            [(f"{metric('condition_last_change_timestamp_seconds')} * 1000", "")],
            by="changed",
            columns=[
                column("instance", "box"),
                column("Value", "changed", unit="dateTimeAsIso"),
            ],
            hidden=["Time", "__name__", "job"],
            size=(12, 9),
        ),
        timeline(
            "What stood",
            "The conditions that were a warning or critical, from then on in all their states: the "
            "first to turn is where to begin.",
            [
                (
                    f"{state()} and on (instance, condition) ({ever})",
                    "{{instance}} {{gotcha}} {{condition}}",
                )
            ],
            size=(24, 11),
        ),
        available(),
        processes(),
        power(),
        temperature(),
        clock(),
        reasons(),
        pressure(),
        swap(),
        series(
            "The kernel's distress",
            "Events a second: reclaim in the way of an allocation, failed compactions, pages read "
            "back soon after they were dropped, OOM kills.",
            [
                (rate("direct_reclaims_total"), "direct reclaims"),
                (rate("compaction_failures_total"), "failed compactions"),
                (rate("refaults_total"), "refaults"),
                (rate("oom_kills_total"), "OOM kills"),
            ],
            unit="cps",
        ),
        series(
            "Silence",
            "Age of the newest sample, and for how long a call into the driver has been out. Both "
            "stay near 0 on a box that lives.",
            [
                (f"time() - {metric('last_sample_timestamp_seconds')}", "age of sample"),
                (metric("source_pending_seconds"), "{{source}} call out"),
            ],
            unit="s",
            levels=steps((LEVELS.driver_stalled.warning_seconds, "orange")),
        ),
        table(
            "Who held the pool",
            "The most that each process held in the time shown, largest first.",
            [(f"max by (instance, name, pid) ({most})", "")],
            by="held",
            columns=[column("instance", "box"), column("Value", "held", unit="bytes")],
            hidden=["Time"],
            size=(12, 9),
        ),
        table(
            "Starts of spark-watch",
            "When the daemon started: a start that nobody made is a reboot; postmortem on the box "
            "tells which.",
            [(f"{metric('start_timestamp_seconds')} * 1000", "")],
            by="started",
            columns=[
                column("instance", "box"),
                column("Value", "started", unit="dateTimeAsIso"),
            ],
            hidden=["Time", "__name__", "job"],
            size=(12, 9),
        ),
    ]


def variable(name: str, label: str, query: str, *, several: bool) -> Json:
    """Return a variable filled by a query."""
    made: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        "hide": 0,
    }
    if several:
        made |= {"allValue": ".+", "current": {"text": "All", "value": "$__all"}}
    return made


def annotation(name: str, expression: str, colour: str, words: str, *, on: bool = True) -> Json:
    """Return marks at the moments that an expression's values are (milliseconds)."""
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": on,
        "hide": False,
        "iconColor": colour,
        "expr": expression,
        "step": "5s",
        "titleFormat": name,
        "textFormat": words,
        "useValueForTime": "on",
    }


def marks() -> list[Json]:
    """Return the annotations: what was raised, what was over, and starts of the daemon."""
    changed = f"{metric('condition_last_change_timestamp_seconds')} * 1000"

    def while_in(states: str) -> str:
        series = metric("condition_state", f'state=~"{states}"')
        return f"{changed} and on (job, instance, condition) ({series} == 1)"

    once = metric("condition_changes_total", 'to=~"warning|critical"')
    return [
        annotation(
            "Raised", while_in("warning|critical"), "red", "{{instance}} {{gotcha}} {{condition}}"
        ),
        annotation(
            "Over",
            f"{while_in('ok|info')} and on (job, instance, condition) ({once} > 0)",
            "green",
            "{{instance}} {{gotcha}} {{condition}}",
        ),
        annotation(
            "Start of spark-watch, maybe a reboot",
            f"{metric('start_timestamp_seconds')} * 1000",
            "blue",
            "{{instance}}",
        ),
    ]


def placed(panels: list[Json]) -> list[Json]:
    """Return the panels with ids and places: left to right, then the next row."""
    x = y = height = 0
    for number, one in enumerate(panels, start=1):
        place = one["gridPos"]
        if x + place["w"] > 24:
            x, y, height = 0, y + height, 0
        place["x"], place["y"] = x, y
        x += place["w"]
        height = max(height, place["h"])
        one["id"] = number
    return panels


def dashboard(
    uid: str, title: str, description: str, panels: list[Json], *, one_box: bool, since: str
) -> Json:
    """Return a whole dashboard."""
    name = "sparkwatch_build_info"
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["spark-watch"],
        "schemaVersion": 42,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "" if since == "now-24h" else "10s",
        "time": {"from": since, "to": "now"},
        "links": [
            {
                "title": "spark-watch",
                "type": "dashboards",
                "icon": "external link",
                "tooltip": "The other dashboards of spark-watch",
                "url": "",
                "tags": ["spark-watch"],
                "asDropdown": False,
                "targetBlank": False,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                    "hide": 0,
                },
                variable("job", "Job", f"label_values({name}, job)", several=True),
                variable(
                    "instance",
                    "Box",
                    f'label_values({name}{{job=~"$job"}}, instance)',
                    several=not one_box,
                ),
            ]
        },
        "annotations": {"list": marks()},
        "panels": placed(panels),
    }


def dashboards() -> dict[str, Json]:
    """Return every dashboard by its uid."""
    made = (
        dashboard(
            "spark-watch-box",
            "spark-watch: one box",
            "One Spark during a run.",
            box(),
            one_box=True,
            since="now-1h",
        ),
        dashboard(
            "spark-watch-fleet",
            "spark-watch: fleet",
            "Every Spark, a row each, worst first.",
            fleet(),
            one_box=False,
            since="now-1h",
        ),
        dashboard(
            "spark-watch-incident",
            "spark-watch: incident",
            "After the fact: what stood, in which order, and who held memory.",
            incident(),
            one_box=True,
            since="now-24h",
        ),
    )
    return {one["uid"]: one for one in made}


def text(one: Json) -> str:
    """Return a dashboard as its file holds it."""
    return json.dumps(one, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every dashboard, and drop what is none any more."""
    made = dashboards()
    for old in FOLDER.glob("*.json"):
        if old.stem not in made:
            old.unlink()
    for uid, one in made.items():
        (FOLDER / f"{uid}.json").write_text(text(one))


def metrics(one: Json) -> set[str]:
    """Return the names of all metrics that a dashboard names."""
    return set(re.findall(r"\bsparkwatch_\w+", json.dumps(one)))


if __name__ == "__main__":
    main()
