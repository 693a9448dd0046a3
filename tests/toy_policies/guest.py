"""Not a good guest: prints, moves, silences the log, seeds, and rewrites the command line."""

import logging
import os
import random
import sys
import tempfile

import numpy as np

print("reading weights")  # noqa: T201
os.write(1, b"so does the C library\n")
os.chdir(tempfile.gettempdir())
logging.disable(logging.CRITICAL)
logging.getLogger().handlers[:] = []
random.seed(99)
np.random.seed(99)
sys.argv[:] = ["mine"]


class Policy:
    def predict(self, obs):
        print("thinking")  # noqa: T201
        return 0


if __name__ == "__main__":
    raise SystemExit("this file was run as a script")
