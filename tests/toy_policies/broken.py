"""Raises while it is loaded."""

raise RuntimeError("weights.bin is missing")
