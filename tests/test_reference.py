"""Reference pages: they list what the sources hold, no more and no less."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import msgspec.inspect
import pytest
import typer.main
import yaml
from pages import ROOT
from running import Played, play

from rlmesh_adapters.probe import battery, verdicts
from rlmesh_cli import auditing
from rlmesh_cli.app import app
from rlmesh_cli.exits import BROKEN_PIPE, Exit
from rlmesh_cli.flags import RouteRequest, read_flags
from rlmesh_cli.probe_tables import ADVICE
from rlmesh_cli.route_keys import FLAGS_ONLY
from rlmesh_cli.schema import Route

SOURCES = sorted(
    path
    for folder in ("rlmesh_cli", "adapters/rlmesh_adapters", "envs/rlmesh_envs")
    for path in (ROOT / folder).rglob("*.py")
)
SEVERITIES = ("info", "caution")
#: Files that hand codes on which are made elsewhere: notes of an environment, notes of a conversion.
HANDING_ON = {"stage.py": "code", "converting.py": "note.code"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row that begins with something in backquotes."""
    found = re.findall(r"^\| (`.*) \|$", text, flags=re.M)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in found]


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def literals(node: ast.expr | None) -> set[str]:
    """Return the texts that an expression may be; of an f-string, how it begins."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=body, orelse=other):
            return literals(body) | literals(other)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            return {f"{start}*"}
    return set()


def made_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (code, severity) of every advisory and note that a file makes.

    Ways there are: `book.add(code, severity, ...)`, `Note(code, severity, ...)`, `Advisory(code=..., ...)`,
    `notes[code] = ...` of environments, which are infos, and `cautions[code] = ...` of theirs.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="notes"), slice=ast.Constant(value=code))]):
                assert "rlmesh_envs" in path.parts, f"{path.name}: notes are the environments'"
                yield code, "info"
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id="cautions"), slice=ast.Constant(value=code))]
            ):
                yield code, "caution"
            case ast.Call(func=ast.Attribute(attr="add"), args=[first, second, *_]):
                known = literals(first) or literals(assigned.get(getattr(first, "id", "")))
                severities = literals(second) & set(SEVERITIES)
                is_handed_on = HANDING_ON.get(path.name) == ast.unparse(first)
                assert bool(known) == bool(severities) or is_handed_on, f"{path.name}:{node.lineno}"
                yield from ((code, severity) for code in known for severity in severities)
            case ast.Call(func=ast.Name(id="Note"), args=[ast.Constant(value=code), second, *_]):
                yield from ((code, severity) for severity in literals(second))
            case ast.Call(func=ast.Name(id="Note" | "Advisory"), keywords=keywords):
                given = {keyword.arg: keyword.value for keyword in keywords}
                # The book itself makes one of what it was handed.
                is_book = path.name == "advisories.py"
                assert is_book or literals(given.get("code")), f"{path.name}:{node.lineno}"
                for code in literals(given.get("code")):
                    yield from ((code, severity) for severity in literals(given.get("severity")))


def test_advisories_of_the_page_are_those_of_the_sources():
    made: dict[str, set[str]] = {}
    for path in SOURCES:
        for code, severity in made_in(path):
            made.setdefault(code, set()).add(severity)
    listed = {row[0].strip("`"): set(row[1].split(" or ")) for row in rows(page("reference-advisories.md"))}
    assert len(made) > 40
    assert listed == made


def described(kind: msgspec.inspect.Type) -> str:
    """Return what a type is called on the page."""
    match kind:
        case msgspec.inspect.UnionType(types=types):
            words = [described(part) for part in types if not isinstance(part, msgspec.inspect.NoneType)]
            return " or ".join(words + ["null"] * (len(words) < len(types)))
        case msgspec.inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case msgspec.inspect.IntType(ge=least):
            return f"whole number from {least}"
        case msgspec.inspect.FloatType(ge=None, gt=None):
            return "number"
        case msgspec.inspect.FloatType(ge=None, gt=low, lt=None):
            return f"number over {low}"
        case msgspec.inspect.FloatType(ge=None, gt=low, lt=high):
            return f"number between {low} and {high}"
        case msgspec.inspect.FloatType(ge=low):
            return f"number from {low}"
        case msgspec.inspect.VarTupleType(item_type=item):
            return f"list of {described(item)}"
        case msgspec.inspect.StrType():
            return "text"
        case msgspec.inspect.DictType(value_type=msgspec.inspect.AnyType()):
            return "mapping"
        case msgspec.inspect.DictType(value_type=value):
            return f"mapping to {described(value)}"
        case msgspec.inspect.StructType():
            return "section"
    raise AssertionError(kind)


def keys_of(struct: msgspec.inspect.StructType, path: str = "") -> Iterator[tuple[str, str, object]]:
    """Yield (key, type, default) of everything that a route may hold."""
    for field in struct.fields:
        name = path + field.name
        default = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        plain = "required" if field.required else msgspec.json.decode(msgspec.json.encode(default))
        yield name, described(field.type), plain
        parts = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
        for part in parts:
            inner = part.item_type if isinstance(part, msgspec.inspect.VarTupleType) else part
            inside = inner.types if isinstance(inner, msgspec.inspect.UnionType) else (inner,)
            for one in inside:
                if isinstance(one, msgspec.inspect.StructType):
                    yield from keys_of(one, f"{name}[]." if inner is not part else f"{name}.")


def route_flags() -> dict[str, str]:
    """Return key -> flag, by reading flags with a value for each of them."""
    texts = {"success": "won", "seeds": "1", "ray_resources": "cpu=1", "controls": "zero"}
    request = RouteRequest(
        **{
            field.name: ("a=1",) if field.default == () else texts.get(field.name, "1")
            for field in msgspec.structs.fields(RouteRequest)
            if field.name != "route"
        }
    )
    named = {".".join(path): name for path, name in read_flags(request).names.items()}
    return {
        key.removesuffix(".a"): "POLICY" if name == "policy" else name.removesuffix(" a")
        for key, name in named.items()
    }


def options_of(command: str) -> set[str]:
    """Return the long flags of a command, as its own parser knows them."""
    options = typer.main.get_command(app).commands[command].params
    return {flag for option in options for flag in option.opts if flag.startswith("--")} - {"--help"}


def test_route_of_the_page_is_the_route_that_is_read():
    route = msgspec.inspect.type_info(Route)
    assert isinstance(route, msgspec.inspect.StructType)
    known = {key: (kind, default) for key, kind, default in keys_of(route)}
    listed = {row[0].strip("`"): row[1:] for row in rows(section(page("reference-route.md"), "Keys"))}
    assert list(listed) == list(known)
    flags = route_flags()
    for key, (kind, default) in known.items():
        said_kind, said_default, flag, meaning = listed[key]
        assert said_kind == kind, key
        if kind == "section":
            assert said_default == "", key
        else:
            assert yaml.safe_load(said_default.strip("`")) == default, key
        assert flag.strip("`") == flags.get(key, ""), key
        assert len(meaning.split()) > 1, key


def test_flags_of_the_page_are_those_of_eval():
    text = section(page("reference-route.md"), "Flags without a key")
    beside = {row[0].split(",")[0].strip("`").split()[0] for row in rows(text)}
    assert beside | set(route_flags().values()) - {"POLICY"} == options_of("eval")
    assert not beside & set(route_flags().values())
    assert beside == {f"--{flag.replace('_', '-')}" for flag in FLAGS_ONLY}


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Played:
    return play(tmp_path_factory.mktemp("reference"), "zero", "CartPole-v1", episodes=2)


@pytest.mark.parametrize(("title", "maybe"), [("run.json", {"failure"}), ("summary.json", set())])
def test_records_of_the_page_are_what_a_run_leaves(title, maybe, played):
    record = json.loads((played.folder / title).read_text(encoding="utf-8"))
    listed = names(rows(section(page("reference-run.md"), title)))
    assert sorted(listed) == sorted({*record, *maybe})


def test_row_of_the_runs_page_is_a_row(played):
    text = section((ROOT / "runs" / "README.md").read_text(encoding="utf-8"), "A line of `episodes.jsonl`")
    assert sorted(names(rows(text))) == sorted(played.rows[0])


def names(table: list[list[str]]) -> list[str]:
    """Return the names in the first column; a cell may hold several."""
    return [name for row in table for name in re.findall(r"`([^`]+)`", row[0])]


def test_exit_codes_of_the_page_are_those_of_the_commands():
    codes = re.findall(r"^\| (\d+) \| `(\w+)` \|", page("reference-exit-codes.md"), flags=re.M)
    assert {int(code): name for code, name in codes} == {
        **{int(code): code.name for code in Exit},
        BROKEN_PIPE: "BROKEN_PIPE",
    }


def test_probe_of_the_page_is_the_probe():
    text = page("reference-probe.md")
    told = {row[0].strip("`"): row for row in rows(section(text, "Verdicts"))}
    assert [name.replace("-", "_") for name in told] == list(verdicts.OVERALL)
    for name, row in told.items():
        assert verdicts.MEANINGS[name.replace("-", "_")] == row[1]
    advice = {row[0].strip("`"): row[1] for row in rows(section(text, "What to do next"))}
    assert advice == ADVICE
    tests = set(
        re.findall(r'(?:check\(|name=|\bresult\(findings, |^    \()"([a-z-]+)"', _probe_sources(), flags=re.M)
    )
    assert {row[0].strip("`") for row in rows(section(text, "Tests"))} == tests
    audited = set(re.findall(r'_(?:passed|noted|failed)\(\s*"([a-z ]+)"', inspect.getsource(auditing)))
    assert {row[0].strip("`") for row in rows(section(text, "Tests of the environment"))} == audited


def _probe_sources() -> str:
    folder = Path(battery.__file__).parent
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))


def test_every_advisory_has_its_cause_its_meaning_and_its_mend():
    for code, severity, *rest in rows(page("reference-advisories.md")):
        assert set(severity.split(" or ")) <= set(SEVERITIES), code
        assert len(rest) == 3, code
        assert all(len(cell.split()) > 1 or cell == "nothing" for cell in rest), code
