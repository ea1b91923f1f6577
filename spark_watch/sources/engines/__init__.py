"""Inference servers' own counters, asked over HTTP by a thread of their own."""
