"""The battery on the zoo of tests/zoo, with the older rule of thumb beside it.

    python tests/benchmarks/probe_zoo.py [--seeds 20]

For every policy: how often it was called what it is, and what the rule says. The rule asks A, A, A, B, A and
rejects a policy whose last two answers to A differ by more than eight times the first two did, or by 1e-6.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from zoo import clean, faulty
from zoo.asking import probe

from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.corners import parameter_names


def rule_rejects(policy: Any, seed: int) -> bool:
    """Tell whether the older rule rejects a policy; it asks `predict` alone, where there is one."""
    instance = policy()
    if not hasattr(instance, "predict"):
        return False
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, 4)).astype(np.float32)
    context = EpisodeContext("ep", 0, seed)
    options = {"context": context} if "context" in parameter_names(instance.predict) else {}
    reset = getattr(instance, "reset", None)
    if reset is not None:
        reset(**({"context": context} if "context" in parameter_names(reset) else {}))

    def ask(obs: np.ndarray) -> Any:
        answer = instance.predict(obs, **options)
        if isinstance(answer, dict):
            answer = np.concatenate([np.ravel(part) for part in answer.values()])
        return np.asarray(answer[0] if isinstance(answer, tuple) else answer, float)

    def gap(first: Any, second: Any) -> float | None:
        if first.shape != second.shape:
            return None
        known = np.abs(first - second)
        known = known[~np.isnan(known)]
        return float(known.max()) if known.size else 0.0

    floor = gap(ask(one), ask(one))
    before = ask(one)
    ask(other)
    delta = gap(before, ask(one))
    return (0.0 if delta is None else delta) > max(8 * (np.inf if floor is None else floor), 1e-6)


def main() -> int:
    """Print the table; return 1 if a faulty policy was missed or a clean one accused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    wrong = 0
    for title, verdicts in (("faulty", faulty.VERDICTS), ("clean", clean.VERDICTS)):
        hits = rule_hits = 0
        print(f"{title:24s} {'called':>7s}  {'verdicts':32s} {'calls':>6s} {'ms':>7s}  the older rule")
        for policy, expected in verdicts.items():
            began = time.perf_counter()
            found = [probe(policy, seed=seed) for seed in range(seeds)]
            spent = (time.perf_counter() - began) / seeds
            right = sum(verdict.verdict in expected for verdict in found)
            rejected = sum(rule_rejects(policy, seed) for seed in range(seeds))
            rule_right = rejected if title == "faulty" else seeds - rejected
            hits, rule_hits = hits + right, rule_hits + rule_right
            wrong += seeds - right
            names = ", ".join(sorted({verdict.verdict for verdict in found}))
            calls = max(verdict.calls for verdict in found)
            print(
                f"  {policy.__name__:22s} {right:3d}/{seeds:<3d}  {names:32s} {calls:6d} {1e3 * spent:7.1f}"
                f"  {'rejects' if rejected else 'passes'} {rejected}/{seeds}"
            )
        total = seeds * len(verdicts)
        print(f"  {len(verdicts)} policies: {hits}/{total} right; the older rule {rule_hits}/{total}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
