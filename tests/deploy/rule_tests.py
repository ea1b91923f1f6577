"""Runs Prometheus' own unit tests of rules on series that a test writes down."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.house.rules import FILES

Labels = Mapping[str, str]
Check = tuple[int, str, Iterable[Labels]]
"""A minute, an alert's name, and the labels of each time it fires then."""


def states(condition: str, gotcha: str, timeline: Iterable[str], **labels: str) -> dict[str, str]:
    """Return the five series of a condition, a state a minute; ``-`` is a scrape that failed."""
    minutes = list(timeline)
    here = {"instance": "a:9810", "job": "spark-watch"} | labels
    return {
        series(
            "condition_state", gotcha=gotcha, condition=condition, state=state, **here
        ): " ".join("stale" if minute == "-" else str(int(minute == state)) for minute in minutes)
        for state in ("unknown", "ok", "info", "warning", "critical")
    }


def series(name: str, **labels: str) -> str:
    """Return a series of ours as it is written; ``up`` has no prefix."""
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name if name == 'up' else f'sparkwatch_{name}'}{{{inside}}}"


def run(
    promtool: Path,
    folder: Path,
    inputs: Mapping[str, str],
    checks: Iterable[Check] = (),
    *,
    spoken: Iterable[Mapping[str, Any]] = (),
    interval: str = "1m",
) -> None:
    """Evaluate the committed rules every minute and see that exactly these alerts fire.

    Args:
        promtool: Prometheus' tool.
        folder: where the test's file is put.
        inputs: series to their values, one an interval.
        checks: what fires when; the label ``alertname`` need not be given. A name of ``*`` stands
            for every alert there is.
        spoken: alerts with their annotations, in promtool's form.
        interval: the time between two values.
    """
    expressions = []
    for minute, name, firing in checks:
        matcher = "" if name == "*" else f'alertname="{name}",'
        samples = [
            {
                "labels": "ALERTS"
                + _labels({"alertname": name, "alertstate": "firing"} | dict(labels)),
                "value": 1,
            }
            for labels in firing
        ]
        expressions.append(
            {
                "expr": f'ALERTS{{{matcher}alertstate="firing"}}',
                "eval_time": f"{minute}m",
                "exp_samples": samples,
            }
        )
    test = {
        "rule_files": [str(path) for path in FILES],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": interval,
                "input_series": [
                    {"series": name, "values": values} for name, values in inputs.items()
                ],
                "promql_expr_test": expressions,
                "alert_rule_test": list(spoken),
            }
        ],
    }
    path = folder / "rules_test.yml"
    path.write_text(yaml.safe_dump(test, sort_keys=False))
    result = subprocess.run(
        [promtool, "test", "rules", path], check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"
