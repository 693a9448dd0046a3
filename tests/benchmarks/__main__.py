"""Every figure of the harness that this machine can measure: `python -m tests.benchmarks`."""

from __future__ import annotations

from .running import main

if __name__ == "__main__":
    raise SystemExit(main())
