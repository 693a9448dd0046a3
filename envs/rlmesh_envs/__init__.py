"""Environments as lanes: the only folder that imports gymnasium."""
