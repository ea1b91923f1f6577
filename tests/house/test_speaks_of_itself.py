"""The project speaks of itself alone: no file of it names what only one machine or reader has."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.conftest import ROOT

# Each pattern is written so that it does not match its own text here.
FORBIDDEN = {
    "a package registry's host": r"py[p]i\.org|python[h]osted|npm[j]s\.(org|com)|deb[.]debian\.org"
    r"|ports[.]ubuntu\.com|proxy[.]golang\.org|static[.]crates\.io|index[.]crates\.io",
    "a path of somebody's machine": r"(?<![\w.])/(work|root|opt/wheels|opt/py[p]i)/"
    r"|(?<![\w.])/home/(?!<|\$|user\b)\w",
    "a note that is not part of the project": r"\bdesign[.]md\b|\bstyle[.]md\b|\btest-stan[d]\b"
    r"|\bfield-eviden[c]e\b|\bgb10-signal[s]\b|\bown-measurement[s]\b|\beviden[c]e/|\bshare[d]/",
    "an id out of such a note": r"\b(FR|FA|PF)-\d+\b|(?<!Tesla )(?<![\w/.-])T([1-9]|1\d|2[0-7])\b",
    "how the project is developed": r"(?i)\bsub-?agen[t]s?\b|\bhelper sessio[n]"
    r"|\bco-authored-b[y]\b",
    "a marker for work left undone": r"\bTO[D]O\b|\bFIX[M]E\b",
}

ALLOWED = {
    # The recordings of real machines lie beside a clone on the machine that checks it.
    (".ci/run", "a note that is not part of the project"),
}


def _texts() -> list[tuple[str, str]]:
    """Return every file of the project that is text, with its name from the root."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    texts = []
    for name in filter(None, names):
        path = ROOT / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            texts.append((name, content.decode("utf-8", errors="replace")))
    return texts


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    """No file holds the pattern; the message names each file and line that does."""
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in _texts()
        if (name, what) not in ALLOWED
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, f"{what}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a package registry's host", "https://" + "pypi" + ".org/simple"),
        ("a path of somebody's machine", "see /" + "root/spark-watch"),
        ("a path of somebody's machine", "see /" + "home/anna/spark"),
        ("a note that is not part of the project", "see design" + ".md section 2"),
        ("an id out of such a note", "(T" + "12 in bytes)"),
        ("an id out of such a note", "F" + "R-03"),
        ("how the project is developed", "written by a Sub" + "agent"),
        ("a marker for work left undone", "# TO" + "DO: later"),
    ],
)
def test_the_patterns_see(what: str, line: str) -> None:
    """Each pattern finds what it is there for."""
    assert re.search(FORBIDDEN[what], line)


@pytest.mark.parametrize(
    "line",
    ["2026-11-30T12:00:00Z", "Tesla T4", "gcc -shared", "shared_bytes", "/var/lib/spark-watch/"],
)
def test_the_patterns_pass(line: str) -> None:
    """Times of day, a GPU's name, shared memory and system paths are no finding."""
    assert not any(re.search(pattern, line) for pattern in FORBIDDEN.values())


def test_recorded_traces_are_asked_for_by_fixture() -> None:
    """A test that read the variable itself would always skip: the fixture takes it away."""
    readers = [
        name
        for name, text in _texts()
        if re.search(r"/test_\w+\.py$", name)
        and re.search(r"(environ|getenv).*SPARK_WATCH_TRACE[S]", text)
    ]
    assert readers == []
