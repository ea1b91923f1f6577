"""The rules: pure functions of samples."""
