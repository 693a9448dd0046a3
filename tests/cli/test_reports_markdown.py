"""Markdown: the verdict comes first, the counts are there, and text of users is never markup."""

from __future__ import annotations

import html
import re

import msgspec
import pytest
from cli_toys import errored, evaluation, play, row
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.app import app
from rlmesh_cli.evaluation_command import exit_code
from rlmesh_cli.exits import Exit
from rlmesh_cli.gates import judge, parse_gate
from rlmesh_cli.reports import markdown
from rlmesh_cli.reports.markdown import code, fitted, summary_markdown
from rlmesh_cli.reports.report import Report

CAUTION = Advisory(code="success-at-reset", severity="caution", message="2 of 3 report | success", count=2)
GOOD = [row(index, success=index < 3) for index in range(4)]


def page(rows, *gates: str, strict: bool = False, record=None, **changes) -> str:
    run = evaluation(rows, **changes)
    run.verdicts = [judge(parse_gate(text), run.summary) for text in gates]
    return summary_markdown(
        Report(
            code=exit_code(run, strict=strict),
            evaluation=run,
            strict=strict,
            command="rlmesh eval zero --env 'a|b'",
            record=record or {},
        )
    )


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ((GOOD,), "finished, no bar was stated (exit code 0: the run finished and no stated bar was missed)"),
        (
            (GOOD, "success_rate >= 0.5"),
            "passed, the bar is met (exit code 0: the run finished and no stated bar was missed)",
        ),
        (
            (GOOD, "success_rate >= 0.5", "mean_return > 9"),
            "failed, 1 of 2 bars missed (exit code 1: the run finished and a stated bar was missed)",
        ),
        (
            ([*GOOD, errored(4)],),
            "failed, 1 of 5 episodes errored (exit code 4: the run finished and some episodes errored)",
        ),
    ],
)
def test_first_line_is_the_verdict_with_what_the_exit_code_means(arguments, first):
    assert page(*arguments).splitlines()[0] == f"## rlmesh: {first}"


def test_interrupted_run_says_so_first():
    text = page(GOOD, "success_rate >= 0.5", status="interrupted")
    assert text.startswith("## rlmesh: interrupted (exit code 130: ")
    assert "| `gate success_rate >= 0.5` | undecided: " in text


def cells(text: str) -> dict[str, str]:
    lines = re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", text, flags=re.M)
    return dict(lines)


def test_numbers_come_with_their_counts():
    found = cells(page([*GOOD, errored(4)], "success_rate >= 0.9"))
    assert found["episodes"] == "5 of 5"
    assert found["success"] == "60.0 % (3 of 5), 95 % interval 14.7 to 94.7 % (`exact`); errored 1"
    assert found["return"].startswith("mean 2 (95 % interval ")
    assert found["errors"] == "1"
    assert found["`gate success_rate >= 0.9`"] == "**missed**: `success_rate is 0.6, bar >= 0.9`"


def test_success_that_nobody_reported_is_not_a_number():
    assert cells(page([row(0)]))["success"] == "not reported; unknown 1"
    assert cells(page([errored(0)]))["success"] == "no episode was finished; errored 1"


def test_interval_is_shown_where_the_record_has_one(monkeypatch):
    real = markdown.summary_record
    interval = {"low": 0.301, "high": 0.954, "confidence": 0.95, "method": "wilson"}

    def with_interval(run):
        record = real(run)
        return {**record, "success": {**record["success"], "interval": interval}}

    monkeypatch.setattr(markdown, "summary_record", with_interval)
    assert cells(page(GOOD))["success"] == "75.0 % (3 of 4), 95 % interval 30.1 to 95.4 % (`wilson`)"


def test_only_the_first_ten_errored_episodes_are_listed():
    text = page([errored(index) for index in range(25)])
    assert "**Errored episodes** (25)" in text
    assert [int(index) for index in re.findall(r"^\| (\d+) \| 1\d\d \|", text, flags=re.M)] == list(range(10))
    assert "and 15 more" in text


def test_cautions_command_and_run_folder_are_there():
    text = page(GOOD, advisories=(CAUTION,), record={"seeds": [0, 1, 2, 3], "versions": {"python": "3.11.7"}})
    assert "**Cautions** (1)\n\n- <code>2 of 3 report &#124; success</code> (2)\n" in text
    assert "Command: <code>rlmesh eval zero --env 'a&#124;b'</code>" in text
    assert "Run folder: `/nowhere/runs/the-run`" in text
    assert cells(text)["seeds"] == "0..3"


UGLY = "[red]gear[/red] <script>x</script> | `tick` ``two`` @everyone *b* $x$ \\| \x1b[31m \ud800\r\n## second"


@pytest.mark.parametrize("text", [UGLY, "plain", "a|b", "`", "\\", "<b>", "&lt;", "|", "a\n\n| b |", "x\\|y"])
def test_text_of_users_is_shown_as_it_is_and_stays_in_its_cell(text):
    shown = code(text)
    assert "|" not in shown
    assert "\n" not in shown
    span = re.fullmatch(r"`([^`]+)`", shown)
    element = re.fullmatch(r"<code>([^<>`|*_$\[\]]*)</code>", shown)
    seen = span[1] if span else html.unescape(element[1])
    escaped = text.replace("\x1b", "\\x1b").replace("\ud800", "\\ud800").replace("\r", "\\r")
    assert seen == " ".join(escaped.split())


def test_no_text_is_no_code_span():
    assert code("") == code("  \n") == ""


def test_ugly_names_and_errors_change_no_table():
    record = {"env": {"id": UGLY}, "policy": {"label": UGLY}, "versions": {UGLY: UGLY}}
    run = [row(0, metrics={UGLY: 1.0}), errored(1, UGLY)]
    text = page(run, metrics=(UGLY,), record=record)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {3, 7}
    assert "<script>" not in text
    assert "\n## second" not in text


@pytest.mark.parametrize(
    "text", [UGLY, "a|b", "`", "\\", "x\\|y", "``|``", "&#124;", "</code>|", "<!--", "| - |\n|---|"]
)
def test_reader_of_markdown_sees_the_text_of_users_as_it_is(text):
    """As Rich's own reader of markdown has it, with GitHub's tables."""
    run = [errored(index, text) for index in range(2)]
    html_text = MarkdownIt("commonmark").enable("table").render(page(run))
    cells = re.findall(r"<td>(.*?)</td>", html_text, flags=re.S)
    assert html_text.count("<table>") == 2
    escaped = text.replace("\x1b", "\\x1b").replace("\ud800", "\\ud800").replace("\r", "\\r")
    for message in (cells[-8], cells[-2]):
        shown = re.fullmatch(r"<code>([^<]*)</code>", message)
        assert html.unescape(shown[1]) == " ".join(escaped.split())


def test_page_is_cut_at_the_end_of_a_line_and_says_so():
    text = "first\n" + "日本 line\n" * 100
    assert fitted(text, 10_000) == text
    kept = fitted(text, 500)
    assert len(kept.encode()) <= 500
    assert kept.startswith("first\n日本 line\n")
    assert kept.rstrip().endswith("(The rest is left out: the page would be larger than is taken.)")
    assert "line\n\n(The rest" in kept.replace("\n\n\n", "\n\n")
    assert fitted(text, 0) == ""


def test_page_of_a_run_with_very_much_to_tell_is_small():
    cautions = tuple(msgspec.structs.replace(CAUTION, message="|" * 5000) for _ in range(500))
    text = page([errored(index, "|" * 5000) for index in range(500)], advisories=cautions)
    assert len(text.encode()) < 100_000


def invoke(folder, *flags: str, **env: str):
    arguments = ["eval", "zero", "--env", "cli_toys:Steps", "-n", "2", "-q", "--out", str(folder / "runs"), *flags]
    return CliRunner(env=env).invoke(app, arguments)


def test_summary_of_a_github_step_is_added_to(tmp_path):
    path = tmp_path / "step.md"
    path.write_text("# before\n")
    for _ in range(2):
        assert invoke(tmp_path, GITHUB_STEP_SUMMARY=str(path)).exit_code == 0
    text = path.read_text()
    assert text.startswith("# before\n## rlmesh: finished")
    assert text.count("\n## rlmesh: finished") == 2


def test_summary_of_a_github_step_is_added_to_if_it_is_named_too(tmp_path):
    path = tmp_path / "step.md"
    path.write_text("# before\n")
    assert invoke(tmp_path, "--summary", str(path), GITHUB_STEP_SUMMARY=str(path)).exit_code == 0
    assert path.read_text().startswith("# before\n## rlmesh")


def test_flag_comes_before_the_environment_variable_and_writes_anew(tmp_path):
    step, own = tmp_path / "step.md", tmp_path / "own.md"
    own.write_text("# before\n")
    assert invoke(tmp_path, "--summary", str(own), GITHUB_STEP_SUMMARY=str(step)).exit_code == 0
    assert own.read_text().startswith("## rlmesh")
    assert not step.exists()


def test_empty_variable_is_none(tmp_path):
    assert invoke(tmp_path, GITHUB_STEP_SUMMARY="").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_variable_that_names_no_file_is_told_apart_from_the_flag(tmp_path):
    result = invoke(tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path / "none" / "step.md"))
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    assert "at    $GITHUB_STEP_SUMMARY" in result.stderr
    assert "mend  unset GITHUB_STEP_SUMMARY, or name a file with --summary" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_step_that_is_nearly_full_gets_what_fits_and_a_full_one_nothing(tmp_path):
    path = tmp_path / "step.md"
    path.write_bytes(b"x" * ((1 << 20) - 500))
    assert invoke(tmp_path, GITHUB_STEP_SUMMARY=str(path)).exit_code == 0
    assert (1 << 20) - 500 < path.stat().st_size <= 1 << 20
    path.write_bytes(b"x" * (1 << 20))
    result = invoke(tmp_path, GITHUB_STEP_SUMMARY=str(path))
    assert path.stat().st_size == 1 << 20
    assert (result.exit_code, "nothing was added" in result.stderr) == (0, True)


def test_run_that_could_not_be_made_says_why(tmp_path, capsys):
    path = tmp_path / "page.md"
    assert play(tmp_path, "zero", env="cli_toys:Unbuildable", summary=path)[0] == Exit.USAGE
    text = path.read_text()
    assert text.startswith("## rlmesh: no result (exit code 2: the run could not be made as asked")
    assert "no display" in text
