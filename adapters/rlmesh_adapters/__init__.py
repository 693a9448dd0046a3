"""Arrays in, arrays out: the policy's side of the harness.

Knows no simulator, no terminal, no clock and no file. Axes used throughout: N lanes, M asking
rows (M <= N), H actions of a chunk, A the axes of one action.
"""
