"""Running: modules of cases measured and told, with the words of the command line."""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .measuring import Case, Outcome, Skip, measure
from .references import record
from .telling import as_json, print_table

#: Modules with a function `cases(folder)`; a new one is a line here.
MODULES = (
    "bench_rollout",
    "bench_by_hand",
    "bench_adapters",
    "bench_images",
    "bench_workers",
    "bench_shards",
    "bench_chunks",
    "bench_recording",
    "bench_start",
    "bench_rivals",
)

_ROUNDS, _SHORT_ROUNDS = 9, 5
#: What a short run of all of them may take, warming up included.
SHORT_SECONDS = 50.0


def collect(modules: Sequence[str], folder: Path) -> tuple[list[Case], list[Skip]]:
    """Return what the modules measure, and what they cannot here.

    folder: for what they write.
    """
    cases: list[Case] = []
    skips: list[Skip] = []
    for module in modules:
        for found in importlib.import_module(f".{module}", __package__).cases(folder):
            if isinstance(found, Skip):
                skips.append(found)
            else:
                cases.append(found)
    return cases, skips


def main(modules: Sequence[str] = MODULES) -> int:
    """Print what is measured; return 1 if a bar is missed, 2 for a name that there is not."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measure the harness against what a user would write."
    )
    parser.add_argument("--rounds", type=int, help=f"how often each is measured (default: {_ROUNDS})")
    parser.add_argument("--short", action="store_true", help="in about a minute, with fewer rounds")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="only names that begin so; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--record", action="store_true", help="keep the medians as references")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        cases, skips = collect(modules, Path(name))
        only = tuple(options.only or [""])
        chosen = [case for case in cases if case.name.startswith(only)]
        skips = [skip for skip in skips if skip.name.startswith(only)]
        if not chosen and not skips:
            names = ", ".join(case.name for case in cases)
            print(f"nothing is called {' or '.join(only)}; there are {names}")
            return 2
        rounds = options.rounds or (_SHORT_ROUNDS if options.short else _ROUNDS)
        outcomes = measure(chosen, rounds, SHORT_SECONDS if options.short else None)
    _tell(outcomes, skips, is_json=options.json)
    if options.record:
        record(outcomes)
    return int(any(not outcome.is_met for outcome in outcomes))


def _tell(outcomes: Sequence[Outcome], skips: Sequence[Skip], *, is_json: bool) -> None:
    if is_json:
        print(json.dumps(as_json(outcomes, skips), indent=1))
    else:
        print_table(outcomes, skips)
