"""The status page: what a person sees with a browser, or with curl, and nothing else."""
