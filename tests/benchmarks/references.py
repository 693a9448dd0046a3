"""References: ratios that were measured once, on a machine that is described beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .measuring import Outcome
from .telling import machine

FILE = Path(__file__).with_name("references.json")


def record(outcomes: Sequence[Outcome]) -> None:
    """Keep ratios; those of cases that were not measured now stay.

    A difference of times grows with whatever slows the machine down, so of it the ratio is kept.
    """
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["figures"] if FILE.exists() else {}
    for outcome in outcomes:
        is_extra = outcome.kind == "extra" and outcome.theirs
        kept[outcome.name] = round(outcome.ours / outcome.theirs if is_extra else outcome.median, 3)
    text = json.dumps({"machine": machine(), "figures": dict(sorted(kept.items()))}, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")
