"""The one door to NVML: every call of the product goes through :meth:`Gate.call`.

A call ends in one of four ways, and each of them means something else:

* it gives a value;
* it is not supported: remembered, so that the driver is not asked again until it is replaced;
* it fails: this time, with NVML's own name for the reason;
* it is late: it has not come back. Nobody can end such a call, but :attr:`Gate.outstanding_since`
  says how long it has been out. In NVIDIA's kernel module a query may wait for a lock that an
  allocating thread holds; on GB10 that has lasted 491 to 737 seconds
  (MiaAI-Lab/DeepSeek-v4.1-Flash-DGX-Sparks#23).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import pynvml

from spark_watch.errors import SourceError, Unavailable, Unsupported

REASONS: Final[dict[int, str]] = {
    value: name.removeprefix("NVML_ERROR_").lower()
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_")
}
"""NVML's return codes by number, named as in ``nvml.h`` (``gpu_is_lost``)."""

_FOR_GOOD: Final = frozenset(
    {
        "not_supported",
        "function_not_found",
        "argument_version_mismatch",
        "deprecated",
    }
)
"""What a driver that says it once will say for as long as it is the same driver."""


class Gate:
    """Calls NVML, remembers what it does not support, and counts.

    One thread calls; any thread may read the attributes.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.calls = 0
        """Calls made so far; one that is remembered as not supported is not made."""
        self.outstanding_since: float | None = None
        """When the call began that is now out, on the clock; ``None`` while none is."""
        self._clock = clock
        self._errors: dict[str, int] = {}
        self._unsupported: dict[tuple[str, int | None], str] = {}

    @property
    def errors(self) -> dict[str, int]:
        """How often calls failed, by reason; "not supported" is an answer and is not counted."""
        return self._errors.copy()

    def call(self, function: Callable[..., Any], *arguments: Any, gpu: int | None = None) -> Any:
        """Call one function of ``pynvml`` and return its value.

        Args:
            function: known by its name from one call to the next.
            arguments: passed on as they are.
            gpu: index of the GPU that is asked; support is remembered for each one.

        Raises:
            Unsupported: this driver does not have it for this GPU, now or by memory.
            Unavailable: it failed this time; ``malformed`` where its text is no UTF-8.
        """
        what = function.__name__
        known = self._unsupported.get((what, gpu))
        if known is not None:
            raise Unsupported(known, f"{what}: {known}")
        self.calls += 1
        self.outstanding_since = self._clock()
        try:
            return function(*arguments)
        except pynvml.NVMLError as error:
            raise self.refusal(what, error.value, gpu=gpu) from None
        except UnicodeDecodeError:
            raise self._failed(what, "malformed") from None
        finally:
            self.outstanding_since = None

    def supports(self, what: str, *, gpu: int | None = None) -> bool:
        """Return whether nothing is known against asking this."""
        return (what, gpu) not in self._unsupported

    def refusal(self, what: str, code: int, *, gpu: int | None = None) -> SourceError:
        """Book a return code and return the error that it stands for.

        Args:
            what: a function's name, or one entry of a query that can fail alone.
            code: NVML's return code, not 0.
            gpu: index of the GPU that was asked.
        """
        reason = REASONS.get(code, f"error_{code}")
        if reason in _FOR_GOOD:
            self._unsupported[what, gpu] = reason
            return Unsupported(reason, f"{what}: {reason}")
        return self._failed(what, reason)

    def _failed(self, what: str, reason: str) -> Unavailable:
        self._errors[reason] = self._errors.get(reason, 0) + 1
        return Unavailable(reason, f"{what}: {reason}")

    def forget(self) -> None:
        """Ask everything again: the driver is another one."""
        self._unsupported.clear()
