"""The daemon: one loop over one feed."""
