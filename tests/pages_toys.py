"""Run folders for pages: with markup in every name, with videos, with many episodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from cli_toys import row
from stored import record, rows, written

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.episodes import EpisodeError, EpisodeResult
from rlmesh_cli.pages.facts import Figure, Figures, Page, Table
from rlmesh_cli.pages.opened import opened
from rlmesh_cli.pages.run_page import run_page
from rlmesh_cli.run_reader import StoredRun, read_run

#: What would act if any of it were read as markup, by HTML, by a plot, by a script or by the template.
EVIL = "<b>bold</b><img src=x onerror=alert(1)></script><!--<script>&amp;\"'`{{7*7}}\u202e\x1b[31m"
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def run_folder(folder: Path, made: list[EpisodeResult], **changes: Any) -> Path:
    """Write a run of such rows, without a summary, and return its folder."""
    seeds = changes.pop("seeds", [one.seed or 0 for one in made])
    return written(folder, StoredRun(folder=folder, record=record(seeds, **changes), rows=made))


def evil_folder(folder: Path) -> Path:
    """Write a run whose every name is markup, and return its folder."""
    error = EpisodeError(phase="step", step=1, message=f"RuntimeError: {EVIL}", place=EVIL)
    made = [
        *rows([True, False, None], metrics={EVIL: 1.5}, success_source=EVIL),
        row(3, seed=3, success=None, error=error, end="error", start_hash="3" * 16),
    ]
    advisory = {"code": EVIL, "severity": "caution", "message": EVIL, "count": 2}
    test = {"name": EVIL, "outcome": EVIL, "sentence": EVIL, "numbers": {}}
    return run_folder(
        folder,
        made,
        route__env__id=EVIL,
        route__metrics=[EVIL],
        policy__label=EVIL,
        advisories=[msgspec.to_builtins(Advisory(**advisory))],
        adapter=[EVIL],
        probe={"verdict": EVIL, "meaning": EVIL, "tests": [test]},
        actuators=[{"role": EVIL, "values": 10, "clipped": 1, "saturated": 2}],
        argv=[EVIL],
        sessions=[],
        versions={EVIL: EVIL},
        host={EVIL: EVIL},
        git={"commit": EVIL, "branch": EVIL, "dirty": True},
    )


def data_of(page: str) -> dict[str, Any]:
    """Return what a page gives its script."""
    (text,) = _DATA.findall(page)
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def page_of(folder: Path) -> Page:
    return run_page(opened(read_run(folder)), folder, made="")


def figures_of(page: Page) -> dict[str, Figure]:
    """Return the plots of a page by their ids."""
    blocks = [block for section in page.sections for block in section.blocks]
    return {figure.id: figure for block in blocks if isinstance(block, Figures) for figure in block.items}


def tables_of(page: Page) -> dict[str, Table]:
    """Return the tables of a page's sections by their ids."""
    blocks = [block for section in page.sections for block in section.blocks]
    return {block.id: block for block in blocks if isinstance(block, Table)}
