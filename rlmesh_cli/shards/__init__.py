"""Shards: the episodes of one run, played by several workers while one process keeps the books."""
