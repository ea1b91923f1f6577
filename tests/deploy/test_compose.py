"""The monitoring host's composition, as far as it can be held without a container engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

FOLDER = ROOT / "deploy" / "compose"

Json = dict[str, Any]


def read() -> Json:
    """Return the file as it is."""
    composition: Json = yaml.safe_load((FOLDER / "compose.yml").read_text())
    return composition


SERVICES = ("prometheus", "alertmanager", "grafana")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_and_bounded(name: str) -> None:
    """The image has a whole version; the container writes to its volume only and gains nothing."""
    service = read()["services"][name]
    assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", service["image"])
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    writable = [one for one in service["volumes"] if not one.endswith(":ro")]
    assert [one.partition(":")[0] for one in writable] == [name]


def test_there_is_nothing_else() -> None:
    """Three services with a volume each, and one secret."""
    composition = read()
    assert set(composition["services"]) == set(composition["volumes"]) == set(SERVICES)
    assert set(composition["secrets"]) == {"grafana-password"}


def test_it_listens_on_loopback_unless_told() -> None:
    """Every address is a variable whose default is loopback; nothing is published beside it."""
    services = read()["services"]
    addresses = [
        word
        for name in ("prometheus", "alertmanager")
        for word in services[name]["command"]
        if "listen-address" in word
    ]
    addresses.append(services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"])
    assert addresses == [
        "--web.listen-address=${PROMETHEUS_LISTEN:-127.0.0.1}:9090",
        "--web.listen-address=${ALERTMANAGER_LISTEN:-127.0.0.1}:9093",
        "--cluster.listen-address=",
        "${GRAFANA_LISTEN:-127.0.0.1}",
    ]
    assert not any("ports" in service for service in services.values())


def test_there_is_no_default_password() -> None:
    """Grafana reads its password from a file that somebody must name."""
    composition = read()
    environment = composition["services"]["grafana"]["environment"]
    passwords = {key: value for key, value in environment.items() if "PASSWORD" in key}
    assert passwords == {"GF_SECURITY_ADMIN_PASSWORD__FILE": "/run/secrets/grafana-password"}
    assert composition["secrets"]["grafana-password"]["file"].startswith(
        "${GRAFANA_PASSWORD_FILE:?"
    )


def test_what_is_mounted_is_there() -> None:
    """Every folder of the tree that a container sees exists, and holds what its command names."""
    for service in read()["services"].values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (FOLDER / source).is_dir(), volume
    assert (FOLDER / "../prometheus/prometheus.yml").is_file()
    assert (FOLDER / "../alertmanager/alertmanager.yml").is_file()
    home = read()["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "grafana" / "dashboards" / home.rpartition("/")[2]).is_file()


def test_the_three_find_each_other() -> None:
    """Prometheus sends to where Alertmanager listens, Grafana asks where Prometheus listens."""
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    (alertmanager,) = configuration["alerting"]["alertmanagers"]
    assert alertmanager["static_configs"] == [{"targets": ["127.0.0.1:9093"]}]
    environment = read()["services"]["grafana"]["environment"]
    assert environment["PROMETHEUS_URL"] == "http://127.0.0.1:9090"
    source = yaml.safe_load((ROOT / "grafana/provisioning/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "${PROMETHEUS_URL}"


@pytest.mark.integration
@pytest.mark.parametrize("named", [True, False])
def test_compose_takes_it(*, named: bool) -> None:
    """Compose itself reads the file, and refuses it where no password file is named."""
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("no docker-compose here: apt install docker-compose")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GRAFANA_")}
    done = subprocess.run(
        [program, "-f", FOLDER / "compose.yml", "config"],
        env=kept | ({"GRAFANA_PASSWORD_FILE": "./password"} if named else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode == 0) is named, done.stderr
    if not named:
        assert "name a file that holds the password" in done.stderr
