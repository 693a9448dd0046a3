"""Doctor: what of this machine works for us, what is missing, and how to get it; nothing is written."""
