"""A simulated DGX Spark: named scenarios, seeded, with full samples and the answer to each.

Runs where no GPU is: ``spark-watch run --source simulate:collapse``, the demonstration, and the
generated traces that the detectors are scored on.
"""

from spark_watch.sources.simulated.scenario import Scenario, Span
from spark_watch.sources.simulated.scenarios import SCENARIOS
from spark_watch.sources.simulated.source import DemoSource, SimulatedSource, scenario_named

__all__ = ["SCENARIOS", "DemoSource", "Scenario", "SimulatedSource", "Span", "scenario_named"]
