"""The levels and holds of every condition, one model each, under the condition's own name."""

from spark_watch.settings.frozen import Frozen
from spark_watch.settings.g4 import GpuHotSettings


class ConditionSettings(Frozen):
    """``[conditions.NAME]`` in the settings file."""

    gpu_hot: GpuHotSettings = GpuHotSettings()
