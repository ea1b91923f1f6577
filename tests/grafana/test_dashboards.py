"""The dashboards as they are committed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from spark_watch.export.families import FAMILIES
from tests.conftest import ROOT
from tests.grafana import generate

SCHEMAS = ROOT / ".cache" / "grafana-schema"
UIDS = ("spark-watch-box", "spark-watch-fleet", "spark-watch-incident")

ANNOTATION = {"expr", "step", "titleFormat", "textFormat", "useValueForTime"}
"""What Prometheus' annotations have beside the type, which knows no datasource's own keys."""

Json = dict[str, Any]


def read(uid: str) -> Json:
    """Return a dashboard as it is committed."""
    dashboard: Json = json.loads((generate.FOLDER / f"{uid}.json").read_text())
    return dashboard


def panels() -> Iterator[tuple[str, Json]]:
    """Yield every panel with its dashboard's uid."""
    for uid in UIDS:
        for panel in read(uid)["panels"]:
            yield uid, panel


PANELS = [pytest.param(panel, id=f"{uid}: {panel['title']}") for uid, panel in panels()]


def test_what_is_committed_is_what_is_generated() -> None:
    """The files are, byte for byte, what the generator writes, and there is no other."""
    assert {path.stem: path.read_text() for path in generate.FOLDER.glob("*.json")} == {
        uid: generate.text(one) for uid, one in generate.dashboards().items()
    }


@pytest.mark.parametrize("uid", UIDS)
def test_a_dashboard_goes_by_its_file(uid: str) -> None:
    """The uid is the file's name, the text has two spaces of indent and ids are unique."""
    dashboard = read(uid)
    assert dashboard["uid"] == uid
    text = (generate.FOLDER / f"{uid}.json").read_text()
    assert text == json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert ids == list(range(1, len(ids) + 1))
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("uid", UIDS)
def test_the_variables_are_there(uid: str) -> None:
    """Datasource, job and box can be chosen, and nothing names a datasource of its own."""
    dashboard = read(uid)
    assert [one["name"] for one in dashboard["templating"]["list"]] == [
        "datasource",
        "job",
        "instance",
    ]
    uids = re.findall(r'"type": "prometheus",\s+"uid": "([^"]*)"', json.dumps(dashboard, indent=1))
    assert set(uids) == {"${datasource}"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard)))
    assert used <= {
        "datasource", "job", "instance", "__all", "__range", "__rate_interval", "__data",
        "__url_time_range",
    }  # fmt: skip


@pytest.mark.parametrize("uid", UIDS)
def test_links_lead_to_a_dashboard(uid: str) -> None:
    """Every link to a dashboard names one that is here."""
    text = json.dumps(read(uid))
    assert set(re.findall(r"/d/([\w-]+)", text)) <= set(UIDS)
    assert read(uid)["links"][0]["tags"] == read(uid)["tags"] == ["spark-watch"]


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_it_is(panel: Json) -> None:
    """Title, description and unit; every query selects by job and box."""
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        selectors = re.findall(r"(?:sparkwatch_\w+|\bup)\{([^}]*)\}", target["expr"])
        assert selectors
        assert all(one.startswith('job=~"$job", instance=~"$instance"') for one in selectors)


@pytest.mark.parametrize("panel", PANELS)
def test_a_number_is_the_present_one(panel: Json) -> None:
    """A number is asked for the end of the range: what is absent now does not show as it was."""
    instant = panel["type"] in {"stat", "table"}
    for target in panel["targets"]:
        assert (target["instant"], target["range"]) == (instant, not instant)


@pytest.mark.parametrize("uid", UIDS)
def test_only_exported_metrics_are_named(uid: str) -> None:
    """Every name is one of the page's."""
    named = generate.metrics(read(uid))
    assert named
    assert named <= {family.full_name for family in FAMILIES}


@pytest.mark.parametrize("uid", UIDS)
def test_no_panel_lies_on_another(uid: str) -> None:
    """Each place of the grid's 24 columns is taken once."""
    taken: set[tuple[int, int]] = set()
    for panel in read(uid)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not mine & taken
        taken |= mine


def schema(name: str) -> Json:
    """Return a schema, as ``make test`` makes it."""
    path = SCHEMAS / f"{name}.json"
    if not path.exists():
        pytest.skip("no schema of Grafana here: `make test` makes it where the machine has npm")
    found: Json = json.loads(path.read_text())
    return found


def check(value: object, name: str) -> None:
    """Hold a value against a schema; keys that it does not know are errors."""
    jsonschema.Draft7Validator(schema(name)).validate(value)


@pytest.mark.integration
@pytest.mark.parametrize("uid", UIDS)
def test_grafanas_types_take_it(uid: str) -> None:
    """The dashboard is one by Grafana's own published types, every key known to them."""
    dashboard = read(uid)
    for one in dashboard["annotations"]["list"]:
        assert set(one) >= ANNOTATION
        for key in ANNOTATION:
            del one[key]
    check(dashboard, "dashboard")


@pytest.mark.integration
@pytest.mark.parametrize("panel", PANELS)
def test_the_panels_types_take_its_options(panel: Json) -> None:
    """Options and field settings are those of the panel's own types, none unknown."""
    kind = panel["type"].replace("-", "")
    check(panel["options"], f"{kind}-options")
    custom = panel["fieldConfig"]["defaults"].get("custom")
    assert (custom is None) == (kind == "stat")
    if custom is not None:
        check(custom, f"{kind}-custom")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("dashboard", "schemaVersion", "42"),
        ("dashboard", "unheardOf", 1),
        ("options", "unheardOf", 1),
        ("options", "showValue", "sometimes"),
        ("custom", "fillOpactiy", 80),
    ],
)
def test_the_schemas_are_strict(where: str, key: str, value: object) -> None:
    """A wrong type, an unknown key and a wrong word are refused: the tests above see them."""
    dashboard = read("spark-watch-box")
    dashboard["annotations"]["list"] = []
    panel = next(one for one in dashboard["panels"] if one["type"] == "state-timeline")
    parts = {
        "dashboard": (dashboard, "dashboard"),
        "options": (panel["options"], "statetimeline-options"),
        "custom": (panel["fieldConfig"]["defaults"]["custom"], "statetimeline-custom"),
    }
    part, name = parts[where]
    check(part, name)
    part[key] = value
    with pytest.raises(jsonschema.ValidationError):
        check(part, name)


def test_provisioning_is_whole() -> None:
    """The provider and the datasource are in the form of Grafana's provisioning, version 1."""
    folder = ROOT / "grafana" / "provisioning"
    provider = yaml.safe_load((folder / "dashboards" / "spark-watch.yml").read_text())
    (one,) = provider["providers"]
    assert (provider["apiVersion"], one["type"]) == (1, "file")
    assert one["options"]["path"] == "/etc/grafana/dashboards"
    source = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())
    (one,) = source["datasources"]
    assert (source["apiVersion"], one["type"]) == (1, "prometheus")
