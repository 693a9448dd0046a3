"""Exit codes, and what the command makes of a run or an exception."""

from __future__ import annotations

import json

import pytest
from cli_toys import ZERO, errored, evaluation, play, policy_file, row

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli import evaluation_command
from rlmesh_cli.evaluation_command import Request, exit_code, run
from rlmesh_cli.exits import Exit
from rlmesh_cli.gates import judge, parse_gate
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import summarise

CAUTION = Advisory(code="unseeded", severity="caution", message="m")
INFO = Advisory(code="actions-clipped", severity="info", message="m")


def test_codes_are_those_of_the_documentation():
    assert {code.name: int(code) for code in Exit} == {
        "DONE": 0,
        "MISSED": 1,
        "USAGE": 2,
        "INCONCLUSIVE": 3,
        "ERRORED": 4,
        "BUG": 70,
        "INTERRUPTED": 130,
    }


GOOD = [row(0, success=True), row(1, success=True)]
BAD = [row(0, success=True), errored(1)]


@pytest.mark.parametrize(
    ("rows", "gates", "more", "strict", "code"),
    [
        (GOOD, [], {}, False, 0),
        (GOOD, ["success_rate >= 1"], {}, False, 0),
        (GOOD, ["mean_return > 100"], {}, False, 1),
        (GOOD, ["success_rate >= 1", "speed > 0"], {}, False, 1),
        (GOOD, [], {"advisories": (CAUTION,)}, False, 0),
        (GOOD, [], {"advisories": (CAUTION,)}, True, 1),
        (GOOD, [], {"advisories": (INFO,)}, True, 0),
        (BAD, [], {}, False, 4),
        (BAD, ["success_rate >= 0.5"], {}, False, 4),
        (BAD, ["success_rate >= 0.9"], {}, False, 1),
        (BAD, ["errors <= 1"], {}, False, 0),
        (BAD, ["errors == 0"], {}, False, 1),
        (BAD, [], {"advisories": (CAUTION,)}, True, 1),
        (BAD, ["success_rate >= 0.9"], {"status": "interrupted"}, True, 130),
        (GOOD, [], {"status": "interrupted"}, False, 130),
    ],
)
def test_code_says_what_a_run_means_to_a_script(rows, gates, more, strict, code):
    made = evaluation(rows, **more)
    made.verdicts = [judge(parse_gate(text), made.summary) for text in gates]
    assert exit_code(made, strict=strict) == code


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ({}, 0),
        ({"gates": ("mean_return >= 1e9",)}, 1),
        ({"gates": ("mean_return >= 0", "errors == 0")}, 0),
        ({"gates": ("nowhere >= 0",)}, 1),
        ({"env": "cli_toys:Broken"}, 4),
        ({"env": "cli_toys:Broken", "gates": ("errors <= 2",)}, 0),
        ({"horizon": 2, "strict": True}, 1),
        ({"horizon": 2}, 0),
        ({"episodes": 0}, 2),
    ],
)
def test_command_returns_the_code_of_its_run(flags, code, tmp_path):
    assert play(tmp_path, "zero", **{"episodes": 2, "quiet": True, **flags})[0] == code


def test_run_that_was_played_is_written_whatever_its_code(tmp_path):
    code, folder = play(tmp_path, "zero", env="cli_toys:Broken", episodes=2, quiet=True, gates=("errors == 0",))
    assert code == 1
    assert json.loads((folder / "summary.json").read_text())["errors"] == 2


def test_json_is_one_document_and_nothing_else(tmp_path, capfd):
    loud = "import os\nprint('loading')\n" + ZERO.replace("return 0", "print('x'); os.write(1, b'y'); return 0")
    code, folder = play(tmp_path, policy_file(tmp_path, loud), episodes=2, as_json=True, gates=("errors == 0",))
    said = capfd.readouterr()
    document = json.loads(said.out)
    assert said.out.count("\n") == 1
    assert (document["run"], document["exit_code"], document["episodes"]) == (str(folder), code, 2)
    on_disk = json.loads((folder / "summary.json").read_text())
    assert {key: value for key, value in document.items() if key != "exit_code"} == on_disk
    assert "loading" in said.err


def test_tables_go_to_standard_output(tmp_path, capsys):
    play(tmp_path, "zero", episodes=2)
    said = capsys.readouterr()
    assert "2 of 2" in said.out
    assert said.err == ""


def break_evaluate(monkeypatch, error: BaseException) -> None:
    def evaluate(*arguments, **keywords):
        raise error

    monkeypatch.setattr(evaluation_command, "evaluate", evaluate)


def test_fault_of_ours_shows_its_traceback(monkeypatch, capsys):
    break_evaluate(monkeypatch, ZeroDivisionError("ours"))
    assert run(Request(policy="zero", env="X")) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: ours" in said
    assert "bug of rlmesh" in said


def test_fault_whose_text_cannot_be_made_is_still_shown(monkeypatch, capsys):
    class MuteError(Exception):
        def __str__(self):
            raise ValueError("no text")

    break_evaluate(monkeypatch, MuteError())
    assert run(Request(policy="zero", env="X")) == 70
    assert "MuteError" in capsys.readouterr().err


def test_interruption_before_the_first_episode_is_one_line(monkeypatch, capsys):
    break_evaluate(monkeypatch, KeyboardInterrupt())
    assert run(Request(policy="zero", env="X")) == 130
    assert capsys.readouterr().err == "rlmesh: interrupted before the first episode; nothing was written\n"


def test_closed_pipe_is_left_to_the_terminal_layer(monkeypatch):
    break_evaluate(monkeypatch, BrokenPipeError("pipe"))
    with pytest.raises(BrokenPipeError, match="pipe"):
        run(Request(policy="zero", env="X"))


@pytest.mark.parametrize("hook", ["predict(self, obs)", "reset(self)", "close(self)", "on_episode_end(self)"])
def test_policy_that_leaves_the_process_does_not_look_like_success(hook, tmp_path):
    """`sys.exit(0)` in a policy would otherwise end the command with code 0 and no result."""
    name = hook.split("(")[0]
    rest = "" if name == "predict" else ZERO[14:]
    text = f"import sys\nclass Policy:\n    def {hook}:\n        sys.exit(0)\n{rest}"
    code, folder = play(tmp_path, policy_file(tmp_path, text), episodes=2, quiet=True)
    if name in ("predict", "reset"):
        assert (code, folder) == (2, None)
    else:
        assert code in (0, 4)
        assert json.loads((folder / "summary.json").read_text())["episodes"] == 2


def test_environment_that_leaves_the_process_is_an_errored_episode(tmp_path):
    code, folder = play(tmp_path, "zero", env="cli_toys:Quitter", episodes=2, quiet=True)
    assert code == 4
    rows = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    assert [(row["end"], row["length"]) for row in rows] == [("error", 1)] * 2
    assert "SystemExit" in rows[0]["error"]["message"]


def test_policy_that_leaves_later_is_an_errored_episode(tmp_path):
    text = "import sys\n" + ZERO.replace("return 0", "return sys.exit(0) if obs[1] == 1 else 0")
    code, folder = play(tmp_path, policy_file(tmp_path, text), episodes=3, quiet=True)
    assert code == 4
    rows = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    assert {row["index"]: row["end"] for row in rows} == {0: "terminated", 1: "error", 2: "terminated"}


@pytest.mark.parametrize(
    ("gate", "code"),
    [("errors <= 1", 0), ("errors < 2", 0), ("errors == 1", 0), ("errors >= 0", 4), ("errors != 3", 4)],
)
def test_only_a_bar_from_above_allows_errors(gate, code):
    summary = summarise(BAD, planned=2, rule=SuccessRule(), metrics=())
    verdicts = [judge(parse_gate(gate), summary)]
    assert verdicts[0].passed
    assert exit_code(evaluation(BAD, verdicts=verdicts), strict=False) == code


def test_json_of_no_result_is_nothing(tmp_path, capsys):
    code, folder = play(tmp_path, str(tmp_path / "nowhere.py"), as_json=True)
    printed = capsys.readouterr()
    assert (code, folder, printed.out) == (Exit.USAGE, None, "")
    assert "no such policy file" in printed.err
