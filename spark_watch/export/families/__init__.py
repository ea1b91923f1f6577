"""Every metric family of the page, in the order in which it shows them."""

from typing import Final

from spark_watch.export.families import (
    conditions,
    daemon,
    machine,
    memory,
    preflight,
    processes,
    recorder,
    workloads,
)
from spark_watch.export.families.family import NAMESPACE, Family

__all__ = ["FAMILIES", "NAMESPACE", "Family"]

FAMILIES: Final[tuple[Family, ...]] = (
    *conditions.FAMILIES,
    *memory.FAMILIES,
    *machine.FAMILIES,
    *processes.FAMILIES,
    *workloads.FAMILIES,
    *preflight.FAMILIES,
    *daemon.FAMILIES,
    *recorder.FAMILIES,
)
