"""Resolving: env tags and spaces, and a model spec, become plans; all that can be decided before a step is."""
