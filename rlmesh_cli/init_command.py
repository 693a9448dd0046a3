"""What `rlmesh init` does between its flags and its exit code."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from rlmesh_adapters.errors import RouteError
from rlmesh_envs.packages import module_of_id
from rlmesh_envs.request import EnvRequest

from .answering import answer_with, write_out
from .exits import Exit
from .flags import RouteRequest, read_flags
from .guests import append_folder, folder_of
from .reports.writing import refuse_existing, write_new_files
from .scaffolds.findings import Found, look_at
from .scaffolds.policy_text import policy_text
from .scaffolds.route_text import route_text
from .scaffolds.scaffold import Scaffold
from .scaffolds.tagging import Tagging, propose_tags
from .streams import user_output_to_stderr

#: Names that can stand in a comment, and in a command once they are quoted.
_NAME = re.compile(r"\w[\w .+-]*")
_MEND = "move it away, or give other names with --policy NAME.py and --route NAME.yaml, or another --dir"


class InitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `rlmesh init`, as typed."""

    env: str
    env_args: tuple[str, ...] = ()
    wants_tags: bool = False
    folder: Path = Path()
    policy: str = "policy.py"
    route: str = "route.yaml"


def run(request: InitRequest) -> Exit:
    """Ask the environment, write both files, say what was found, and return the exit code."""
    return answer_with(lambda: _answer(request))


def _answer(request: InitRequest) -> Exit:
    policy, route = _paths(request)
    # Building an environment may take long; what stands in the way is told before.
    refuse_existing((policy, route), _MEND)
    known = [os.path.realpath(place) for place in sys.path[1:]]  # the first is that of the program itself
    with user_output_to_stderr():
        found = look_at(_env_request(request))
    search = _search_path(found, request.folder, known)
    tagging = propose_tags(found) if request.wants_tags else None
    conversion = tagging if isinstance(tagging, Tagging) else None
    texts = {
        policy: policy_text(found, conversion, route.name),
        route: route_text(found, tagging, policy.name, route.name, search),
    }
    write_new_files({path: text.encode("utf-8", "backslashreplace") for path, text in texts.items()}, _MEND)
    from .init_tables import show_scaffold  # noqa: PLC0415 - rich is not needed where nothing is written

    scaffold = Scaffold(found=found, tagging=tagging, policy=policy, route=route, needs_here=bool(search))
    write_out(lambda: show_scaffold(scaffold))
    return Exit.DONE


def _search_path(found: Found, folder: Path, known: list[str]) -> str:
    """Return the way from `folder` to where we stand if the environment is found by that alone, else nothing.

    known: folders in which modules are looked for without us.
    """
    here = os.path.realpath(".")
    modules = (*found.imports, *found.id.split(":")[:-1])
    if here in known or here == os.path.realpath(folder) or here not in map(folder_of, modules):
        return ""
    return os.path.relpath(here, os.path.realpath(folder))


def _paths(request: InitRequest) -> tuple[Path, Path]:
    for name, flag, ends in (
        (request.policy, "--policy", (".py",)),
        (request.route, "--route", (".yaml", ".yml")),
    ):
        if _NAME.fullmatch(name) is None or not name.endswith(ends):
            raise RouteError(
                f"`{name}` is not the name of a {ends[0]} file",
                where=flag,
                mend=f"give a name such as mine{ends[0]}; --dir names the folder",
            )
    return request.folder / request.policy, request.folder / request.route


def _env_request(request: InitRequest) -> EnvRequest:
    flags = read_flags(RouteRequest(env=request.env, env_args=request.env_args))
    name = request.env
    # Environments of one's own lie beside the policy, or where one stands.
    for folder in (request.folder, Path()):
        append_folder(Path(os.path.realpath(folder)))  # where links go round, it does not raise
    module = None if ":" in name else module_of_id(name)
    return EnvRequest(
        id=name,
        kwargs={str(path[-1]): value for path, value in flags.values.items() if path[:2] == ("env", "kwargs")},
        imports=() if module is None else (module,),
    )
