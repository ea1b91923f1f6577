"""One name for one thing: a condition's class, file, test and settings go by its own name."""

from __future__ import annotations

import re

import pytest

from spark_watch.detectors.catalogue import CATALOGUE
from spark_watch.settings.conditions import ConditionSettings
from tests.conftest import ROOT

NAMES = [kind.name for kind in CATALOGUE]


def test_no_name_is_taken_twice() -> None:
    """Metrics, events and the runbook's anchors key on a name that is one condition's alone."""
    assert len(set(NAMES)) == len(NAMES)


def test_settings_have_a_part_for_each_condition_and_no_other() -> None:
    """A condition can be set under its own name, and no part is left of one that is gone."""
    assert set(ConditionSettings.model_fields) == set(NAMES)


@pytest.mark.parametrize("kind", CATALOGUE, ids=NAMES)
def test_class_and_file_go_by_the_name(kind: type) -> None:
    """Whoever has a condition's name from a page finds its class without a search."""
    name, gotcha = str(vars(kind)["name"]), str(vars(kind)["gotcha"])
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
    assert kind.__name__ == "".join(word.capitalize() for word in name.split("_"))
    assert re.fullmatch(
        rf"spark_watch\.detectors\.{gotcha.lower()}_[a-z]+(\.{name})?", kind.__module__
    )


@pytest.mark.parametrize("kind", CATALOGUE, ids=NAMES)
def test_each_condition_is_tested(kind: type) -> None:
    """A test of the detectors names the condition's class."""
    tests = (ROOT / "tests" / "detectors").rglob("test_*.py")
    assert any(re.search(rf"\b{kind.__name__}\b", test.read_text()) for test in tests)
