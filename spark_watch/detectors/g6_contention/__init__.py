"""G6: several processes on the one pool."""
