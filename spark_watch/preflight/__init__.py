"""What to know before a run: a file per gotcha that judges facts, and readers that find them."""
