"""What the daemon tells others: the Prometheus page, JSON, and whatever is pushed."""
