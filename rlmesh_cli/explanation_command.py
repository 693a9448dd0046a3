"""What `rlmesh explain` does between its flags and its exit code."""

from __future__ import annotations

import gc
import sys

from rlmesh_adapters.errors import HarnessError

from .exits import Exit
from .explanation import Explained, explain, explanation_record
from .flags import RouteRequest, read_flags
from .records import strict_json
from .route import read_route
from .streams import user_output_to_stderr
from .telling import say_bug, say_mistake


class ExplainRequest(RouteRequest, frozen=True, kw_only=True):
    """The flags of `rlmesh explain`, as typed; None is a flag that was not given."""

    trusts_entrypoints: bool = False
    strict: bool = False
    as_json: bool = False


def run(request: ExplainRequest) -> Exit:
    """Resolve, show, and return the exit code; a user's mistake is one message, a fault of ours a traceback."""
    if not gc.isenabled():  # see rlmesh_cli.app.main
        gc.freeze()
        gc.enable()
    try:
        with user_output_to_stderr():
            route, _ = read_route(request.route, read_flags(request))
            explained = explain(route, request.route, trusts_entrypoints=request.trusts_entrypoints)
        _show(explained, as_json=request.as_json)
    except HarnessError as error:
        return say_mistake(error)
    except BrokenPipeError:
        raise
    except (Exception, SystemExit):  # user code that leaves must not end us without a result
        return say_bug()
    return Exit.MISSED if request.strict and explained.book.cautions else Exit.DONE


def _show(explained: Explained, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(strict_json(explanation_record(explained)).decode() + "\n")
    else:
        from .explanation_tables import show_explanation  # noqa: PLC0415 - rich is not needed for --json

        show_explanation(explained)
    sys.stdout.flush()
