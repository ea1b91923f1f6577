"""The unit under a real systemd: what the daemon can reach, and that it is kept alive."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.deploy.box import Box, missing, wait_for

pytestmark = pytest.mark.integration

SYSTEM = ROOT / ".cache" / "box"
"""Where ``make test`` makes the small system."""

UNITS = "/run/systemd/system"

PATIENCE_SECONDS = 60.0
"""What takes two seconds here may take this long on a machine that is busy with other tests."""

LAUNCHER = """import sys
sys.path.insert(0, "/opt/spark-watch/lib")
from spark_watch.cli import main
sys.exit(main())
"""


def _must(*command: str | Path) -> str:
    """Run a command on this machine that has to succeed, and return its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _probe_unit() -> str:
    """Return the unit with the probe in the daemon's place: run once, its answers kept."""
    unit = (ROOT / "deploy" / "systemd" / "spark-watch.service").read_text()
    kept = [
        line
        for line in unit.splitlines()
        if not line.startswith(("Type=", "NotifyAccess=", "Exec", "Restart", "WatchdogSec="))
    ]
    kept.insert(
        kept.index("[Service]") + 1,
        "Type=oneshot\nExecStart=/opt/spark-watch/bin/probe\nStandardOutput=truncate:/run/probe.json",
    )
    return "\n".join(kept) + "\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product as a package installs it: its wheel and what it needs, from the lock."""
    reason = missing() or (None if SYSTEM.is_dir() else "`make test` could not make a system")
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("opt")
    folder.chmod(0o755)
    version = _must(
        "chroot",
        SYSTEM,
        "/usr/bin/python3",
        "-c",
        "import sys; print('%d.%d' % sys.version_info[:2])",
    ).strip()
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    into = f"--target={folder}/lib"
    _must(
        *pip,
        into,
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        f"--python-version={version}",
        f"--requirement={ROOT}/requirements.txt",
    )
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={folder}")
    _must(*build, ROOT)
    _must(*pip, into, "--no-deps", *folder.glob("*.whl"))
    (folder / "bin").mkdir()
    probe = (Path(__file__).parent / "box_probe.py").read_text()
    for name, text in (("spark-watch", LAUNCHER), ("probe", probe)):
        (folder / "bin" / name).write_text(f"#!/usr/bin/python3\n{text}")
        (folder / "bin" / name).chmod(0o755)
    (folder / "spark-watch.toml").touch()
    (folder / "short-watchdog.conf").write_text("[Service]\nWatchdogSec=3\n")
    (folder / "spark-watch-probe.service").write_text(_probe_unit())
    return folder


@pytest.fixture(scope="module")
def box(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A running system in which the product is installed and its user made."""
    box = Box(
        SYSTEM,
        binds={
            installed: "/opt/spark-watch",
            installed / "spark-watch.toml": "/etc/spark-watch/spark-watch.toml",
            ROOT / "deploy" / "systemd": "/usr/local/share/spark-watch",
        },
        log=tmp_path_factory.mktemp("box") / "console",
    )
    box.must("systemd-sysusers", "/usr/local/share/spark-watch/spark-watch.sysusers")
    box.must("mkdir", "-p", UNITS)
    box.must("cp", "/usr/local/share/spark-watch/spark-watch.service", UNITS)
    box.must("cp", "/opt/spark-watch/spark-watch-probe.service", UNITS)
    for name, major, minor in (
        ("nvidia0", 195, 0),
        ("nvidiactl", 195, 255),
        ("nvidia-uvm", 238, 0),
    ):
        box.must("mknod", "--mode=666", f"/dev/{name}", "c", str(major), str(minor))
    box.must("mknod", "--mode=644", "/dev/kmsg", "c", "1", "11")
    box.must("systemctl", "daemon-reload")
    yield box
    box.close()


@pytest.fixture(scope="module")
def reached(box: Box) -> dict[str, Any]:
    """What a program can reach that is run once in the daemon's place, under the same unit."""
    box.start("spark-watch-probe")
    reached: dict[str, Any] = json.loads(box.must("cat", "/run/probe.json"))
    return reached


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("read /dev/nvidia0", "ENXIO"),  # allowed: the node was opened, and no driver is behind it
        ("read /dev/nvidiactl", "ENXIO"),
        ("read /dev/nvidia-uvm", "EPERM"),  # refused by the device list
        ("read /dev/kmsg", "done"),
        ("read /proc/meminfo", "done"),
        ("read /proc/vmstat", "done"),
        ("read /proc/buddyinfo", "done"),
        ("read /proc/1/stat", "done"),
        ("read /proc/1/status", "done"),
        ("read /proc/1/cmdline", "done"),
        ("read /proc/1/environ", "EACCES"),
        ("read /sys/fs/cgroup/cgroup.controllers", "done"),
        ("read /proc/sys/kernel/random/boot_id", "done"),
        ("read /home", "EACCES"),
        ("write /var/lib/spark-watch/probe", "done"),
        ("write /run/spark-watch/probe", "done"),
        ("write /etc/probe", "EROFS"),
        ("write /opt/probe", "EROFS"),
        ("load pynvml", "pynvml"),
        ("load pydantic_settings", "pydantic_settings"),
        ("ordinary user", True),
        ("capabilities", f"{1 << 34:016x}"),  # CAP_SYSLOG is number 34
    ],
)
def test_the_unit_gives_what_is_needed_and_no_more(
    reached: dict[str, Any], action: str, answer: object
) -> None:
    """Inputs can be read, two folders written, and everything else is refused."""
    assert reached[action] == answer


FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"


def _page(box: Box) -> str:
    """Return the daemon's metrics, once it has a first sample, as somebody in the box sees them."""
    url = "http://127.0.0.1:9810/"
    wait_for(
        lambda: box.run("python3", "-c", FETCH, f"{url}readyz").returncode == 0,
        seconds=PATIENCE_SECONDS,
        what="a first sample",
    )
    return box.must("python3", "-c", FETCH, f"{url}metrics")


def test_it_says_when_it_is_ready(box: Box) -> None:
    """`systemctl start` returns when the daemon is ready, and then the page is there."""
    box.start("spark-watch")
    assert box.show("spark-watch", "ActiveState") == "active"
    assert "sparkwatch_condition_state" in _page(box)


def test_a_bad_file_keeps_it_running(box: Box, installed: Path) -> None:
    """A reload with a broken file changes nothing but what the daemon says of it."""
    box.start("spark-watch")
    before = box.show("spark-watch", "MainPID")
    (installed / "spark-watch.toml").write_text("no_such_setting = 1\n")
    try:
        box.must("systemctl", "reload", "spark-watch")
        wait_for(
            lambda: "no_such_setting" in box.log("spark-watch"),
            seconds=PATIENCE_SECONDS,
            what="the daemon to name the bad setting",
        )
    finally:
        (installed / "spark-watch.toml").write_text("")
    assert box.show("spark-watch", "MainPID") == before
    assert "sparkwatch_condition_state" in _page(box)


def test_it_is_started_again_after_it_was_killed(box: Box) -> None:
    """A daemon that is killed outright comes back and is ready again."""
    box.start("spark-watch")
    before = box.show("spark-watch", "MainPID")
    box.must("systemctl", "kill", "--signal=KILL", "spark-watch")
    wait_for(
        lambda: (
            box.show("spark-watch", "MainPID") not in (before, "0")
            and box.show("spark-watch", "ActiveState") == "active"
        ),
        seconds=PATIENCE_SECONDS,
        what="the daemon to be back",
    )


def test_a_loop_that_stands_still_is_started_again(box: Box) -> None:
    """The loop alone feeds the watchdog: a process that is stopped misses it and is replaced."""
    box.must("systemctl", "stop", "spark-watch")
    box.must("mkdir", "-p", f"{UNITS}/spark-watch.service.d")
    box.must(
        "cp", "/opt/spark-watch/short-watchdog.conf", f"{UNITS}/spark-watch.service.d/test.conf"
    )
    box.must("systemctl", "daemon-reload")
    try:
        box.start("spark-watch")
        before = box.show("spark-watch", "MainPID")
        box.must("systemctl", "kill", "--signal=STOP", "--kill-whom=main", "spark-watch")
        wait_for(
            lambda: box.show("spark-watch", "MainPID") not in (before, "0"),
            seconds=PATIENCE_SECONDS,
            what="the watchdog to replace the daemon",
        )
    finally:
        box.must("rm", "-r", f"{UNITS}/spark-watch.service.d")
        box.must("systemctl", "daemon-reload")
        box.must("systemctl", "stop", "spark-watch")


def test_it_stops_when_it_is_asked_to(box: Box) -> None:
    """`systemctl stop` ends the daemon by its own hand, well before systemd would kill it."""
    box.start("spark-watch")
    box.must("systemctl", "stop", "spark-watch")
    assert box.show("spark-watch", "Result") == "success"
    assert box.show("spark-watch", "ActiveState") == "inactive"
