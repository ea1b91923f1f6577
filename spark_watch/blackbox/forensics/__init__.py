"""After the event: which runs there were, how each ended, and what stood before."""

from spark_watch.blackbox.forensics.account import Account, Judging, accounts_of
from spark_watch.blackbox.forensics.passages import Passage, passages_of, ring_in
from spark_watch.blackbox.forensics.picture import chart, table

__all__ = [
    "Account",
    "Judging",
    "Passage",
    "accounts_of",
    "chart",
    "passages_of",
    "ring_in",
    "table",
]
