"""Making: from runs that were read to the bytes of a page."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from rlmesh_cli import __version__
from rlmesh_cli.comparing import Comparison
from rlmesh_cli.run_reader import StoredRun

from .markup import html_of
from .opened import opened
from .pair_page import pair_page
from .run_page import run_page
from .several_page import several_page


def run_html(run: StoredRun, folder: Path) -> bytes:
    """Return the page of one run; folder: that the page is put into, which its links start from.

    Raises NoEpisodeError for a run without rows.
    """
    return html_of(run_page(opened(run), folder, made=_made()))


def pair_html(comparison: Comparison, folder: Path, divergence: Sequence[str] | None) -> bytes:
    """Return the page of two runs; see pair_page."""
    base, new = opened(comparison.base), opened(comparison.new)
    return html_of(pair_page(base, new, comparison, folder, divergence=divergence, made=_made()))


def several_html(runs: Sequence[StoredRun], folder: Path) -> bytes:
    """Return the page of more than two runs.

    Raises NoEpisodeError if one has no rows.
    """
    return html_of(several_page([opened(run) for run in runs], folder, made=_made()))


def _made() -> str:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made by rlmesh {__version__} on {now}. This file needs no network."
