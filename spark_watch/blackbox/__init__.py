"""What was recorded: the trace format, logs of other tools, the on-disk ring, boot forensics."""
