"""The shipped settings file changes nothing until somebody edits it, and all its lines work."""

from __future__ import annotations

import re
from pathlib import Path

from spark_watch.settings.tree import Settings, load
from tests.conftest import ROOT

SHIPPED = ROOT / "deploy" / "spark-watch.toml"


def test_as_shipped_it_sets_nothing() -> None:
    """A machine with the shipped file runs on the defaults."""
    assert load(SHIPPED, {}, {}).model_dump() == load(None, {}, {}).model_dump()


def test_every_commented_line_is_a_setting_that_works(tmp_path: Path) -> None:
    """With every "#" before a setting taken away the file is valid and shows the defaults."""
    text = re.sub(r"^#(?=[a-z\[])", "", SHIPPED.read_text(), flags=re.MULTILINE)
    file = tmp_path / "all.toml"
    file.write_text(text)
    settings = load(file, {}, {})
    defaults = Settings.model_fields
    assert settings.listen == defaults["listen"].default
    assert settings.interval_seconds == defaults["interval_seconds"].default
    assert settings.conditions.gpu_hot == load(None, {}, {}).conditions.gpu_hot
    assert settings.gpu_clock_limit_hertz == 2.1e9
