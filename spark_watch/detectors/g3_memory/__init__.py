"""G3: the one pool of CPU and GPU memory runs out, stalls, swaps or breaks into small pieces."""
