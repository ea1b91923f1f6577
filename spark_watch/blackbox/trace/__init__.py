"""Trace v1: JSON Lines, optionally gzip; a header line, then one sample a line.

Sizes are bytes, times seconds, shares 0 to 1. What was not readable is left out of a line.
"""

from spark_watch.blackbox.trace.header import TraceHeader
from spark_watch.blackbox.trace.reader import TraceReader, read_trace
from spark_watch.blackbox.trace.writer import TraceWriter

__all__ = ["TraceHeader", "TraceReader", "TraceWriter", "read_trace"]
