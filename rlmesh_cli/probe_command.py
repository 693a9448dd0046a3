"""What `rlmesh probe` does between its flags and its exit code."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from rlmesh_adapters.errors import RouteError
from rlmesh_adapters.probe.battery import verdict_record

from .answering import answer_with, write_json, write_out
from .exits import Exit
from .flags import RouteRequest, read_flags
from .probing import Probed, probe
from .route import read_route
from .streams import user_output_to_stderr


class ProbeRequest(RouteRequest, frozen=True, kw_only=True):
    """The flags of `rlmesh probe`, as typed; None is a flag that was not given."""

    trusts_entrypoints: bool = False
    budget: float = 60.0
    is_env_checked: bool = False
    as_json: bool = False


def run(request: ProbeRequest) -> Exit:
    """Probe, show, and return the exit code; a user's mistake is one message, a fault of ours a traceback."""
    return answer_with(lambda: _answer(request))


def _answer(request: ProbeRequest) -> Exit:
    if not math.isfinite(request.budget) or request.budget <= 0:
        raise RouteError(f"a budget of {request.budget:g} s", where="--budget", mend="give seconds over 0")
    with user_output_to_stderr():
        route, _ = read_route(request.route, read_flags(request))
        probed = probe(
            route,
            request.route,
            budget=request.budget,
            trusts_entrypoints=request.trusts_entrypoints,
            is_env_checked=request.is_env_checked,
        )
    _show(probed, as_json=request.as_json)
    return Exit.DONE if probed.is_safe else Exit.MISSED


def probe_record(probed: Probed) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "schema": "rlmesh.probe.v1",
        "env": probed.env.id,
        "policy": probed.policy,
        **verdict_record(probed.verdict),
        "env_tests": None if probed.audit is None else msgspec.to_builtins(probed.audit),
    }


def _show(probed: Probed, *, as_json: bool) -> None:
    if as_json:
        write_json(probe_record(probed))
        return
    from .probe_tables import show_probe  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_probe(probed))
