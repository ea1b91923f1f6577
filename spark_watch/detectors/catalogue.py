"""Every condition there is, in the order in which it is shown.

Adding one is one class and one row here; page, README, runbook, rules and dashboards follow from
the row or fail a test that says what is missing.
"""

from __future__ import annotations

from typing import Any, Final

from spark_watch.detectors.condition import Condition
from spark_watch.detectors.g3_driver.driver_allocation_failures import DriverAllocationFailures
from spark_watch.detectors.g3_driver.driver_fault import DriverFault
from spark_watch.detectors.g3_driver.driver_memory_creep import DriverMemoryCreep
from spark_watch.detectors.g3_driver.driver_stalled import DriverStalled
from spark_watch.detectors.g3_driver.telemetry_gap import TelemetryGap
from spark_watch.detectors.g3_memory.memory_collapse import MemoryCollapse
from spark_watch.detectors.g3_memory.memory_fragmented import MemoryFragmented
from spark_watch.detectors.g3_memory.memory_low import MemoryLow
from spark_watch.detectors.g3_memory.memory_stalled import MemoryStalled
from spark_watch.detectors.g3_memory.page_cache_squeeze import PageCacheSqueeze
from spark_watch.detectors.g3_memory.swap_thrash import SwapThrash
from spark_watch.detectors.g4_power.board_hot import BoardHot
from spark_watch.detectors.g4_power.gpu_hot import GpuHot
from spark_watch.detectors.g4_power.low_power_state import LowPowerState
from spark_watch.detectors.g4_power.power_plateau import PowerPlateau
from spark_watch.detectors.g4_power.thermal_slowdown import ThermalSlowdown
from spark_watch.detectors.g4_power.unclean_reboot import UncleanReboot
from spark_watch.detectors.g5_bandwidth.bandwidth_ceiling import BandwidthCeiling
from spark_watch.detectors.g5_bandwidth.bandwidth_degraded import BandwidthDegraded
from spark_watch.detectors.g6_contention.orphaned_memory import OrphanedMemory
from spark_watch.detectors.g6_contention.pool_overcommitted import PoolOvercommitted
from spark_watch.detectors.g6_contention.squeezed import Squeezed
from spark_watch.detectors.g6_contention.unattributed_memory import UnattributedMemory
from spark_watch.detectors.g10_progress.busy_without_progress import BusyWithoutProgress
from spark_watch.settings.conditions import ConditionSettings

CATALOGUE: Final[tuple[type[Condition[Any]], ...]] = (
    MemoryCollapse,
    MemoryLow,
    MemoryStalled,
    PageCacheSqueeze,
    SwapThrash,
    MemoryFragmented,
    DriverAllocationFailures,
    DriverFault,
    DriverStalled,
    DriverMemoryCreep,
    TelemetryGap,
    LowPowerState,
    ThermalSlowdown,
    PowerPlateau,
    BoardHot,
    GpuHot,
    UncleanReboot,
    BandwidthCeiling,
    BandwidthDegraded,
    PoolOvercommitted,
    Squeezed,
    OrphanedMemory,
    UnattributedMemory,
    BusyWithoutProgress,
)
"""The classes, by gotcha and then by how soon each must be seen."""


def conditions(settings: ConditionSettings) -> list[Condition[Any]]:
    """Return fresh conditions in the catalogue's order, each with its own part of the settings."""
    return [kind(getattr(settings, kind.name)) for kind in CATALOGUE]
