"""The score of every condition on labelled traces: ``python -m tests.score``."""
