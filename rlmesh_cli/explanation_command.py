"""What `rlmesh explain` does between its flags and its exit code."""

from __future__ import annotations

from .answering import answer_with, write_json, write_out
from .exits import Exit
from .explanation import Explained, explain, explanation_record
from .flags import RouteRequest, read_flags
from .route import read_route
from .streams import user_output_to_stderr


class ExplainRequest(RouteRequest, frozen=True, kw_only=True):
    """The flags of `rlmesh explain`, as typed; None is a flag that was not given."""

    trusts_entrypoints: bool = False
    strict: bool = False
    as_json: bool = False


def run(request: ExplainRequest) -> Exit:
    """Resolve, show, and return the exit code; a user's mistake is one message, a fault of ours a traceback."""
    return answer_with(lambda: _answer(request))


def _answer(request: ExplainRequest) -> Exit:
    with user_output_to_stderr():
        route, _ = read_route(request.route, read_flags(request))
        explained = explain(route, request.route, trusts_entrypoints=request.trusts_entrypoints)
    _show(explained, as_json=request.as_json)
    return Exit.MISSED if request.strict and explained.book.cautions else Exit.DONE


def _show(explained: Explained, *, as_json: bool) -> None:
    if as_json:
        write_json(explanation_record(explained))
        return
    from .explanation_tables import show_explanation  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_explanation(explained))
