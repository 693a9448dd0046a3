"""References: medians that were measured once, on a machine that is described beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .measuring import Outcome
from .telling import machine

FILE = Path(__file__).with_name("references.json")


def record(outcomes: Sequence[Outcome]) -> None:
    """Keep medians; those of cases that were not measured now stay."""
    kept: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["figures"] if FILE.exists() else {}
    kept |= {outcome.name: round(outcome.median, 3) for outcome in outcomes}
    text = json.dumps({"machine": machine(), "figures": dict(sorted(kept.items()))}, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")
