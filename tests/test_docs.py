"""Docs: what stands there as bash runs, and what stands there as YAML is read."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pages
import pictures
import pytest
import typer.main
import yaml
from markdown_it import MarkdownIt
from pages import PAGES, ROOT, SCRIPTS, Block, Step, shell
from rich.text import Text
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.exits import Exit

CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
MARKED = {step.name: step.text for step in pages.steps_of(CI) if step.kind == "file"}

BAD = "class Policy:\n    def predict(self, obs):\n        return 0\n"
BROKEN = "class Policy:\n    def predict(self, obs):\n        return 7\n"
#: README.md has no comments: what its folder holds, and which of its commands need more than the test environment.
README_FOLDER = (
    Step(kind="given", name="examples", text="examples", line=0),
    Step(kind="given", name="policy.py", text="examples/cartpole.py", line=0),
    Step(
        kind="before",
        text="rlmesh eval policy.py --env CartPole-v1 --out made --quiet && mv made/* last-week && mkdir -p runs "
        "&& mv last-week runs",
        line=0,
    ),
)
README_NEEDS = {
    "python -m venv": "fresh machine",
    "rlmesh explain --route examples/pusht.yaml": "real",
    "rlmesh eval random --env gym_pusht/PushT-v0": "real",
}

needs_command = pytest.mark.skipif(
    not (SCRIPTS / "rlmesh").exists() or shutil.which("bash") is None,
    reason=f"needs bash and a console script `rlmesh` in {SCRIPTS}",
)


def steps_of(page: Path) -> list[Step]:
    steps = pages.steps_of(page.read_text(encoding="utf-8"))
    if page != ROOT / "README.md":
        return steps
    needs = {step: need for step in steps for start, need in README_NEEDS.items() if step.text.startswith(start)}
    assert set(needs.values()) == set(README_NEEDS.values())
    return [*README_FOLDER, *(pages.with_needs(step, needs.get(step, step.needs)) for step in steps)]


def blocks(text: str, language: str) -> list[str]:
    found = [part for part in pages.parts_of(text) if isinstance(part, Block)]
    return [block.text for block in found if block.language == language]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_blocks_are_those_that_markdown_has(page):
    """What is run is what a reader sees as code."""
    text = page.read_text(encoding="utf-8")
    tokens = [token for token in MarkdownIt().parse(text) if token.type in ("fence", "code_block")]
    found = [part for part in pages.parts_of(text) if isinstance(part, Block)]
    assert [block.text.rstrip() for block in found] == [token.content.rstrip() for token in tokens]


@needs_command
@pytest.mark.parametrize("page", [page for page in PAGES if page != pictures.PAGE], ids=named)
def test_commands_of_the_page_do_what_it_says(page, tmp_path):
    """Exit codes are those that it names, and the output that it shows is printed."""
    for step in steps_of(page):
        if not step.needs:
            pages.do(step, tmp_path)


@needs_command
def test_pictures_show_what_is_printed(tmp_path):
    """All lines of each picture that hold no time, path or run are printed by its command, at the same width."""
    count = 0
    for step, picture in pictures.pictured(pictures.PAGE.read_text(encoding="utf-8")):
        if not picture:
            pages.do(step, tmp_path)
            continue
        svg = (pictures.PAGE.parent / picture).read_text(encoding="utf-8")
        assert "url(http" not in svg
        shown = pictures.lines_of(svg)[step.text.count("\n") + 1 :]
        assert pages.stable_lines(shown)
        assert not pages.missing_lines(shown, Text.from_ansi(pictures.printed(step, tmp_path)).plain), picture
        count += 1
    assert count >= 3


@needs_command
@pytest.mark.real
@pytest.mark.parametrize(
    "page", [page for page in PAGES if {step.needs for step in steps_of(page)} - {"", "fresh machine"}], ids=named
)
def test_commands_that_need_more_do_too(page, tmp_path):
    steps = steps_of(page)
    here = [step for step in steps if pages.is_met(step.needs)]
    if not any(step.needs for step in here):
        pytest.skip(f"needs {', '.join(sorted({step.needs for step in steps} - {''}))}")
    for step in here:
        pages.do(step, tmp_path)


def test_every_command_of_the_pages_is_run_or_says_what_it_needs():
    """Counted once more by what the lines begin with: none is passed over by the reader of the pages."""
    run, waiting = 0, 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        commands = [step for step in steps_of(page) if step.kind == "command"]
        assert {step.needs for step in commands} <= {"", *pages.NEEDS}
        shown = [step.shown for step in commands if any(line.strip() for line in step.shown)]
        assert all(pages.stable_lines(lines) for lines in shown), f"{page}: shows only what is not compared"
        scripts = [step for step in steps_of(page) if step.kind == "file" and step.language in ("bash", "sh")]
        lines = [line for step in [*commands, *scripts] for line in step.text.split("\n")]
        assert sum(line.startswith("rlmesh ") for line in lines) == len(
            re.findall(r"^(?:    (?:\w*\$ +)?)?rlmesh (?=[a-z-])", text, flags=re.M)
        ), page
        assert sum(step.language in ("bash", "sh") for step in commands) == len(
            re.findall(r"(?<! -->)\n```(?:bash|sh)$", text, flags=re.M)
        ), page
        run += sum(not step.needs for step in commands)
        waiting += sum(bool(step.needs) for step in commands)
    assert run > 50
    assert waiting < run / 3


def test_files_that_are_scripts_are_run():
    """A bash block that is a file is run by a command of its page, or by a test here."""
    tried_below = {"evaluate.sh", "pre-commit"}
    for page in PAGES:
        steps = steps_of(page)
        said = " ".join(step.text for step in steps if step.kind == "command")
        scripts = {step.name for step in steps if step.kind == "file" and step.language in ("bash", "sh")}
        assert all(name in said for name in scripts - tried_below), page


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_files_are_named_where_they_are_read(page):
    """The comment is not seen: the name stands in the text between the block before and the file."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        marked = re.match(r"<!-- file: (.*) -->", line)
        if marked:
            above = next(at for at in range(number - 1, -1, -1) if lines[at].startswith(("```", "    ", "#")))
            assert re.search(rf"`(?:\S*/)?{re.escape(marked[1])}`", "\n".join(lines[above:number])), marked[1]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_of_the_page_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.M)
            known = {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}
            assert anchor in known, f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_of_the_page_is_python(page):
    for text in blocks(page.read_text(encoding="utf-8"), "python"):
        ast.parse(text)


def test_flags_in_the_text_are_flags():
    """A flag in backquotes belongs to a command of ours."""
    commands = typer.main.get_command(app).commands
    options = [flag for command in commands.values() for option in command.params for flag in option.opts]
    known = {"--help", "--version", "--install-completion", *options}
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        spans = " ".join(re.findall(r"`([^`\n]+)`", text))
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", spans)) <= known, page


@pytest.fixture
def place(tmp_path) -> Path:
    """Return a folder with the files of the page, and a policy that is good."""
    for name, text in MARKED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "cartpole.py", tmp_path / "policy.py")
    return tmp_path


def test_page_has_the_files_that_are_tried_here():
    assert set(MARKED) == {"route.yaml", "evaluate.sh", "pre-commit", ".pre-commit-config.yaml"}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_yaml_can_be_read(page):
    for text in blocks(page.read_text(encoding="utf-8"), "yaml"):
        assert isinstance(yaml.safe_load(text), (dict, list)), text


@needs_command
@pytest.mark.parametrize(
    ("policy", "code", "said", "counts"),
    [
        (None, 0, "every bar is met", ("2", "0", "0")),
        (BAD, 1, "a bar is missed, see reports/summary.md", ("2", "1", "0")),
        ("import nowhere_at_all\n", 2, "no result, see above", ("1", "0", "1")),
    ],
)
def test_script_leaves_with_the_code_of_the_policy(policy, code, said, counts, place):
    if policy is not None:
        (place / "policy.py").write_text(policy, encoding="utf-8")
    (place / "reports").mkdir()
    (place / "reports" / "old.xml").write_text("of an earlier job")
    done = shell(place, "bash", "evaluate.sh")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, said), done
    suites = ElementTree.parse(place / "reports" / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == counts
    assert sorted(path.name for path in (place / "reports").iterdir()) == [
        "episodes.csv",
        "junit.xml",
        "summary.md",
    ]
    lines = (place / "reports" / "episodes.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == (1 if code == 2 else 51)


@needs_command
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(("policy", "code"), [(None, 0), (BAD, 0), (BROKEN, 2), ("def predict(", 2)])
def test_hook_stops_a_policy_that_cannot_be_played(policy, code, place):
    """A bad policy passes: four short episodes say nothing of how good it is."""
    if policy is not None:
        (place / "policy.py").write_text(policy, encoding="utf-8")
    assert shell(place, "git", "init", "-q").returncode == 0
    assert shell(place, "bash", "pre-commit").returncode == code


def test_both_hooks_run_one_command():
    (hook,) = yaml.safe_load(MARKED[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    words = shlex.split(hook["entry"])
    assert words[:2] == ["rlmesh", "eval"]
    assert shlex.split(MARKED["pre-commit"].splitlines()[-1]) == ["exec", *words]


def test_flags_of_the_page_are_those_of_the_command():
    known = set(re.findall(r"--[a-z][a-z-]+", CliRunner().invoke(app, ["eval", "--help"]).output))
    used = [
        line for text in blocks(CI, "bash") + blocks(CI, "yaml") for line in text.replace("\\\n", " ").splitlines()
    ]
    flags = {flag for line in used if "rlmesh eval" in line for flag in re.findall(r"--[a-z][a-z-]+", line)}
    assert {"--route", "--gate", "--junit", "--summary", "--csv"} <= flags <= known


def test_exit_codes_of_the_page_are_those_of_the_command():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", CI, flags=re.M)}
    assert codes == {int(code) for code in Exit} | {141}


def test_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[([\w-]+\.md)\]", index, flags=re.M)
    assert sorted([*listed, "README.md", "tutorial.md"]) == sorted(page.name for page in PAGES[1:])
    assert "(tutorial.md)" in index
