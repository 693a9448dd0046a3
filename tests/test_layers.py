"""The house: who may import what, read from the sources with `ast`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"rlmesh_cli": ROOT, "rlmesh_envs": ROOT / "envs", "rlmesh_adapters": ROOT / "adapters"}

#: Package -> what its modules may import beside the standard library and itself.
MAY_IMPORT = {
    "rlmesh_cli": {
        "rlmesh_envs",
        "rlmesh_adapters",
        "numpy",
        "msgspec",
        "typer",
        "rich",
        "yaml",
        "av",
        "pyarrow",
        "ray",
        "jinja2",
        "markupsafe",
        "plotly",
    },
    "rlmesh_envs": {"rlmesh_adapters", "gymnasium", "numpy", "msgspec"},
    "rlmesh_adapters": {"numpy", "msgspec", "cv2", "PIL"},
}

#: What only some modules may import -> those modules; a name that ends with a dot is a whole package.
ONLY = {
    "gymnasium": ("rlmesh_envs.",),
    "typer": ("rlmesh_cli.app", "rlmesh_cli.lean", "rlmesh_cli.commands."),
    "rich": (
        "rlmesh_cli.comparison_tables",
        "rlmesh_cli.doctor_tables",
        "rlmesh_cli.episode_tables",
        "rlmesh_cli.explanation_tables",
        "rlmesh_cli.init_tables",
        "rlmesh_cli.probe_tables",
        "rlmesh_cli.replay_tables",
        "rlmesh_cli.run_pictures",
        "rlmesh_cli.screens",
        "rlmesh_cli.stored_tables",
        "rlmesh_cli.tables",
    ),
    "ray": ("rlmesh_cli.shards.ray_executor",),
    "jinja2": ("rlmesh_cli.pages.markup",),
    "markupsafe": ("rlmesh_cli.pages.markup",),
    "plotly": ("rlmesh_cli.pages.markup",),
    "av": ("rlmesh_cli.reports.video",),
    "pyarrow": ("rlmesh_cli.step_files",),
    "yaml": ("rlmesh_cli.yamls",),
    "subprocess": ("rlmesh_cli.doctor.children", "rlmesh_cli.provenance"),
    "multiprocessing": (
        "rlmesh_cli.doctor.machine",
        "rlmesh_cli.shards.processes",
        "rlmesh_envs.bells",
        "rlmesh_envs.crew",
        "rlmesh_envs.sealing",
        "rlmesh_envs.worker",
        "rlmesh_envs.worker_process",
    ),
    "cv2": ("rlmesh_adapters.apply.filters",),
    # What a probe looks after in the process that a policy runs in.
    "random": ("rlmesh_adapters.probe.randomness", "rlmesh_cli.guests"),
    # Only this module of the standard library finds a key that stands twice.
    "json": ("rlmesh_adapters.documents.reading",),
    "PIL": ("rlmesh_adapters.apply.decoding", "rlmesh_adapters.apply.filters"),
}

#: An adapter has no clock, no files, no processes, no network and no environment variables.
NOT_IN_ADAPTERS = {
    *("time", "datetime", "pathlib", "os", "io", "shutil", "tempfile", "glob", "subprocess", "multiprocessing"),
    *("socket", "sys", "logging", "random", "pickle", "signal", "asyncio", "urllib", "http"),
}

#: But a probe puts the random sources of its process into known states, torch's among them if it is there.
PROBED = {("rlmesh_adapters.probe.randomness", "random"), ("rlmesh_adapters.probe.randomness", "sys")}

#: And threads must know how many cores there are, and when the process forks.
THREADED = {("rlmesh_adapters.apply.threads", "os")}

OPENING = ("open", "__import__", "exec", "eval", "input")

#: Imports inside functions: (module, what is imported). Each is there for the time that a start takes.
LATE = {
    ("rlmesh_cli.__main__", "rlmesh_cli.app"),
    ("rlmesh_cli.app", "rlmesh_cli.telling"),
    ("rlmesh_cli.commands.compare", "rlmesh_cli.compare_command"),
    ("rlmesh_cli.compare_command", "rlmesh_cli.divergence"),
    ("rlmesh_cli.compare_command", "rlmesh_cli.comparison_tables"),
    ("rlmesh_cli.answering", "rlmesh_cli.records"),
    ("rlmesh_cli.commands.doctor", "rlmesh_cli.doctor_command"),
    ("rlmesh_cli.doctor_command", "rlmesh_cli.doctor_tables"),
    ("rlmesh_cli.lean", "rlmesh_cli.completing"),
    ("rlmesh_cli.commands.eval", "rlmesh_cli.evaluation_command"),
    ("rlmesh_cli.commands.explain", "rlmesh_cli.explanation_command"),
    ("rlmesh_cli.commands.init", "rlmesh_cli.init_command"),
    ("rlmesh_cli.init_command", "rlmesh_cli.init_tables"),
    ("rlmesh_cli.commands.probe", "rlmesh_cli.probe_command"),
    ("rlmesh_cli.commands.runs", "rlmesh_cli.runs_command"),
    ("rlmesh_cli.commands.show", "rlmesh_cli.show_command"),
    ("rlmesh_cli.probe_command", "rlmesh_cli.probe_tables"),
    ("rlmesh_cli.runs_command", "rlmesh_cli.stored_tables"),
    ("rlmesh_cli.show_command", "rlmesh_cli.episode_command"),
    ("rlmesh_cli.show_command", "rlmesh_cli.stored_tables"),
    ("rlmesh_cli.episode_command", "rlmesh_cli.episode_tables"),
    ("rlmesh_cli.episode_traces", "rlmesh_cli.step_files"),
    ("rlmesh_cli.commands.replay", "rlmesh_cli.replay_command"),
    ("rlmesh_cli.commands.report", "rlmesh_cli.report_command"),
    ("rlmesh_cli.report_command", "rlmesh_cli.pages.making"),
    ("rlmesh_cli.reports.reporting", "rlmesh_cli.pages.making"),
    ("rlmesh_cli.replay_command", "rlmesh_cli.replay_tables"),
    ("rlmesh_cli.replay_command", "rlmesh_cli.reports.video"),
    ("rlmesh_cli.reports.video", "av"),
    ("rlmesh_cli.step_files", "pyarrow"),
    ("rlmesh_cli.step_files", "pyarrow.parquet"),
    ("rlmesh_cli.evaluate", "rlmesh_cli.recording.studio"),
    ("rlmesh_cli.route", "rlmesh_cli.recording.selection"),
    ("rlmesh_cli.stage", "rlmesh_cli.recording.studio"),
    ("rlmesh_cli.evaluate", "rlmesh_cli.shards.crew"),
    ("rlmesh_cli.shards.crew", "rlmesh_cli.shards.ray_executor"),
    ("rlmesh_cli.shards.crew", "rlmesh_cli.shards.shipping"),
    ("rlmesh_cli.shards.ray_executor", "ray"),
    ("rlmesh_cli.evaluation_command", "rlmesh_cli.tables"),
    ("rlmesh_cli.evaluation_command", "rlmesh_cli.reports.reporting"),
    ("rlmesh_cli.explanation_command", "rlmesh_cli.explanation_tables"),
    ("rlmesh_cli.bars", "rlmesh_cli.baselining"),
    ("rlmesh_cli.bars", "rlmesh_cli.stopping"),
    ("rlmesh_cli.contracting", "rlmesh_cli.adapting"),
    ("rlmesh_cli.contracting", "rlmesh_envs.deadlines"),
    ("rlmesh_cli.followups", "rlmesh_cli.claims"),
    ("rlmesh_cli.followups", "rlmesh_cli.comparing"),
    ("rlmesh_cli.followups", "rlmesh_cli.controls"),
    ("rlmesh_cli.followups", "rlmesh_cli.pairing"),
    ("rlmesh_cli.followups", "rlmesh_cli.run_reader"),
    ("rlmesh_cli.followups", "rlmesh_cli.verifying"),
    ("rlmesh_cli.books", "rlmesh_cli.run_reader"),
    ("rlmesh_cli.session", "rlmesh_cli.verifying"),
    ("rlmesh_cli.evaluation_command", "rlmesh_cli.resuming"),
    ("rlmesh_cli.resuming", "rlmesh_cli.provenance"),
    ("rlmesh_cli.stage", "rlmesh_cli.deciding"),
    ("rlmesh_envs.make", "rlmesh_envs.crew"),
    ("rlmesh_envs.make", "rlmesh_envs.deadlines"),
    ("rlmesh_envs.make", "rlmesh_envs.foreign"),
    ("rlmesh_envs.make", "rlmesh_envs.processes"),
    ("rlmesh_cli.stage", "rlmesh_envs.foreign"),
    ("rlmesh_cli.flags", "rlmesh_cli.yamls"),
    ("rlmesh_cli.wording", "decimal"),
    ("rlmesh_cli.route", "rlmesh_cli.adapting"),
    ("rlmesh_cli.route", "rlmesh_cli.yamls"),
    ("rlmesh_cli.progress", "rlmesh_cli.live_panel"),
    ("rlmesh_cli.progress", "rlmesh_cli.live_screen"),
    ("rlmesh_cli.progress", "rlmesh_cli.pictures"),
    ("rlmesh_cli.session", "rlmesh_cli.glances"),
    ("rlmesh_cli.tables", "rlmesh_cli.run_pictures"),
    ("rlmesh_adapters.engine", "rlmesh_adapters.converting"),
    ("rlmesh_adapters.apply.filters", "cv2"),
    ("rlmesh_adapters.apply.filters", "PIL"),
    ("rlmesh_adapters.apply.decoding", "PIL"),
    ("rlmesh_adapters.apply.threads", "concurrent.futures"),
}

#: Calls that write, make, move or remove files, by the last part of their name or by the whole.
WRITING = {
    *(
        "write_text",
        "write_bytes",
        "mkdir",
        "makedirs",
        "mkdtemp",
        "mkstemp",
        "touch",
        "unlink",
        "rmdir",
        "rmtree",
    ),
    *(
        "symlink_to",
        "hardlink_to",
        "copyfile",
        "copytree",
        "savez",
        "tofile",
        "os.replace",
        "os.rename",
        "os.open",
    ),
}
#: The store writes run folders; reports go where the user says, in one piece or into a pipe.
WRITERS = {"rlmesh_cli.store", "rlmesh_cli.reports.writing"}
#: Opens for writing what is no file.
IN_MEMORY = {"rlmesh_cli.reports.video"}


class Import(NamedTuple):
    """One import: who imports what, in which line, and whether inside a function."""

    module: str
    target: str
    line: int
    is_late: bool


def module_files() -> dict[str, Path]:
    """Return every module of ours by its dotted name."""
    found = {}
    for package, parent in PACKAGES.items():
        for path in sorted((parent / package).rglob("*.py")):
            parts = path.relative_to(parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


FILES = module_files()
TREES = {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in FILES.items()}


def imports_of(module: str) -> Iterator[Import]:
    """Yield what a module imports; `from package import module` is an import of that module."""
    is_package = FILES[module].name == "__init__.py"
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    late = {
        id(inner) for node in ast.walk(TREES[module]) if isinstance(node, functions) for inner in ast.walk(node)
    }
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets = [name if name in FILES else base for name in names]
        else:
            continue
        for target in dict.fromkeys(targets):
            yield Import(module, target, node.lineno, id(node) in late)


IMPORTS = [found for module in FILES for found in imports_of(module)]


def top(name: str) -> str:
    return name.split(".")[0]


def is_one_of(module: str, allowed: tuple[str, ...]) -> bool:
    return any(module == name or (name.endswith(".") and f"{module}.".startswith(name)) for name in allowed)


def shown(imports: list[Import]) -> list[str]:
    return [f"{found.module}:{found.line} imports {found.target}" for found in imports]


def test_sources_are_found():
    assert {"rlmesh_cli.app", "rlmesh_cli.commands.eval", "rlmesh_envs.lanes", "rlmesh_adapters.engine"} <= set(
        FILES
    )
    assert any(found.target == "rlmesh_adapters.errors" for found in IMPORTS)
    assert any(found.target == "rlmesh_cli.evaluate" for found in IMPORTS)


def test_arrows_go_one_way_and_lead_to_few_libraries():
    wrong = [
        found
        for found in IMPORTS
        if top(found.target) not in {*sys.stdlib_module_names, *MAY_IMPORT[top(found.module)], top(found.module)}
    ]
    assert shown(wrong) == []


def test_adapters_have_no_clock_and_no_files():
    wrong = [
        found
        for found in IMPORTS
        if top(found.module) == "rlmesh_adapters"
        and top(found.target) in NOT_IN_ADAPTERS
        and (found.module, found.target) not in PROBED | THREADED
    ]
    assert shown(wrong) == []
    opened = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if top(name) == "rlmesh_adapters"
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in OPENING
    ]
    assert opened == []


@pytest.mark.parametrize("library", ONLY)
def test_library_is_imported_where_it_is_meant_to_be_and_nowhere_else(library):
    users = [found for found in IMPORTS if top(found.target) == library]
    assert users != []
    assert shown([found for found in users if not is_one_of(found.module, ONLY[library])]) == []


def test_allow_lists_name_what_is_there():
    unknown = [name for allowed in ONLY.values() for name in allowed if name.rstrip(".") not in FILES]
    assert unknown == []
    late = {(found.module, found.target) for found in IMPORTS if found.is_late}
    assert late == LATE


def test_no_import_goes_round_in_a_circle():
    arrows: dict[str, set[str]] = {module: set() for module in FILES}
    for found in IMPORTS:
        if found.target in FILES:
            arrows[found.module].add(found.target)
    waiting, order = dict(arrows), []
    while free := [module for module, targets in waiting.items() if not targets & waiting.keys()]:
        order += free
        for module in free:
            del waiting[module]
    assert waiting == {}
    assert sorted(order) == sorted(FILES)


def writes(call: ast.Call) -> bool:
    """Tell whether a call writes, makes, moves or removes a file."""
    name = ast.unparse(call.func)
    last = name.rsplit(".", 1)[-1]
    if last == "open":
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        return any(set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes)
    return name in WRITING or last in WRITING


def test_only_the_store_and_the_reports_write_files():
    calls = [(name, node) for name, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert {name for name, call in calls if writes(call)} - IN_MEMORY == WRITERS


def test_no_module_is_long():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_every_module_says_what_it_is():
    assert [name for name, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_nothing_is_printed():
    printed = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in ("print", "breakpoint")
    ]
    assert printed == []
