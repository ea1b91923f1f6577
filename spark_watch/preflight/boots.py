"""How the last boots ended, from the recording that the daemon keeps."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_watch.blackbox.forensics import passages_of, ring_in
from spark_watch.blackbox.forensics.passages import restarted
from spark_watch.errors import InputError, OutputError, Unavailable

WINDOW_SECONDS: Final = 7 * 86_400.0
"""Ends that are older say little of the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boots:
    """Restarts of the machine within the last week, as far as they are recorded.

    Args:
        clean: restarts before which the daemon was stopped.
        unclean: for each other one, the last sample before it in unix seconds.
    """

    clean: int = 0
    unclean: tuple[float, ...] = ()


def boots(places: tuple[Path, ...], *, boot_id: str | None, now: float) -> Boots:
    """Return how the machine's boots of the last week ended.

    Args:
        places: state directories; the first that holds a recording counts.
        boot_id: of this boot.
        now: unix seconds.

    Raises:
        Unavailable: ``not_found``, ``permission_denied``, ``malformed``.
    """
    ring = next((found for found in map(ring_in, places) if found is not None), None)
    if ring is None:
        hidden = any(place.exists() and not os.access(place, os.R_OK | os.X_OK) for place in places)
        reason = "permission_denied" if hidden else "not_found"
        raise Unavailable(reason, "no recording that may be read")
    try:
        passages = passages_of(ring, lambda _done, _of: None)
    except (InputError, OutputError) as error:
        raise Unavailable("malformed", str(error)) from error
    clean, unclean = 0, []
    for number, passage in enumerate(passages):
        last = passage.last
        if number + 1 < len(passages):
            again = restarted(last, passages[number + 1].first)
        else:
            again = None not in {boot_id, last.boot_id} and boot_id != last.boot_id
        if not again or now - last.t > WINDOW_SECONDS:
            continue
        if last.stopped:
            clean += 1
        else:
            unclean.append(last.t)
    return Boots(clean=clean, unclean=tuple(unclean))
