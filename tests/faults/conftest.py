"""The box of every case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.box import FaultBox
from tests.stand.nvml_stand import NvmlStand


@pytest.fixture
def box(tmp_path: Path, gb10: NvmlStand, nvml_library: Path) -> FaultBox:
    """A healthy GB10 with a proc, a sys, a kernel log and a state directory of its own."""
    return FaultBox(tmp_path / "box", gb10, nvml_library)
