"""A Python environment that a test fills with packages of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class Environment:
    """A virtual environment of this interpreter, made of links: it starts, and holds no package.

    Args:
        root: where to make it.
    """

    def __init__(self, root: Path) -> None:
        real = Path(os.path.realpath(sys.executable))
        self.root = root
        self.python = root / "bin" / "python"
        self.python.parent.mkdir(parents=True)
        self.python.symlink_to(real)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        (root / "pyvenv.cfg").write_text(
            f"home = {real.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
        )
        self.site = root / "lib" / f"python{version}" / "site-packages"
        self.site.mkdir(parents=True)

    def module(self, name: str, text: str) -> None:
        """Add a package whose import runs this text."""
        folder = self.site / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(text)

    def distribution(self, name: str, version: str) -> None:
        """Add what an installer notes of a package."""
        (self.site / f"{name}-{version}.dist-info").mkdir()


TORCH = """
__version__ = "2.9.1+cu130"
class version:
    cuda = "13.0"
class _C:
    @staticmethod
    def _cuda_getArchFlags():
        return "sm_80 sm_120 sm_121a"
class cuda:
    @staticmethod
    def synchronize():
        pass
    @staticmethod
    def get_device_capability():
        return (12, 1)
class _Tensor(float):
    def __add__(self, other):
        return _Tensor(float(self) + 8 * other)
    def sum(self):
        return self
    def item(self):
        return float(self)
def ones(count, device):
    return _Tensor(count)
"""
"""A torch for CUDA 13 that works: eight ones and eight are sixteen."""
