"""The black box on disk: a bounded ring of Trace v1 segments that outlives what it watches."""

from spark_watch.blackbox.ring.folder import FOLDER, RingFolder, SegmentFile
from spark_watch.blackbox.ring.recovery import RUNS_LIMIT, Run, history, runs_of
from spark_watch.blackbox.ring.status import RecorderStatus
from spark_watch.blackbox.ring.writer import RingWriter

__all__ = [
    "FOLDER",
    "RUNS_LIMIT",
    "RecorderStatus",
    "RingFolder",
    "RingWriter",
    "Run",
    "SegmentFile",
    "history",
    "runs_of",
]
