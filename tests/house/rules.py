"""The alert and recording rules, made from the catalogue; run as a module, this writes them.

What an alert is called and which labels it carries is also what the daemon's own push uses: two
reports of one incident are one alert.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.detectors.condition import Condition
from spark_watch.export.alert_push import alert_name
from spark_watch.model import State
from tests.conftest import ROOT

FOLDER: Final = ROOT / "deploy" / "prometheus" / "rules"
ALERTS: Final = FOLDER / "alerts.yml"
RECORDING: Final = FOLDER / "recording.yml"

JOB: Final = "spark-watch"
KEEP_FIRING: Final = "15m"
"""A box that dies takes its series along; the page about it must not vanish with them."""

GIBIBYTE: Final = "humanize1024"


@dataclass(frozen=True, slots=True)
class Shown:
    """The quantity that an alert shows.

    Args:
        metric: the metric, without prefix, with label matchers but instance and job.
        words: the text around it; ``{}`` stands for the value.
        form: the template function that writes it, ``humanize1024`` or a printf form.
        factor: what the value is multiplied by first.
    """

    metric: str
    words: str
    form: str
    factor: float = 1.0

    def template(self) -> str:
        """Return the alert's text; it is empty where the quantity is not there."""
        name, _, matchers = self.metric.partition("{")
        inner = f"{matchers.rstrip('}')}," if matchers else ""
        quoted = inner.replace('"', r"\"")
        scale = f" * {self.factor:g}" if self.factor != 1.0 else ""
        query = f"max(sparkwatch_{name}{{{quoted}instance=%q,job=%q}}){scale}"
        write = "humanize1024" if self.form == GIBIBYTE else f'printf "{self.form}"'
        value = "{{ . | first | value | " + write + " }}"
        return (
            '{{ with query (printf "' + query + '" $labels.instance $labels.job) }} '
            f"{self.words.format(value)}{{{{ end }}}}"
        )


AVAILABLE: Final = Shown("memory_available_bytes", "{}B can still be allocated.", GIBIBYTE)
FREE: Final = Shown("memory_free_bytes", "{}B are free, which is all that CUDA sees.", GIBIBYTE)
DRIVER: Final = Shown("memory_driver_residual_bytes", "The driver holds {}B.", GIBIBYTE)
CLOCK: Final = Shown("gpu_sm_clock_hertz", "The SM clock is at {} MHz.", "%.0f", 1e-6)
POWER: Final = Shown("gpu_power_watts", "The GPU draws {} W.", "%.0f")

SHOWN: Final[Mapping[str, Shown]] = {
    "memory_collapse": AVAILABLE,
    "memory_low": AVAILABLE,
    "memory_stalled": Shown(
        "memory_pressure_full_ratio", "All of it waited for memory {} % of 10 s.", "%.0f", 100
    ),
    "page_cache_squeeze": FREE,
    "swap_thrash": Shown("swap_in_bytes_per_second", "{}B/s come back from swap.", GIBIBYTE),
    "memory_fragmented": Shown("memory_free_bytes", "{}B are free, in small pieces.", GIBIBYTE),
    "driver_allocation_failures": DRIVER,
    "driver_fault": Shown(
        'source_success{source="nvml"}', "NVML answers (1) or fails (0): {}.", "%.0f"
    ),
    "driver_stalled": Shown(
        'source_pending_seconds{source="nvml"}', "A call to NVML has been out for {} s.", "%.0f"
    ),
    "telemetry_gap": AVAILABLE,
    "low_power_state": CLOCK,
    "thermal_slowdown": Shown(
        'gpu_event_reason_ratio{reason=~"[sh]w_thermal_slowdown"}',
        "Heat has held the clock down for {} % of 10 min.",
        "%.1f",
        100,
    ),
    "power_plateau": POWER,
    "board_hot": Shown("thermal_hottest_celsius", "The hottest zone is at {} C.", "%.0f"),
    "gpu_hot": Shown("gpu_temperature_celsius", "The die is at {} C.", "%.0f"),
    "unclean_reboot": Shown(
        'condition_last_change_timestamp_seconds{condition="unclean_reboot"}',
        "Seen after the start at {} (Unix seconds).",
        "%.0f",
    ),
    "bandwidth_degraded": Shown(
        "workload_step_seconds", "The slowest workload takes {} s a step.", "%.3f"
    ),
    "pool_overcommitted": AVAILABLE,
    "squeezed": AVAILABLE,
    "orphaned_memory": AVAILABLE,
    "busy_without_progress": POWER,
}
"""For each condition that can raise an alert the one number a person wants to see beside it."""


def severities(kind: type[Condition[Any]]) -> list[str]:
    """Return the severities a condition can reach, the worst first."""
    return [state.label for state in (State.CRITICAL, State.WARNING) if state in kind.remedies]


def condition_alerts(severity: str) -> Iterator[dict[str, Any]]:
    """Yield the alert of each condition that can reach a severity.

    A warning matches a critical state as well: it does not resolve when the state escalates, and
    Alertmanager lets the critical one silence it.
    """
    states = {"critical": 'state="critical"', "warning": 'state=~"warning|critical"'}[severity]
    for kind in CATALOGUE:
        if severity not in severities(kind):
            continue
        shown = SHOWN[kind.name].template()
        title = kind.name.replace("_", " ")
        rule: dict[str, Any] = {
            "alert": alert_name(kind.name, severity),
            "expr": "max without (state) (sparkwatch_condition_state"
            f'{{condition="{kind.name}",{states}}}) == 1',
        }
        if severity == "critical":
            rule["keep_firing_for"] = KEEP_FIRING
        rule["labels"] = {"severity": severity}
        rule["annotations"] = {
            "summary": f"{kind.gotcha} {title} on {{{{ $labels.instance }}}}: {severity}",
            "description": f"Rule: {kind.summary}.{shown} The daemon's own sentence is on "
            "http://{{ $labels.instance }}/.",
            "remedy": kind.remedies[State[severity.upper()]],
            "runbook_url": f"http://{{{{ $labels.instance }}}}/runbook#{kind.name}",
        }
        yield rule


LIVING: Final = (
    '{{ with query (printf "up{job=%q} == 1" $labels.job) }}'
    'http://{{ . | first | label "instance" }}/runbook#ANCHOR{{ end }}'
)
"""A box that is gone cannot show its runbook; any other one of the job can."""


def _living(anchor: str) -> str:
    return LIVING.replace("ANCHOR", anchor)


def blind_alert() -> dict[str, Any]:
    """Return the alert for a condition that was judged in this run of the daemon and now is blind.

    A condition that needs load, a feed or an event is unknown for good reasons, and one that was
    never judged lacks its input by nature: neither is blind.
    """
    by_sources: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for kind in CATALOGUE:
        if kind.needs is None and kind.sources:
            by_sources[kind.sources].append(kind.name)
    parts = []
    for sources, names in by_sources.items():
        matched = f'condition=~"{"|".join(names)}"'
        feeds = f'source=~"{"|".join(sources)}"'
        parts.append(
            f'max without (state) (sparkwatch_condition_state{{{matched},state="unknown"}}) == 1\n'
            "  and on (instance, job, condition) sum without (to) "
            f'(sparkwatch_condition_changes_total{{{matched},to!="unknown"}}) > 0\n'
            "  and on (instance, job) (\n"
            f"    min without (source) (sparkwatch_source_success{{{feeds}}}) == 0\n"
            f"    or max without (source) (sparkwatch_source_pending_seconds{{{feeds}}}) > 30)"
        )
    return {
        "alert": "SparkWatchConditionBlind",
        "expr": "\nor\n".join(parts),
        "for": "5m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "{{ $labels.gotcha }} {{ $labels.condition }} on {{ $labels.instance }} "
            "cannot be judged any more",
            "description": "It was judged before, and what it is judged from has failed for 5 min. "
            "Nothing would be said if it came now.",
            "remedy": "Look which source fails and why (first page of the daemon, its log). "
            "Silence of the driver or of /proc can be the first sign of the fault itself.",
            "runbook_url": "http://{{ $labels.instance }}/runbook#condition_blind",
        },
    }


def watch_alerts() -> Iterator[dict[str, Any]]:
    """Yield the alerts about the watch itself."""
    yield {
        "alert": "SparkWatchDown",
        "expr": f'up{{job="{JOB}"}} == 0',
        "for": "2m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "spark-watch on {{ $labels.instance }} cannot be reached",
            "description": "No scrape has succeeded for 2 min. Its conditions are not known.",
            "remedy": "Does the machine answer ping, and a login? If both, see systemctl status "
            "spark-watch. If ping alone, the machine is short of memory: power cycle it. "
            "Afterwards run spark-watch postmortem on it.",
            "runbook_url": _living("watch_down"),
        },
    }
    yield {
        "alert": "SparkWatchStale",
        "expr": f'changes(sparkwatch_ticks_total{{job="{JOB}"}}[5m]) == 0\n'
        f'and on (instance, job) up{{job="{JOB}"}} == 1',
        "for": "2m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "spark-watch on {{ $labels.instance }} answers and takes no samples",
            "description": "Its count of ticks has stood still for 5 min.",
            "remedy": "systemd restarts it after 3 min without a tick. If it does not, look at "
            "journalctl -u spark-watch; a machine in reclaim stops its loop as well.",
            "runbook_url": "http://{{ $labels.instance }}/runbook#watch_stale",
        },
    }
    yield {
        "alert": "SparkWatchSourceStale",
        "expr": "sparkwatch_source_success == 0\n"
        "and on (instance, job, source) sparkwatch_source_last_success_timestamp_seconds",
        "for": "10m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "{{ $labels.source }} on {{ $labels.instance }} cannot be read any more",
            "description": "It answered before and has failed for 10 min.",
            "remedy": "See its reason on the first page of the daemon and in journalctl -u "
            "spark-watch. For nvml see driver_stalled and driver_fault.",
            "runbook_url": "http://{{ $labels.instance }}/runbook#source_stale",
        },
    }


def _lasting() -> str:
    """Return the conditions that stand for what is over: a lost box was not lost to them."""
    return "|".join(kind.name for kind in CATALOGUE if kind.survives_reboot)


def lost_alert() -> dict[str, Any]:
    """Return the alert for a box that went silent while something critical stood."""
    return {
        "alert": "SparkWatchBoxLost",
        "expr": f'up{{job="{JOB}"}} == 0\nand on (instance, job) max by (instance, job) '
        f'(max_over_time(sparkwatch_condition_state{{condition!~"{_lasting()}",'
        'state="critical"}[15m])) == 1',
        "for": "1m",
        "keep_firing_for": KEEP_FIRING,
        "labels": {"severity": "critical"},
        "annotations": {
            "summary": "{{ $labels.instance }} went silent while something critical stood",
            "description": "No scrape has succeeded for 1 min, and within the last 15 min a "
            "condition was critical: "
            '{{ range query (printf "max by (condition) (max_over_time('
            'sparkwatch_condition_state{instance=%q,job=%q,state=\\"critical\\"}[15m])) == 1" '
            "$labels.instance $labels.job) }}{{ .Labels.condition }} {{ end }}",
            "remedy": "Take the machine for wedged or off. If ping answers and no login comes, "
            "power cycle it. Start nothing on it by itself; run spark-watch postmortem first.",
            "runbook_url": _living("box_lost"),
        },
    }


def fleet_alerts() -> Iterator[dict[str, Any]]:
    """Yield what only the view on several boxes shows."""
    events = "|".join(kind.name for kind in CATALOGUE if kind.needs == "event")
    yield {
        "alert": "SparkWatchSeveralBoxes",
        "expr": "count by (job, gotcha, condition) (max without (state) "
        f'(sparkwatch_condition_state{{condition!~"{events}",state=~"warning|critical"}}) == 1)'
        " >= 2\nand on (job, gotcha, condition) count by (job, gotcha, condition) "
        "(max without (state) (sparkwatch_condition_state"
        f'{{condition!~"{events}",state=~"warning|critical"}}) == 1)\n'
        f'  >= on (job) group_left count by (job) (up{{job="{JOB}"}}) / 3',
        "for": "1m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "{{ $labels.gotcha }} {{ $labels.condition }} on {{ $value }} boxes at once",
            "description": "{{ $value }} boxes of the job {{ $labels.job }} have it at the same "
            "time: look for one cause.",
            "remedy": "Heat on several: the room. Memory or progress on several: the one job that "
            "runs across them. Do not treat them one by one.",
            "runbook_url": _living("several_boxes"),
        },
    }
    for name, metric, comparison, summary, description in (
        (
            "SparkWatchHotterThanPeers",
            "thermal_hottest_celsius",
            "({0} - on (job) group_left quantile by (job) (0.5, {0})) > 15",
            "is hotter than its peers",
            'Its hottest zone is {{ $value | printf "%.0f" }} C hotter',
        ),
        (
            "SparkWatchSlowerThanPeers",
            "gpu_sm_clock_hertz",
            "({0} / on (job) group_left quantile by (job) (0.5, {0})) < 0.75",
            "has a lower clock than its peers",
            "Its SM clock is at {{ $value | humanizePercentage }}",
        ),
    ):
        record = f"instance_job:sparkwatch_{metric}:busy10m"
        anchor = re.sub(r"(?<!^)([A-Z])", r"_\1", name.removeprefix("SparkWatch")).lower()
        yield {
            "alert": name,
            "expr": f"{comparison.format(record)}\nand on (job) count by (job) ({record}) >= 3",
            "for": "10m",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": f"{{{{ $labels.instance }}}} {summary}",
                "description": f"{description} against the middle one of the busy boxes of the "
                "job {{ $labels.job }}, over 10 min.",
                "remedy": "Compare its air path, its place and its clock limit with the others. "
                "Different work on the boxes explains it too.",
                "runbook_url": f"http://{{{{ $labels.instance }}}}/runbook#{anchor}",
            },
        }


def alerts() -> dict[str, Any]:
    """Return the file of alerts, the most urgent group first."""
    return {
        "groups": [
            {
                "name": "spark-watch-critical",
                "rules": [*condition_alerts("critical"), lost_alert()],
            },
            {"name": "spark-watch-warning", "rules": [*condition_alerts("warning")]},
            {"name": "spark-watch-watch", "rules": [*watch_alerts(), blind_alert()]},
            {"name": "spark-watch-fleet", "rules": [*fleet_alerts()]},
        ]
    }


def recording() -> dict[str, Any]:
    """Return the file of recorded series."""
    busy = (
        "and on (instance, job) avg by (instance, job) "
        "(avg_over_time(sparkwatch_gpu_utilization_ratio[10m])) > 0.8"
    )
    levels = (("info", 1), ("warning", 2), ("critical", 3))
    worst = "\nor ".join(
        f'max by (instance, job) (sparkwatch_condition_state{{state="{state}"}}) * {number} > 0'
        for state, number in reversed(levels)
    )
    return {
        "groups": [
            {
                "name": "spark-watch-recording",
                "rules": [
                    {
                        "record": "instance_job:sparkwatch_condition_state:worst",
                        "expr": f"{worst}\nor max by (instance, job) "
                        "(sparkwatch_condition_state) * 0",
                    },
                    {
                        "record": "instance_job:sparkwatch_thermal_hottest_celsius:busy10m",
                        "expr": "max by (instance, job) "
                        f"(avg_over_time(sparkwatch_thermal_hottest_celsius[10m]))\n{busy}",
                    },
                    {
                        "record": "instance_job:sparkwatch_gpu_sm_clock_hertz:busy10m",
                        "expr": "min by (instance, job) "
                        f"(avg_over_time(sparkwatch_gpu_sm_clock_hertz[10m]))\n{busy}",
                    },
                ],
            }
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Writes lists indented and text of several lines as a block."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - the base class's signature
        """Indent lists below their key."""
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def written(content: Mapping[str, Any]) -> str:
    """Return a rule file's text."""
    head = "# Made from the catalogue of conditions: `python -m tests.house.rules` writes this.\n"
    body: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
    return head + body


FILES: Final = {ALERTS: alerts, RECORDING: recording}


def main() -> int:
    """Write the rule files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, make in FILES.items():
        path.write_text(written(make()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
