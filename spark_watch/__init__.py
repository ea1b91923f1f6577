"""spark-watch: the daemon that watches one NVIDIA DGX Spark and names how it is about to fail."""

__version__ = "0.1.0"
