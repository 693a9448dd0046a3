"""`python -m rlmesh_cli`, and what the console scripts call."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is still being loaded needs no traceback."""
    try:
        from .app import main as run  # noqa: PLC0415 - so that it is inside
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
