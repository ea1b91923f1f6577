"""What the tests of the commands share."""

from __future__ import annotations

import pytest

from tests.cli.calls import Call


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command in this process."""
    return Call(capsys)
