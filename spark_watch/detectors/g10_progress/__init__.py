"""G10: a GPU that is busy on paper alone."""
