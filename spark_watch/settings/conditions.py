"""The levels and holds of every condition, one model each, under the condition's own name."""

from spark_watch.settings.frozen import Frozen
from spark_watch.settings.g3 import (
    MemoryCollapseSettings,
    MemoryFragmentedSettings,
    MemoryLowSettings,
    MemoryStalledSettings,
    PageCacheSqueezeSettings,
    SwapThrashSettings,
)
from spark_watch.settings.g3_driver import (
    DriverAllocationFailuresSettings,
    DriverFaultSettings,
    DriverMemoryCreepSettings,
    DriverStalledSettings,
    TelemetryGapSettings,
)
from spark_watch.settings.g4 import (
    BoardHotSettings,
    GpuHotSettings,
    LowPowerStateSettings,
    PowerPlateauSettings,
    ThermalSlowdownSettings,
)
from spark_watch.settings.g4_boot import UncleanRebootSettings
from spark_watch.settings.g5 import BandwidthCeilingSettings, BandwidthDegradedSettings
from spark_watch.settings.g6 import (
    OrphanedMemorySettings,
    PoolOvercommittedSettings,
    SqueezedSettings,
    UnattributedMemorySettings,
)
from spark_watch.settings.g10 import BusyWithoutProgressSettings


class ConditionSettings(Frozen):
    """``[conditions.NAME]`` in the settings file."""

    memory_collapse: MemoryCollapseSettings = MemoryCollapseSettings()
    memory_low: MemoryLowSettings = MemoryLowSettings()
    memory_stalled: MemoryStalledSettings = MemoryStalledSettings()
    page_cache_squeeze: PageCacheSqueezeSettings = PageCacheSqueezeSettings()
    swap_thrash: SwapThrashSettings = SwapThrashSettings()
    memory_fragmented: MemoryFragmentedSettings = MemoryFragmentedSettings()
    driver_allocation_failures: DriverAllocationFailuresSettings = (
        DriverAllocationFailuresSettings()
    )
    driver_fault: DriverFaultSettings = DriverFaultSettings()
    driver_stalled: DriverStalledSettings = DriverStalledSettings()
    driver_memory_creep: DriverMemoryCreepSettings = DriverMemoryCreepSettings()
    telemetry_gap: TelemetryGapSettings = TelemetryGapSettings()
    low_power_state: LowPowerStateSettings = LowPowerStateSettings()
    thermal_slowdown: ThermalSlowdownSettings = ThermalSlowdownSettings()
    power_plateau: PowerPlateauSettings = PowerPlateauSettings()
    board_hot: BoardHotSettings = BoardHotSettings()
    gpu_hot: GpuHotSettings = GpuHotSettings()
    unclean_reboot: UncleanRebootSettings = UncleanRebootSettings()
    bandwidth_ceiling: BandwidthCeilingSettings = BandwidthCeilingSettings()
    bandwidth_degraded: BandwidthDegradedSettings = BandwidthDegradedSettings()
    pool_overcommitted: PoolOvercommittedSettings = PoolOvercommittedSettings()
    squeezed: SqueezedSettings = SqueezedSettings()
    orphaned_memory: OrphanedMemorySettings = OrphanedMemorySettings()
    unattributed_memory: UnattributedMemorySettings = UnattributedMemorySettings()
    busy_without_progress: BusyWithoutProgressSettings = BusyWithoutProgressSettings()
