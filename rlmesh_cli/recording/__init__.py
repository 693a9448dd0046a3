"""Recording: what passes in an episode, step by step, and what it looked like, kept in files of the run."""
