"""The settings tree: defaults, file, environment and flags, in that order."""
