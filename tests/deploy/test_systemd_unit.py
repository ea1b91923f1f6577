"""The systemd unit and its user: valid, hardened, and still able to read what it must."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.integration

FOLDER = ROOT / "deploy" / "systemd"
INSTALLED = "/opt/spark-watch/bin/spark-watch"


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a tool of systemd, or skip the test where the machine does not have it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here: apt install systemd")
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def _entries() -> dict[str, list[str]]:
    """Return the unit's settings, each with all its values."""
    entries: dict[str, list[str]] = {}
    for line in (FOLDER / "spark-watch.service").read_text().splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            entries.setdefault(key, []).append(value)
    return entries


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that exists on every machine in the place of the installed one."""
    text = (FOLDER / "spark-watch.service").read_text()
    assert text.count(INSTALLED) == 1
    copy = tmp_path / "spark-watch.service"
    copy.write_text(text.replace(INSTALLED, shutil.which("true") or ""))
    return copy


def test_verify_finds_nothing(unit: Path) -> None:
    """Systemd knows every key and accepts every value, and does not even warn."""
    done = _run(
        "systemd-analyze", "verify", "--man=no", "--generators=no", "--recursive-errors=one", unit
    )
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, complaints) == (0, [])


def test_verify_would_find_a_misspelt_key(unit: Path) -> None:
    """The test above can fail: a key that systemd does not know is an error."""
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSecs="))
    done = _run("systemd-analyze", "verify", "--man=no", "--recursive-errors=one", unit)
    assert done.returncode == 1
    assert "WatchdogSecs" in done.stderr


def test_exposure_is_three_or_less(unit: Path) -> None:
    """Systemd's own score of what a broken-into daemon could reach is 3.0 or better."""
    done = _run("systemd-analyze", "security", "--offline=true", "--threshold=30", unit)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("Type", ["notify"]),
        ("WatchdogSec", ["180"]),
        ("After", ["nvidia-persistenced.service"]),
        ("MemoryMax", ["128M"]),
        ("MemorySwapMax", ["0"]),
        ("LimitMEMLOCK", ["infinity"]),
        ("OOMScoreAdjust", ["-900"]),
        ("Restart", ["always"]),
        ("StartLimitIntervalSec", ["0"]),
        ("AmbientCapabilities", ["CAP_SYSLOG"]),
        ("CapabilityBoundingSet", ["CAP_SYSLOG"]),
        ("DeviceAllow", ["char-195 rw", "char-nvidia-caps r", "/dev/kmsg r"]),
        ("ExecReload", ["/bin/kill -HUP $MAINPID"]),
    ],
)
def test_a_witness_outlives_what_it_watches(key: str, values: list[str]) -> None:
    """The unit promises what the documents say of it: limits, restarts, access to its inputs."""
    assert _entries()[key] == values


@pytest.mark.parametrize(
    "key",
    [
        "PrivateDevices",  # would hide /dev/nvidia0
        "ProtectKernelLogs",  # would hide /dev/kmsg and take CAP_SYSLOG
        "ProtectProc",  # would hide the processes of other users
        "ProcSubset",  # would hide /proc/meminfo
        "PrivateUsers",  # would take CAP_SYSLOG's force
        "PrivateNetwork",  # would make the page unreachable
        "CPUQuota",  # would throttle the daemon exactly when it has most to read
    ],
)
def test_nothing_blinds_the_daemon(key: str) -> None:
    """No hardening is set that would take an input away from the daemon."""
    assert key not in _entries()


def test_the_daemon_needs_no_writable_code() -> None:
    """What the daemon loads works under MemoryDenyWriteExecute, callbacks into C included.

    The kernel enforces the rule of its own accord since Linux 6.3 (``PR_SET_MDWE``, 65); on an
    older one there is nothing to try.
    """
    probe = """
import ctypes, mmap, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(65, 1, 0, 0, 0) != 0:
    sys.exit(77)
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except PermissionError:
    pass
else:
    sys.exit("the rule is not in force")
import psutil, pydantic_core, pynvml, prometheus_client, structlog, pydantic_settings
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: 0)
libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
"""
    done = subprocess.run(
        [sys.executable, "-c", probe], check=False, capture_output=True, text=True, timeout=60
    )
    if done.returncode == 77:
        pytest.skip("this kernel has no PR_SET_MDWE (Linux 6.3)")
    assert done.returncode == 0, done.stderr


def test_the_user_is_made(tmp_path: Path) -> None:
    """The user exists without a shell, in the two groups that GPU nodes are narrowed to."""
    (tmp_path / "etc").mkdir()
    done = _run("systemd-sysusers", f"--root={tmp_path}", FOLDER / "spark-watch.sysusers")
    assert done.returncode == 0, done.stderr
    users = (tmp_path / "etc" / "passwd").read_text()
    groups = (tmp_path / "etc" / "group").read_text()
    assert users.startswith("spark-watch:")
    assert users.strip().endswith(":/var/lib/spark-watch:/usr/sbin/nologin")
    members = {line.split(":")[0]: line.split(":")[3] for line in groups.splitlines()}
    assert members["video"] == members["render"] == "spark-watch"
