"""The requirement files: complete, hashed, of one mind, and free of anybody's own registry."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.conftest import ROOT

RUNTIME = "requirements.txt"
DEVELOPMENT = "requirements-dev.txt"


def _locked(name: str) -> dict[str, tuple[str, int]]:
    """Return the packages of a requirement file with their version and number of hashes."""
    joined = (ROOT / name).read_text().replace("\\\n", " ")
    locked = {}
    for line in joined.splitlines():
        if line and not line.lstrip().startswith("#"):
            match = re.match(r"(?P<package>[a-z0-9-]+)==(?P<version>\S+) ", line)
            assert match, f"{name}: not a pinned package: {line!r}"
            locked[match["package"]] = (match["version"], line.count("--hash=sha256:"))
    return locked


def _asked_for(*, extra: str | None = None) -> set[str]:
    """Return the names of the packages that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return {re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0].lower() for line in wanted}


@pytest.mark.parametrize("name", [RUNTIME, DEVELOPMENT])
def test_every_package_has_hashes(name: str) -> None:
    """No package of the file can be downloaded altered: pip would refuse it."""
    assert [package for package, (_, hashes) in _locked(name).items() if hashes == 0] == []


@pytest.mark.parametrize("name", [RUNTIME, DEVELOPMENT])
def test_no_place_is_named(name: str) -> None:
    """The file says what to install and leaves to each machine where from."""
    assert not re.search(r"^-|^\s+--(?!hash=)|://", (ROOT / name).read_text(), re.MULTILINE)


def test_the_product_is_locked() -> None:
    """Whatever the product asks for has a version in the file it is installed from."""
    assert _asked_for() <= _locked(RUNTIME).keys()


def test_the_tools_are_locked() -> None:
    """Whatever a developer's environment asks for has a version in its file."""
    assert _asked_for(extra="dev") <= _locked(DEVELOPMENT).keys()


def test_development_holds_what_the_product_runs_on() -> None:
    """Tests run against the very versions that `make run` installs."""
    assert _locked(RUNTIME).items() <= _locked(DEVELOPMENT).items()
