"""The client: one file, nothing but the standard library, never in the way of a training run."""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_watch import client
from spark_watch.client import HuggingFaceCallback, LightningCallback, Progress
from tests.conftest import ROOT

MOST_SECONDS_A_CALL = 20e-6


class Daemon:
    """A socket that keeps what is sent to it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def messages(self) -> list[dict[str, Any]]:
        """Return what has come, oldest first."""
        found = []
        while True:
            try:
                found.append(json.loads(self.socket.recv(2048)))
            except BlockingIOError:
                return found


@pytest.fixture
def daemon(tmp_path: Path) -> Any:
    """A listening daemon that is closed afterwards."""
    made = Daemon(tmp_path / "s")
    yield made
    made.socket.close()


def test_it_stands_alone(tmp_path: Path) -> None:
    """Copied into an empty folder it imports nothing that is not the standard library's."""
    source = ROOT / "spark_watch" / "client.py"
    shutil.copy(source, tmp_path / "client.py")
    code = "import client, sys; print(any('spark' in name for name in sys.modules))"
    told = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.strip() == "False"
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"__future__", *sys.stdlib_module_names}


def test_importing_it_loads_nothing_else_of_the_package() -> None:
    """From an installed package, too, it brings in the package's own name and no more."""
    code = "import spark_watch.client, sys; print(*(m for m in sys.modules if 'spark' in m))"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert sorted(told.stdout.split()) == ["spark_watch", "spark_watch.client"]


def test_first_step_goes_out_at_once_and_the_rest_adds_up(daemon: Daemon) -> None:
    """A loop of a thousand steps sends one message a second, and no step is lost."""
    progress = Progress("train", batch=8, path=daemon.path, interval_seconds=3600.0)
    for _ in range(1000):
        progress.step(tokens=10, moved_bytes=2.0)
    progress.close()
    first, last = daemon.messages()
    assert (first["steps"], last["steps"]) == (1, 999)
    assert (first["tokens"], last["tokens"]) == (10, 9990)
    assert (last["v"], last["workload"], last["batch"], last["bytes"]) == (1, "train", 8, 1998.0)
    assert 0.0 <= last["step_seconds"] < 1.0


def test_phase_is_told_at_once(daemon: Daemon) -> None:
    """The steps before it keep their own phase."""
    progress = Progress("train", path=daemon.path, interval_seconds=3600.0)
    progress.step()
    progress.step()
    progress.phase("checkpoint")
    told = [(one.get("steps"), one.get("phase")) for one in daemon.messages()]
    assert told == [(1, None), (1, None), (None, "checkpoint")]
    progress.close()


def test_what_no_daemon_took_is_kept(tmp_path: Path) -> None:
    """A daemon that starts later hears of the steps before."""
    path = tmp_path / "s"
    progress = Progress("train", path=str(path), interval_seconds=0.0)
    for _ in range(5):
        progress.step()
    late = Daemon(path)
    progress.step()
    assert [one["steps"] for one in late.messages()] == [6]
    progress.close()
    late.socket.close()


def test_nothing_raises(tmp_path: Path) -> None:
    """Wrong types, a path that is no socket, a closed socket: the loop goes on."""
    for path in (str(tmp_path), str(tmp_path / "none"), "\0", "x" * 5000):
        progress = Progress("train", path=path, interval_seconds=0.0)
        progress.step()
        progress.step("many")  # type: ignore[arg-type]  # what a caller may get wrong
        progress.step(tokens=None)  # type: ignore[arg-type]  # the same
        progress.phase(object())  # type: ignore[arg-type]  # the same
        progress.close()


def test_a_full_queue_does_not_block(daemon: Daemon) -> None:
    """Nobody reads: the calls come back at once, and what was not taken is not lost."""
    progress = Progress("train", path=daemon.path, interval_seconds=0.0)
    begun = time.monotonic()
    for _ in range(3000):
        progress.step()
    assert time.monotonic() - begun < 3.0
    heard = sum(one["steps"] for one in daemon.messages())
    progress.close()
    heard += sum(one["steps"] for one in daemon.messages())
    assert heard == 3000


@pytest.mark.parametrize("listening", [True, False])
def test_cost_of_a_call(tmp_path: Path, listening: bool) -> None:
    """The best of some rounds is well under 20 microseconds a call, with and without a daemon."""
    daemon = Daemon(tmp_path / "s") if listening else None
    progress = Progress("train", path=str(tmp_path / "s"))
    best = 1.0
    for _ in range(20):
        begun = time.perf_counter()
        for _ in range(500):
            progress.step(tokens=4096)
        best = min(best, (time.perf_counter() - begun) / 500)
    progress.close()
    if daemon is not None:
        daemon.socket.close()
    assert best < MOST_SECONDS_A_CALL


def test_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon's own variable wins; else the system's place, then the user's."""
    monkeypatch.delenv(client.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert client.socket_paths() == [
        "/run/spark-watch/progress.sock",
        "/run/user/7/spark-watch/progress.sock",
    ]
    monkeypatch.setenv(client.VARIABLE, "/tmp/s")  # noqa: S108 - a name, no file
    assert client.socket_paths() == ["/tmp/s"]  # noqa: S108 - the same


def test_hugging_face(daemon: Daemon) -> None:
    """Trainer's events by name: steps with their tokens, an evaluation, and every other event."""
    progress = Progress("train", path=daemon.path, interval_seconds=0.0)
    callback = HuggingFaceCallback(progress)
    args = SimpleNamespace(per_device_train_batch_size=4)
    state = SimpleNamespace(is_local_process_zero=True, num_input_tokens_seen=4096)
    assert callback.on_train_begin(args, state, None) is None
    callback.on_step_end(args, state, None)
    callback.on_prediction_step(args, state, None)
    callback.on_evaluate(args, state, None, metrics={})
    state.num_input_tokens_seen = 8192
    callback.on_step_end(args, state, None)
    callback.on_train_end(args, state, None)
    told = [(one.get("steps"), one.get("tokens"), one.get("phase")) for one in daemon.messages()]
    assert told == [
        (1, 4096, None),
        (None, None, "evaluate"),
        (None, None, "train"),
        (1, 4096, "train"),
    ]
    with pytest.raises(AttributeError):
        _ = callback.no_event


def test_hugging_face_counts_one_rank(daemon: Daemon) -> None:
    """Of several processes only the first of the machine reports."""
    callback = HuggingFaceCallback(Progress("train", path=daemon.path))
    callback.on_step_end(None, SimpleNamespace(is_local_process_zero=False), None)
    assert daemon.messages() == []
    callback.progress.close()


def test_lightning(daemon: Daemon) -> None:
    """Lightning's hooks by name, and every other hook."""
    callback = LightningCallback(Progress("train", path=daemon.path, interval_seconds=0.0))
    callback.on_fit_start(None, None)
    callback.on_train_batch_end(SimpleNamespace(local_rank=0), None, None, None, 0)
    callback.on_train_batch_end(SimpleNamespace(local_rank=1), None, None, None, 0)
    callback.on_validation_start(None, None)
    callback.on_validation_end(None, None)
    callback.on_train_end(None, None)
    told = [(one.get("steps"), one.get("phase")) for one in daemon.messages()]
    assert told == [(1, None), (None, "evaluate"), (None, "train")]
    assert callback.state_dict() == {}
