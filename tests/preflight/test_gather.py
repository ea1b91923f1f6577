"""Everything is read at once, in time, and nothing takes the rest with it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from spark_watch.errors import Unavailable
from spark_watch.model import GIB
from spark_watch.preflight import gather as module
from spark_watch.preflight.gather import Request, gather
from tests.preflight.environment import TORCH, Environment
from tests.stand.nvml_stand import NvmlStand

MEMINFO = f"""MemTotal:       {round(121.7 * 1024**2)} kB
MemFree:        {109 * 1024**2} kB
MemAvailable:   {112 * 1024**2} kB
Buffers:               0 kB
Cached:          {4 * 1024**2} kB
AnonPages:       {3 * 1024**2} kB
"""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with a healthy pool and little else."""
    folder = tmp_path / "proc"
    folder.mkdir()
    (folder / "meminfo").write_text(MEMINFO)
    (folder / "buddyinfo").write_text("Node 0, zone   Normal    1    2    3\n")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment with a healthy torch."""
    found = Environment(tmp_path / "env")
    found.module("torch", TORCH)
    return found


def request(tmp_path: Path, environment: Environment, proc: Path, **parts: float) -> Request:
    """Ask for all of it below a folder of the test's own."""
    return Request(
        python=environment.python,
        proc_root=proc,
        sys_root=tmp_path / "sys",
        root=tmp_path,
        foreign_seconds=parts.get("foreign_seconds", 20.0),
        seconds=parts.get("seconds", 30.0),
    )


def test_a_spark_at_rest(
    gb10: NvmlStand, tmp_path: Path, environment: Environment, proc: Path
) -> None:
    """GPU, pool and environment are all known, and torch was let on the idle GPU."""
    facts = gather(request(tmp_path, environment, proc))
    assert facts.machine.is_gb10 is True
    assert facts.identities[0].compute_capability == (12, 1)
    assert facts.headroom_bytes == 112 * GIB
    assert facts.torch is not None
    assert facts.torch.answer("kernel", "ran") is True
    assert facts.gpu_used is True
    assert facts.unread["zones"] == "not_found"
    assert facts.unread["loader"] == "not_found"
    assert gb10.calls("nvmlInitWithFlags") == 1


@pytest.mark.parametrize("how", ["busy", "held", "not counted", "no list", "lost", "hidden"])
def test_a_gpu_that_is_not_known_to_be_idle_is_left_alone(
    gb10: NvmlStand, tmp_path: Path, environment: Environment, proc: Path, how: str
) -> None:
    """One sign that something is on it, or one reading that lacks, and no kernel is tried."""
    if how == "busy":
        gb10.gpus[0].utilization_percent = 6
    elif how == "held":
        gb10.gpus[0].set_processes(compute=[(4_194_304, 1 << 20)])
    elif how == "not counted":
        gb10.fail("nvmlDeviceGetUtilizationRates", 3)
    elif how == "no list":
        gb10.fail("nvmlDeviceGetComputeRunningProcesses", 999)
    elif how == "lost":
        gb10.fail_all(15)
    else:
        (proc / "meminfo").write_text(MEMINFO.replace(str(109 * 1024**2), str(80 * 1024**2)))
    facts = gather(request(tmp_path, environment, proc))
    assert facts.torch is not None
    assert facts.torch.answer("import", "cuda") == "13.0"
    assert "kernel" not in facts.torch.steps
    assert facts.gpu_used is False


def test_a_driver_that_does_not_answer(
    gb10: NvmlStand, tmp_path: Path, environment: Environment, proc: Path
) -> None:
    """It costs its time and no more; what else there is, is there, and the GPU is left alone."""
    gb10.stall("nvmlInitWithFlags", 600.0)
    begun = time.monotonic()
    facts = gather(request(tmp_path, environment, proc, seconds=4.5))
    assert time.monotonic() - begun < 8.0
    assert facts.gpus is None
    assert facts.unread["gpus"] == "timeout"
    assert facts.unread["processes"] == "timeout"
    assert facts.memory is not None
    assert facts.torch is not None
    assert "kernel" not in facts.torch.steps


def test_with_little_memory_nothing_is_imported(
    gb10: NvmlStand, tmp_path: Path, environment: Environment, proc: Path
) -> None:
    """Beside a server that has left 3 GiB, importing torch could be the last straw."""
    del gb10
    (proc / "meminfo").write_text(MEMINFO.replace(str(112 * 1024**2), str(3 * 1024**2)))
    facts = gather(request(tmp_path, environment, proc))
    assert facts.torch is not None
    assert (facts.torch.end, facts.torch.value) == (
        "refused",
        "3.0 GiB of memory available is too little",
    )


def test_without_meminfo_nothing_is_imported(
    gb10: NvmlStand, tmp_path: Path, environment: Environment, proc: Path
) -> None:
    """What is not known is not taken for enough."""
    del gb10
    (proc / "meminfo").unlink()
    facts = gather(request(tmp_path, environment, proc))
    assert facts.unread["memory"] == "not_found"
    assert facts.torch is not None
    assert facts.torch.end == "refused"


def test_the_daemon_starts_nothing(
    gb10: NvmlStand,
    tmp_path: Path,
    environment: Environment,
    proc: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without leave for foreign code no process is made, and what needs one is not known."""
    del gb10

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("subprocess.Popen", forbidden)
    asked = request(tmp_path, environment, proc)
    facts = gather(Request(python=asked.python, foreign=False, proc_root=proc, root=tmp_path))
    assert (facts.torch, facts.flash, facts.cudart) == (None, None, None)
    assert facts.installed is not None


def test_a_reader_that_hangs_or_breaks_takes_no_other_with_it(
    gb10: NvmlStand,
    tmp_path: Path,
    environment: Environment,
    proc: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has its reason, and all others their answer."""
    del gb10
    forever = threading.Event()
    monkeypatch.setattr(module, "libraries", lambda _: forever.wait(60.0))

    def broken(*, proc_root: Path) -> None:
        raise KeyError(str(proc_root))

    def denied(*, proc_root: Path) -> None:
        raise Unavailable("permission_denied", str(proc_root))

    monkeypatch.setattr(module, "guards", broken)
    monkeypatch.setattr(module, "sysctls", denied)
    facts = gather(request(tmp_path, environment, proc, seconds=6.0, foreign_seconds=3.0))
    forever.set()
    assert facts.unread["loader"] == "timeout"
    assert facts.unread["guards"] == "unexpected_keyerror"
    assert facts.unread["sysctls"] == "permission_denied"
    assert facts.torch is not None
    assert facts.torch.answer("import", "cuda") == "13.0"


def test_a_fifo_in_place_of_a_launch_file_does_not_block(
    gb10: NvmlStand, tmp_path: Path, proc: Path
) -> None:
    """It is a file that could not be read."""
    del gb10
    pipe = tmp_path / "run.yaml"
    os.mkfifo(pipe)
    asked = Request(launch=(pipe,), foreign=False, proc_root=proc, root=tmp_path, seconds=10.0)
    facts = gather(asked)
    assert facts.launches is not None
    assert facts.launches.unread == (f"{pipe} (not_a_file)",)
