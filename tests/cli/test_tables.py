"""Tables: a run as text on a terminal."""

from __future__ import annotations

import io
import math
from pathlib import Path

import msgspec
import pytest
from cli_toys import errored, evaluation, row
from rich.console import Console

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.gates import GateVerdict
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.summary_rows import success_text
from rlmesh_cli.tables import show_evaluation, time_line
from rlmesh_cli.tallies import Tally
from rlmesh_cli.wording import number

CAUTION = Advisory(code="success-at-reset", severity="caution", message="2 of 3 episodes report success", count=2)
INFO = Advisory(code="actions-clipped", severity="info", message="actions were clipped", count=7)
PASSED = GateVerdict(gate="errors == 0", metric="errors", op="==", value=0.0, passed=True)
MISSED = GateVerdict(gate="success_rate >= 0.9", metric="success_rate", op=">=", value=0.5, passed=False)
UNMEASURED = GateVerdict(gate="speed > 1", metric="speed", op=">", value=None, passed=False)


def shown(
    run: Evaluation, *, width: int = 140, strict: bool = False, every: bool = False, quiet: bool = False, **console
) -> str:
    """Return what a run looks like on a console of that width."""
    stream = io.StringIO()
    show_evaluation(
        run,
        strict=strict,
        every=every,
        quiet=quiet,
        console=Console(file=stream, width=width, **console),
    )
    return stream.getvalue()


def full_run(**changes) -> Evaluation:
    """Return a run with everything that can be shown."""
    rows = [row(index, success=index % 2 == 0, clipped_actions=1, metrics={"speed": 1.5}) for index in range(20)]
    rows[17] = errored(17, "RuntimeError: " + "gear " * 60)
    return evaluation(
        rows,
        verdicts=[PASSED, MISSED, UNMEASURED],
        advisories=(CAUTION, INFO),
        metrics=("speed",),
        **changes,
    )


def listed(text: str) -> list[int]:
    """Return the indices in the episode table."""
    lines = text[text.index("episodes (") :].splitlines()
    cells = [line.split() for line in lines]
    return [int(row[0]) for row in cells if len(row) >= 6 and row[0].isdecimal() and row[1].isdecimal()]


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_of_the_tables_is_wider_than_the_terminal(width):
    lines = shown(full_run(), width=width, every=True).splitlines()
    assert [line for line in lines if len(line.rstrip()) > width] == []
    assert len(listed("\n".join(lines))) == 20


@pytest.mark.parametrize("width", [80, 140])
def test_only_ascii_is_printed(width):
    assert shown(full_run(), width=width, strict=True).isascii()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_long_messages_are_folded_and_kept_whole(width):
    long = "Q" * 500
    text = shown(
        evaluation([errored(0, long)], advisories=(Advisory(code="a", severity="info", message="Z" * 500),)),
        width=width,
    )
    assert (text.count("Q"), text.count("Z")) == (500, 500)


@pytest.mark.parametrize("width", [30, 40, 60])
def test_no_digit_of_a_number_is_cut_off(width):
    text = shown(evaluation([row(0, seed=777_777_777, return_=888_888_888.0)], folder=Path("/x")), width=width)
    row_ = text[text.index("episodes (") :]
    assert (row_.count("7"), row_.count("8")) == (9, 9)


def test_text_of_users_is_never_read_as_markup():
    tricky = "[red]x[/red] [/] [bold] :smile: [link=a]b[/link]"
    run = evaluation(
        [errored(0, tricky), row(1, success=True, end="terminated", metrics={"[b]m[/b]": 1.0})],
        verdicts=[GateVerdict(gate="[i]g[/i] > 1", metric="[i]g[/i]", op=">", value=None, passed=False)],
        advisories=(Advisory(code="a", severity="caution", message="[u]said[/u]"),),
        metrics=("[b]m[/b]",),
        rule=SuccessRule(keys=("[s]rule[/s]",)),
        folder=Path("/nowhere/[dim]run[/dim]"),
    )
    text = shown(run)
    for part in (tricky, "[b]m[/b]", "[i]g[/i] > 1", "[u]said[/u]", "[s]rule[/s]", "[dim]run[/dim]"):
        assert part in text


def test_escape_sequences_of_users_do_not_reach_the_terminal():
    assert "\x1b" not in shown(evaluation([errored(0, "RuntimeError: \x1b[2J\x1b[31mred")]))


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[33m" in shown(full_run(), force_terminal=True)
    assert "\x1b" not in shown(full_run())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in shown(full_run(), force_terminal=True)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[33m" not in shown(full_run(), force_terminal=True)


def test_few_episodes_are_all_listed():
    text = shown(evaluation([row(index) for index in range(12)]))
    assert listed(text) == list(range(12))
    assert "episodes (all 12)" in text


def test_returns_that_are_no_number_do_not_hide_the_worst():
    values = [*[1.0] * 8, 5.0, math.nan, 4.0, 3.0, math.nan, 2.0, 9.0, 1.0, math.nan, 7.0]
    rows = [row(index, return_=value) for index, value in enumerate(values)]
    assert listed(shown(evaluation(rows))) == [*range(8), 10, 11, 13, 15]


def test_of_many_episodes_the_first_and_the_worst_are_listed():
    rows = [row(index, return_=50.0 + (index * 7) % 30) for index in range(30)]
    rows[20] = errored(20, return_=500.0)
    text = shown(evaluation(rows))
    worst = sorted(range(8, 30), key=lambda index: (index != 20, rows[index].return_))[:4]
    assert listed(text) == [*range(8), *sorted(worst)]
    assert "--all lists 30" in text
    assert listed(shown(evaluation(rows), every=True)) == list(range(30))


def test_row_is_shown_with_its_values():
    rows = [row(0, seed=None, length=12, return_=-1.25, success=True), row(1, success=False), errored(2)]
    lines = [line.split() for line in shown(evaluation(rows)).splitlines()]
    assert ["0", "-", "12", "-1.25", "terminated", "yes"] in lines
    assert ["1", "101", "3", "1.50", "terminated", "no"] in lines
    assert [
        "2",
        "102",
        "1",
        "2.50",
        "error",
        "n/a",
        "step",
        "1:",
        *["RuntimeError:", "gear", "is", "broken"],
    ] in lines


def test_summary_is_said_with_its_counts():
    text = shown(full_run(in_flight=2, status="interrupted"))
    assert "20 of 20 (2 broken off)" in text
    assert "terminated 19, error 1" in text
    assert "19 actions in 19 episodes" in text
    assert "mean 1.50, std 0, median 1.50, iqm 1.50, min 1.50, max 1.50" in text
    assert "interrupted: 20 of 20 episodes are saved" in text


def test_metric_says_how_many_episodes_reported_it():
    rows = [row(0, metrics={"v": 1.0}), row(1, metrics={"v": None}), row(2, metrics={"v": 3.0})]
    text = shown(evaluation(rows, metrics=("v", "w")))
    assert ", std 1.41, median 2, iqm 2, min 1, max 3 (reported by 2 of 3)" in text
    assert "n/a (not measured)" in text


@pytest.mark.parametrize(
    ("outcomes", "errors", "parts"),
    [
        ([True, False, None, True, False, None], 0, ["2 of 4", "50.0 %", "unknown: 2"]),
        ([True] * 6, 2, ["6 of 8", "75.0 %", "6 of 6", "100.0 %", "errored: 2"]),
        ([True, True, False], 0, ["2 of 3", "66.7 %"]),
        ([False], 0, ["0 of 1", "0.0 %"]),
        ([None, None], 0, ["n/a", "not reported"]),
        ([None], 1, ["n/a", "not reported", "errored: 1"]),
        ([], 4, ["n/a (no episode was finished), errored: 4"]),
    ],
)
def test_success_is_said_with_every_count_it_was_made_of(outcomes, errors, parts):
    rows = [row(index, success=outcome) for index, outcome in enumerate(outcomes)]
    rows += [errored(len(rows) + more) for more in range(errors)]
    text = success_text(evaluation(rows).summary)
    assert [part for part in parts if part not in text] == []
    assert ("%" in text) == any(outcome is not None for outcome in outcomes)


def test_rule_is_named_where_a_rate_is_shown():
    first = row(0, success=True, success_final=True, success_any=True, success_at_reset=True, success_held=10)
    second = row(1, success=False, success_final=False, success_any=True, success_held=9)
    text = shown(evaluation([first, second]))
    assert "is_success, last value" in text
    assert "[last value 1/2], any step 2/2, held 10 1/2, at reset 1/1" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (500.0, "500"),
        (-3.0, "-3"),
        (123456789.0, "123456789"),
        (0.5, "0.50"),
        (195.456, "195.46"),
        (-195.456, "-195.46"),
        (0.012345, "0.01235"),
        (1234567.5, "1.235e+06"),
        (1e300, "1e+300"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_are_rounded_on_the_screen_only(value, text):
    assert number(value) == text


def test_gates_show_value_and_verdict():
    lines = [line.split() for line in shown(full_run()).splitlines()]
    assert ["errors", "==", "0", "0", "passed"] in lines
    assert ["success_rate", ">=", "0.9", "0.50", "MISSED"] in lines
    assert ["speed", ">", "1", "not", "measured", "MISSED"] in lines


def test_advisories_show_severity_count_and_code():
    lines = [line.split() for line in shown(full_run()).splitlines()]
    assert ["caution", "2", "success-at-reset:", *CAUTION.message.split()] in lines
    assert ["info", "7", "actions-clipped:", *INFO.message.split()] in lines


def test_code_of_an_advisory_is_whole_where_its_sentence_is_folded():
    long = Advisory(code="camera-range-assumed", severity="caution", message="a camera states no range " * 9)
    lines = shown(evaluation([row(0)], advisories=(long,)), width=80).splitlines()
    assert any(line.startswith(" caution       1   camera-range-assumed: a camera") for line in lines)
    assert max(map(len, lines)) <= 80


def test_last_lines_say_what_was_missed_and_where_the_run_is():
    lines = shown(full_run(), strict=True).splitlines()[-5:]
    assert lines == [
        "missed success_rate >= 0.9: success_rate is 0.5",
        "missed speed > 1: speed was not measured",
        "missed --strict: 1 caution: success-at-reset",
        "1 of 20 episodes errored",
        "run /nowhere/runs/the-run",
    ]


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("success_rat", "success_rat was not measured; did you mean success_rate?"),
        ("mean_retrun", "mean_retrun was not measured; did you mean mean_return?"),
        ("error", "error was not measured; did you mean errors?"),
        ("speed", "speed was not measured"),  # like no metric that every run has: an info key
        ("iqm_return", "iqm_return was not measured"),  # named right, and unknown
    ],
)
def test_a_misspelt_metric_of_a_gate_is_told_the_one_it_is_like(metric, said):
    verdict = GateVerdict(gate=f"{metric} > 1", metric=metric, op=">", value=None, passed=False)
    assert f"missed {metric} > 1: {said}" in shown(evaluation([row(0)], verdicts=[verdict])).splitlines()


def test_success_that_nobody_reported_is_told_how_it_is_named():
    verdict = GateVerdict(gate="success_rate >= 1", metric="success_rate", op=">=", value=None, passed=False)
    missed = "missed success_rate >= 1: success_rate was not measured"
    hint = "; name what counts with --success, such as 'return >= X' or a key of the infos"
    assert f"{missed}{hint}" in shown(evaluation([row(0), errored(1)], verdicts=[verdict])).splitlines()
    # Where every episode errored, there was nothing to report.
    assert missed in shown(evaluation([errored(0)], verdicts=[verdict])).splitlines()


def test_strict_names_each_code_of_the_cautions_once():
    clipped = msgspec.structs.replace(CAUTION, code="actions-clipped", message="a")
    run = evaluation([row(0)], advisories=(CAUTION, clipped, msgspec.structs.replace(clipped, message="b"), INFO))
    assert "missed --strict: 3 cautions: success-at-reset, actions-clipped\n" in shown(run, strict=True)


def test_quiet_shows_no_table():
    assert shown(evaluation([row(0)]), quiet=True) == "run /nowhere/runs/the-run\n"
    assert shown(full_run(), quiet=True).splitlines()[0].startswith("missed")


def test_where_the_run_is_stays_on_one_line(tmp_path, monkeypatch):
    folder = Path("/" + "deep/" * 40 + "run")
    assert f"run {folder}" in shown(evaluation([row(0)], folder=folder), width=80).splitlines()
    monkeypatch.chdir(tmp_path)
    assert shown(evaluation([row(0)], folder=tmp_path / "runs" / "x"), quiet=True) == "run runs/x\n"


def test_time_is_shared_out_between_environment_policy_and_harness():
    # Half a second of steps and half of resets, a fifth of policy, two in all: 25, 25, 10 and 40 percent.
    line = time_line(evaluation([row(0)]))
    assert line == (
        "time 2.00 s: env 25 %, reset 25 %, policy 10 %, adapter 0 %, recording 0 %, harness 40 %; "
        "4,000 steps, 2,000 steps/s"
    )


def test_of_chunked_routes_the_time_says_how_often_the_policy_was_asked():
    tally = Tally(steps=4000, vector_steps=1000, calls=125, rows=500)
    line = time_line(evaluation([row(0)], tally=tally, is_chunked=True))
    assert line.splitlines()[0].endswith("; 0.12 calls a vector step, 4.0 rows a call")
    skipping = msgspec.structs.replace(tally, frames_skipped=3500)
    line = time_line(evaluation([row(0)], tally=skipping, is_chunked=True))
    assert line.splitlines()[0].endswith("; 0.12 calls a vector step, 4.0 rows a call, 3,500 frames not rendered")
    assert "calls" not in time_line(evaluation([row(0)], tally=tally))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, " and is asked for 2.0 rows a call: raise --num-envs"),
        ({"corner": "predict_batch"}, " and is asked for 2.0 rows a call: raise --num-envs"),
        (
            {"corner": "predict"},
            ", and each lane is a call of its own: give it predict_batch, or play on several cores with --workers",
        ),
        (
            {"corner": "predict_chunk", "workers": 2, "seconds": 0.9},
            ", and each lane is a call of its own: give it predict_chunk_batch",
        ),
        (
            {"corner": "predict", "is_builtin": True},
            ", and each lane is a call of its own: play on several cores with --workers",
        ),
        (
            {"corner": "predict_batch", "instances": "lane"},
            ", and each lane is a call of its own: let it pass `state`, so that one instance answers for all, "
            "or play on several cores with --workers",
        ),
    ],
)
def test_a_slow_policy_is_advised_what_helps_its_corner(changes, words):
    tally = Tally(steps=4000, vector_steps=1000, calls=2000, rows=4000, policy_seconds=1.5)
    line = time_line(evaluation([row(0)], tally=tally, **changes))
    assert line.splitlines()[1] == f"the policy takes most of the time{words}"


def test_a_slow_policy_of_ours_on_workers_is_advised_nothing():
    tally = Tally(steps=4000, vector_steps=1000, calls=4000, rows=4000, policy_seconds=1.5)
    ours = evaluation([row(0)], tally=tally, corner="predict", is_builtin=True, workers=2, seconds=0.9)
    assert len(time_line(ours).splitlines()) == 1


def test_run_that_took_no_time_divides_by_nothing():
    assert "no time" in time_line(evaluation([row(0)], seconds=0.0))


def test_run_without_an_episode_can_be_shown():
    text = shown(evaluation([], status="interrupted"))
    assert "0 of 0" in text
    assert "interrupted: 0 of 0 episodes are saved" in text
