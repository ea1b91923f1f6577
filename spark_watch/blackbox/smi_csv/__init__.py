"""Logs of ``nvidia-smi --query-gpu=... --format=csv`` and CSV files of other tools, as samples."""

from spark_watch.blackbox.smi_csv.reader import CsvReader, read_csv

__all__ = ["CsvReader", "read_csv"]
