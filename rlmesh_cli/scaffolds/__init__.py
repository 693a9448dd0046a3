"""Scaffolds: the first policy and route for an environment, from what it says of itself."""
