"""Apply: each plan applied to a whole batch at once."""
