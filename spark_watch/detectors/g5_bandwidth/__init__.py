"""G5: the bytes a workload moves, held against the memory and against itself."""
