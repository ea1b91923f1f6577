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
from spark_watch.settings.g3_driver import DriverStalledSettings, TelemetryGapSettings
from spark_watch.settings.g4 import GpuHotSettings
from spark_watch.settings.g6 import PoolOvercommittedSettings


class ConditionSettings(Frozen):
    """``[conditions.NAME]`` in the settings file."""

    memory_collapse: MemoryCollapseSettings = MemoryCollapseSettings()
    memory_low: MemoryLowSettings = MemoryLowSettings()
    memory_stalled: MemoryStalledSettings = MemoryStalledSettings()
    page_cache_squeeze: PageCacheSqueezeSettings = PageCacheSqueezeSettings()
    swap_thrash: SwapThrashSettings = SwapThrashSettings()
    memory_fragmented: MemoryFragmentedSettings = MemoryFragmentedSettings()
    driver_stalled: DriverStalledSettings = DriverStalledSettings()
    telemetry_gap: TelemetryGapSettings = TelemetryGapSettings()
    gpu_hot: GpuHotSettings = GpuHotSettings()
    pool_overcommitted: PoolOvercommittedSettings = PoolOvercommittedSettings()
