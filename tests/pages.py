"""Pages: the commands of README.md and docs/, with the files that they need and the output that is shown.

What a page says to whoever runs it stands in comments, a line each:

    <!-- file: NAME -->            the fenced block below is that file
    <!-- given: NAME = PATH -->    the file or folder PATH of this repository lies here as NAME; PAGE#FILE is a
                                   file that another page shows
    <!-- before: COMMAND -->       is run here, unseen
    <!-- exit: 1 -->               the block below leaves with 1
    <!-- needs: ray -->            the block below needs more than the test environment; see NEEDS

Steps of a page share one folder and come in the order of the page. A bash or sh block is one script. In an
indented block a line that begins with a prompt (`$ `, `one$ `) is a command, and what follows is what it prints;
without prompts every line is a command, if one of them begins with a known program. The exit code is that of the
block's last command.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: What a block may need -> modules that must be there; `$` begins a program, None is what no test can have.
NEEDS: dict[str, tuple[str, ...] | None] = {
    "ray": ("ray",),
    "real": ("gym_pusht", "cv2"),
    "video": ("av",),
    "report": ("jinja2", "plotly"),
    "steps": ("pyarrow",),
    "pandas": ("pandas",),
    "jq": ("$jq",),
    "fresh machine": None,
    "cluster": None,
}
#: Columns that screens have when a page's commands are run.
COLUMNS = 100

_COMMENT = re.compile(r"^<!-- (file|given|before|exit|needs): (.*?) -->$")
_PROMPT = re.compile(r"^(?:\w+)?\$ +")
_PROGRAM = re.compile(r"^(rlmesh|pip|python|bash|ray)\s")
# Times, rates, memory, paths, run names and versions differ from run to run and from machine to machine.
_UNSTABLE = re.compile(
    r"\d (?:s|ms|us|GB|MB)\b|steps/s|lanes in use|(?:^|[\s'\"(])[\w.~-]*/[\w.~/-]+|\d{8}T\d{6}Z|\b\d+\.\d+\.\d+\b"
)

#: Code that is compiled for one command serves the next, and nothing is written into the checkout.
_compiled = tempfile.TemporaryDirectory(prefix="rlmesh-pages-")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do in a page's folder.

    kind: `file`, `given`, `before` or `command`. text: content of the file, path, or command. name: of the file.
    language: of its block, empty if it is indented. line: 1-based. shown: lines of the output that the page shows.
    """

    kind: str
    text: str
    line: int
    name: str = ""
    language: str = ""
    exit: int = 0
    needs: str = ""
    shown: tuple[str, ...] = ()


class Block(msgspec.Struct, frozen=True):
    """A fenced or indented block. language: empty if it is indented. line: 1-based, of its first line of text."""

    language: str
    lines: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.lines)


def parts_of(text: str) -> Iterator[Block | tuple[str, str, int]]:
    """Yield the blocks of a page, and its comments as (key, value, line)."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        comment = _COMMENT.match(line)
        if comment:
            yield comment[1], comment[2], at + 1
        elif line.startswith("```"):
            end = lines.index("```", at + 1)
            yield Block(line[3:] or "text", tuple(lines[at + 1 : end]), at + 2)
            at = end
        elif line.startswith("    ") and (at == 0 or not lines[at - 1] or _COMMENT.match(lines[at - 1])):
            end = at
            while end < len(lines) and (not lines[end] or lines[end].startswith("    ")):
                end += 1
            inside = [line[4:] for line in lines[at:end]]
            while not inside[-1]:
                inside.pop()
            yield Block("", tuple(inside), at + 1)
            at += len(inside) - 1
        at += 1


def steps_of(text: str) -> list[Step]:
    """Return what a page has done in its folder, in order."""
    steps: list[Step] = []
    marks: dict[str, str] = {}
    for part in parts_of(text):
        if not isinstance(part, Block):
            key, value, line = part
            if key == "given":
                name, _, path = value.partition(" = ")
                steps.append(Step(kind="given", text=path, name=name, line=line))
            elif key == "before":
                steps.append(Step(kind="before", text=value, line=line))
            else:
                marks[key] = value
            continue
        if "file" in marks:
            name = marks.pop("file")
            steps.append(Step(kind="file", text=part.text, name=name, line=part.line, language=part.language))
        else:
            steps.extend(_commands(part, int(marks.pop("exit", "0")), marks.pop("needs", "")))
        assert not marks, f"line {part.line}: {marks} says nothing about this block"
    return steps


def _commands(block: Block, code: int, needs: str) -> list[Step]:
    """Return the commands of a block; the exit code is that of the last one."""
    if block.language in ("bash", "sh"):
        step = Step(kind="command", text=block.text, line=block.line, language=block.language)
        return [msgspec.structs.replace(step, exit=code, needs=needs)]
    if block.language:
        return []
    has_prompts = any(_PROMPT.match(line) for line in block.lines)
    if not has_prompts and not any(_PROGRAM.match(line) for line in block.lines):
        return []
    found: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate(block.lines, block.line):
        if found and found[-1][1][-1].endswith("\\") and not found[-1][2]:
            found[-1][1].append(line)
        elif not has_prompts or _PROMPT.match(line):
            found.append((number, [_PROMPT.sub("", line)], []))
        else:
            found[-1][2].append(line)
    steps = [
        Step(kind="command", text="\n".join(lines), line=number, needs=needs, shown=tuple(shown))
        for number, lines, shown in found
    ]
    return [*steps[:-1], msgspec.structs.replace(steps[-1], exit=code)]


def with_needs(step: Step, needs: str) -> Step:
    """Return a step that needs something."""
    return msgspec.structs.replace(step, needs=needs)


def is_met(needs: str) -> bool:
    """Tell whether what a block needs is there."""
    wanted = NEEDS[needs] if needs else ()
    return wanted is not None and all(
        shutil.which(name[1:]) if name.startswith("$") else importlib.util.find_spec(name) for name in wanted
    )


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the `rlmesh` of this interpreter, and these sources, on its path."""
    dropped = ("GITHUB_", "GIT_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    sources = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    path = os.pathsep.join([str(SCRIPTS), kept.get("PATH", os.defpath)])
    return subprocess.run(
        words,
        cwd=folder,
        env={
            **kept,
            "PATH": path,
            "PYTHONPATH": sources,
            "PYTHONPYCACHEPREFIX": _compiled.name,
            "COLUMNS": str(COLUMNS),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def do(step: Step, folder: Path) -> None:
    """Do one step in a folder; raises AssertionError where it does not end, or print, as the page says."""
    if step.kind == "file":
        target = folder / step.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(step.text, encoding="utf-8")
    elif step.kind == "given":
        path, _, name = step.text.partition("#")
        source, target = ROOT / path, folder / step.name
        if name:
            shown = [one for one in steps_of(source.read_text(encoding="utf-8")) if one.name == name]
            target.write_text(shown[-1].text, encoding="utf-8")
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    else:
        done = shell(folder, "bash", "-eo", "pipefail", "-c", step.text)
        printed = done.stdout + done.stderr
        assert done.returncode == step.exit, f"line {step.line}: {step.text}\n{printed}"
        missing = missing_lines(step.shown, printed)
        assert not missing, f"line {step.line}: {step.text}\nnot printed: {missing}\n{printed}"


def stable_lines(shown: Iterable[str]) -> list[str]:
    """Return the shown lines that must be printed again as they are, with single spaces."""
    joined = (" ".join(line.split()) for line in shown)
    return [line for line in joined if line and line != "..." and not _UNSTABLE.search(line)]


def missing_lines(shown: Iterable[str], printed: str) -> list[str]:
    """Return the stable lines of what is shown that were not printed."""
    known = {" ".join(line.split()) for line in printed.splitlines()}
    return [line for line in stable_lines(shown) if line not in known]
