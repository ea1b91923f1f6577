"""Small real ELF files, built by ``cc`` as a wheel's extension modules are."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def build(target: Path, needs: Sequence[str] = ()) -> Path:
    """Compile a shared library that asks the loader for these names, and return its path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_name("empty.c")
    source.write_text("int spark_watch_nothing(void) { return 0; }\n")
    wanted = []
    for name in needs:
        library = target.with_name(name)
        compile_shared(source, library, f"-Wl,-soname,{name}")
        wanted.append(library)
    compile_shared(source, target, "-Wl,--no-as-needed", *map(str, wanted))
    for path in (source, *wanted):
        path.unlink()
    return target


def compile_shared(source: Path, target: Path, *words: str) -> None:
    """Run the compiler."""
    command = ["cc", "-shared", "-fPIC", "-nostdlib", str(source), *words, "-o", str(target)]
    subprocess.run(command, check=True)
