"""How sure the numbers of a run are: intervals, tests between two runs, and what a number of episodes can show."""
