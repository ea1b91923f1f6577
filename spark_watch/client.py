"""Tells spark-watch how a training or inference loop gets on. Standard library alone, one file.

It may be copied into an environment that has no spark-watch: importing it loads nothing else of the
package. No call blocks or raises, and all of them do nothing while no daemon listens.

A plain loop::

    from spark_watch.client import Progress

    progress = Progress("train", batch=8)
    for batch in loader:
        loss = train_step(batch)
        progress.step(tokens=batch["input_ids"].numel())

Hugging Face Trainer: ``Trainer(..., callbacks=[HuggingFaceCallback(Progress("train"))])``.
Lightning: ``Trainer(callbacks=[LightningCallback(Progress("train"))])``.

From one process of a machine only, rank 0 of it: every process that reports under one name adds up.
Name a pause that is no hang, ``progress.phase("checkpoint")``, and end it with
``progress.phase("train")``.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

__all__ = ["HuggingFaceCallback", "LightningCallback", "Progress"]

VARIABLE = "SPARK_WATCH_PROGRESS__SOCKET"
"""The daemon's own variable for the socket's path; it holds for the client as well."""

INTERVAL_SECONDS = 1.0
"""Messages are no more frequent than this; what happened between them is added up."""


def socket_paths() -> list[str]:
    """Return where a daemon may listen, the likeliest first."""
    named = os.environ.get(VARIABLE)
    if named:
        return [named]
    paths = ["/run/spark-watch/progress.sock"]
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own:
        paths.append(os.path.join(own, "spark-watch", "progress.sock"))  # noqa: PTH118 - pathlib takes 20 ms to import
    return paths


class Progress:
    """One workload's reports.

    Args:
        workload: its name, at most 48 letters, digits and ``_.:-``.
        batch: samples or requests in a step, so that two speeds are compared at the same one.
        model_bytes: size of the weights, from which a decode step's bytes are estimated.
        path: the socket, where it is not in its usual place.
        interval_seconds: how long counts are added up before they are sent.
    """

    def __init__(
        self,
        workload: str,
        *,
        batch: float | None = None,
        model_bytes: float | None = None,
        path: str | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._fixed: dict[str, Any] = {"v": 1, "workload": workload}
        if model_bytes is not None:
            self._fixed["model_bytes"] = model_bytes
        self._batch = batch
        self._phase: str | None = None
        self._path = path
        self._interval = interval_seconds
        self._socket: socket.socket | None = None
        self._pid = 0
        self._steps = 0
        self._tokens = 0
        self._bytes = 0.0
        self._begun = time.monotonic()
        self._due = 0.0

    def step(
        self,
        steps: int = 1,
        *,
        tokens: int = 0,
        moved_bytes: float = 0.0,
        batch: float | None = None,
    ) -> None:
        """Count steps that are done; send what has added up, at most once an interval.

        Args:
            steps: how many.
            tokens: tokens made or trained on in them.
            moved_bytes: bytes they moved to and from memory, where you know.
            batch: the batch from now on.
        """
        try:
            self._steps += steps
            self._tokens += tokens
            self._bytes += moved_bytes
            if batch is not None:
                self._batch = batch
            now = time.monotonic()
            if now >= self._due:
                self._send(now)
        except Exception:  # noqa: BLE001, S110 - a report is never worth a training run
            pass

    def phase(self, name: str | None) -> None:
        """Say what is being done from now on (``prefill``, ``checkpoint``, ``train``), at once."""
        try:
            now = time.monotonic()
            if name != self._phase:
                if self._steps:
                    self._send(now)
                self._phase = name
                self._begun = now
            self._send(now)
        except Exception:  # noqa: BLE001, S110 - see above
            pass

    def close(self) -> None:
        """Send what is left and close the socket; a later step opens it again."""
        try:
            if self._steps:
                self._send(time.monotonic())
        except Exception:  # noqa: BLE001, S110 - see above
            pass
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, now: float) -> None:
        """Send what has added up; what could not be sent is kept for the next time."""
        self._due = now + self._interval
        message = dict(self._fixed)
        if self._steps:
            message["steps"] = self._steps
            message["step_seconds"] = round((now - self._begun) / self._steps, 6)
        if self._tokens:
            message["tokens"] = self._tokens
        if self._bytes:
            message["bytes"] = self._bytes
        if self._batch is not None:
            message["batch"] = self._batch
        if self._phase is not None:
            message["phase"] = self._phase
        if self._deliver(json.dumps(message).encode()):
            self._steps = self._tokens = 0
            self._bytes = 0.0
            self._begun = now

    def _deliver(self, text: bytes) -> bool:
        """Hand a message to whoever listens; False where nobody does or the queue is full."""
        pid = os.getpid()
        if self._socket is None or self._pid != pid:
            # a forked worker must not share its parent's socket
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._pid = pid
        for path in [self._path] if self._path is not None else socket_paths():
            try:
                self._socket.sendto(text, path)
            except OSError:
                continue
            return True
        return False


class HuggingFaceCallback:
    """A ``TrainerCallback`` by its shape alone: transformers is not imported.

    Trainer calls every ``on_...`` method that it knows; those not written here do nothing.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._seen: float = 0

    def __getattr__(self, name: str) -> Any:
        """Answer the events that mean nothing to us."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """Count a step, with the tokens where Trainer counts them."""
        del control, unused
        if not getattr(state, "is_local_process_zero", True):
            return
        seen = getattr(state, "num_input_tokens_seen", 0) or 0
        tokens = int(max(0, seen - self._seen))
        self._seen = seen
        self.progress.step(tokens=tokens, batch=getattr(args, "per_device_train_batch_size", None))
        if self.progress._phase not in {None, "train"}:  # noqa: SLF001 - same file
            self.progress.phase("train")

    def on_evaluate(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """An evaluation is over: training goes on."""
        del args, state, control, unused
        self.progress.phase("train")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """An evaluation is under way."""
        del args, state, control, unused
        if self.progress._phase != "evaluate":  # noqa: SLF001 - same file
            self.progress.phase("evaluate")

    def on_train_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """Send what is left."""
        del args, state, control, unused
        self.progress.close()


def _nothing(*unused: Any, **unused_too: Any) -> None:
    """Take any event and do nothing."""


class LightningCallback:
    """A Lightning ``Callback`` by its shape alone: Lightning is not imported."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __getattr__(self, name: str) -> Any:
        """Answer the hooks that mean nothing to us."""
        if name.startswith(("on_", "setup", "teardown")):
            return _nothing
        raise AttributeError(name)

    @property
    def state_key(self) -> str:
        """The name under which Lightning would keep our state; there is none."""
        return "spark-watch"

    def state_dict(self) -> dict[str, Any]:
        """Nothing of ours is in a checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing of ours is in a checkpoint."""

    def on_train_batch_end(self, trainer: Any, *unused: Any, **unused_too: Any) -> None:
        """Count a step."""
        del unused, unused_too
        if getattr(trainer, "local_rank", 0) == 0:
            self.progress.step()

    def on_validation_start(self, *unused: Any, **unused_too: Any) -> None:
        """A validation is under way."""
        del unused, unused_too
        self.progress.phase("evaluate")

    def on_validation_end(self, *unused: Any, **unused_too: Any) -> None:
        """A validation is over: training goes on."""
        del unused, unused_too
        self.progress.phase("train")

    def on_train_end(self, *unused: Any, **unused_too: Any) -> None:
        """Send what is left."""
        del unused, unused_too
        self.progress.close()
