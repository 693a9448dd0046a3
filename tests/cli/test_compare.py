"""`rlmesh compare`: what is printed, what may be claimed, and how it leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from cli_toys import ZERO, errored, play, policy_file, row
from stored import GOLDEN, change_json, change_line, golden_copy, record, rows, stored, written
from typer.testing import CliRunner

from rlmesh_cli.app import app

#: Fifty pairs: 3 that only NEW won, 4 that only BASE won, 30 that both did.
BASE = [True] * 30 + [False] * 3 + [True] * 4 + [False] * 13
NEW = [True] * 30 + [True] * 3 + [False] * 4 + [False] * 13


SCREEN = """\
comparison
 BASE       base (policy, 50 of 50 episodes)
 NEW        new (policy, 50 of 50 episodes)
 pairs      50 pairs
 differ in  policy.params.gain: 1 in BASE, -1 in NEW

metrics
                                      success_rate      mean_return
--------------------------------------------------------------------
 pairs                                          50               50
 BASE                                       68.0 %             0.68
 NEW                                        66.0 %             0.66
 difference                            -2.0 points            -0.02
 90 % interval                -11.8 to +7.6 points   -0.10 to +0.06
 p, two-sided                                    1                1
 p that NEW is worse                           0.5              0.5
 margin                                   5 points            0.034
 drop found in 80 %                    13.5 points             0.13
 pairs for the margin, 80 %                    365              764
 verdict                              inconclusive       not judged

flips of success_rate
                        pairs   seeds
-----------------------------------------------
 NEW alone succeeded        3   30, 31, 32
 BASE alone succeeded       4   33, 34, 35, 36

verdict inconclusive
NEW is not shown to be worse or not worse than BASE at alpha 0.05: \
the difference of success_rate is -2.0 points (90 % interval -11.8 to +7.6) over 50 pairs; \
if they do not differ, about 365 pairs would settle a margin of 5 points
"""


class Bench:
    """Two runs in a folder, and the command on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, made, **changes) -> None:
        written(self.folder / name, stored(made, **changes))

    def invoke(self, *arguments: object, columns: int = 100):
        command = ["compare", "base", "new", "--out", str(self.folder), *map(str, arguments)]
        return CliRunner().invoke(app, command, env={"COLUMNS": str(columns)})

    def shown(self, code: int, *arguments: object, columns: int = 100) -> str:
        result = self.invoke(*arguments, columns=columns)
        assert result.exit_code == code, result.output
        return result.stdout

    def json(self, code: int, *arguments: object) -> dict:
        found = json.loads(self.shown(code, "--json", *arguments))
        assert found["exit_code"] == code
        return found

    def refusal(self, *arguments: object) -> str:
        result = self.invoke(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert result.stderr.startswith("rlmesh: ")
        assert [result.stderr.count(part) for part in ("\n  at    ", "\n  mend  ")] == [1, 1]
        return result.stderr


@pytest.fixture(name="bench")
def _bench(tmp_path):
    """Return a folder with two runs of fifty seeds."""
    bench = Bench(tmp_path)
    for name, made, gain in (("base", BASE, 1), ("new", NEW, -1)):
        bench.put(name, rows(made), route__policy__params={"gain": gain})
    return bench


@pytest.mark.parametrize("columns", [80, 140])
def test_screen(columns, bench):
    shown = bench.shown(3, columns=columns)
    assert "\n".join(line.rstrip() for line in shown.splitlines()) + "\n" == SCREEN


@pytest.mark.parametrize(("pairs", "drops"), [(4, ["none", "none"]), (5, ["95.6", "points", "-"])])
def test_drop_that_so_few_pairs_cannot_find_is_none(pairs, drops, bench):
    """Four losses of four have a chance of 1 in 16, above 0.05; 0.8 is the fifth power of 0.956."""
    for name in ("base", "new"):
        put_again(bench, name, rows([True] * pairs, trace_hash=name))
    line = next(line for line in bench.shown(3).splitlines() if "drop found" in line)
    assert line.split()[5:] == drops
    found = bench.json(3)["metrics"][0]["detectable"]
    assert found is None if pairs == 4 else found == pytest.approx(0.8**0.2)


def test_claim_of_what_is_not_to_be_told(bench):
    last = bench.shown(3).splitlines()[-2:]
    assert last[0] == "verdict inconclusive"
    assert last[1].startswith(
        "NEW is not shown to be worse or not worse than BASE at alpha 0.05: "
        "the difference of success_rate is -2.0 points (90 % interval -"
    )
    assert " over 50 pairs; if they do not differ, about " in last[1]
    assert last[1].endswith(" pairs would settle a margin of 5 points")


def test_claim_of_what_is_worse(bench):
    bench.put("bad", rows([False] * 50))
    result = CliRunner().invoke(app, ["compare", "base", "bad", "--out", str(bench.folder), "--margin", "1%"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2] == "verdict worse"
    assert result.stdout.splitlines()[-1].startswith(
        "NEW is worse than BASE at alpha 0.05: the difference of success_rate is -68.0 points (90 % interval -"
    )


def test_claim_of_what_is_not_worse(bench):
    last = bench.shown(0, "--margin", "20%").splitlines()[-2:]
    assert last[0] == "verdict not worse"
    assert last[1].startswith(
        "NEW is not worse than BASE by 20 points or more at alpha 0.05: "
        "the difference of success_rate is -2.0 points (90 % interval -"
    )


def test_claim_of_a_run_and_itself():
    result = CliRunner().invoke(app, ["compare", str(GOLDEN), str(GOLDEN)])
    assert result.exit_code == 0
    assert result.stdout.endswith(
        "verdict not worse\n"
        "NEW is not worse than BASE: in all 4 pairs it took the same actions and was paid the same rewards\n"
    )
    assert " differ in  nothing that is recorded " in result.stdout
    assert " pairs      4 pairs that did the same to the last step " in result.stdout


def test_claim_says_which_of_several_is_worse(bench):
    bench.put("slow", [row(at, seed=at, success=won, return_=-at) for at, won in enumerate(BASE)])
    command = ["compare", "base", "slow", "--out", str(bench.folder), "--metric", "success", "--metric", "return"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "NEW is worse than BASE at alpha 0.05 in mean_return: the difference of success_rate is 0.0 points" in (
        result.stdout
    )
    assert " and the difference of mean_return is -25.18 (90 % interval " in result.stdout
    assert " the same, for 2 metrics " in result.stdout


def test_flips_are_listed_by_seed(bench):
    shown = bench.shown(3)
    assert " NEW alone succeeded        3   30, 31, 32     \n" in shown
    assert " BASE alone succeeded       4   33, 34, 35, 36 \n" in shown


def test_of_many_flips_the_first_twenty_are_listed(bench):
    bench.put("bad", rows([False] * 50))
    result = CliRunner().invoke(
        app, ["compare", "base", "bad", "--out", str(bench.folder)], env={"COLUMNS": "140"}
    )
    assert "17, 18, 19 and 14 more" in result.stdout
    assert " NEW alone succeeded        0   none " in result.stdout


def test_json_has_the_numbers_of_the_screen(bench):
    found = bench.json(3)
    assert (found["schema"], found["pairs"], found["identical"]) == ("rlmesh.comparison.v1", 50, False)
    assert found["claim"] | {"sentence": ""} == {
        "verdict": "inconclusive",
        "metrics": ["success_rate"],
        "alpha": 0.05,
        "pairs": 50,
        "sentence": "",
    }
    assert found["claim"]["sentence"] == bench.shown(3).splitlines()[-1]
    success, returns = found["metrics"]
    assert (success["base"], success["new"], success["p"]) == (0.68, 0.66, 1.0)
    assert success["gained"] == [{"seed": at, "base_index": at, "new_index": at} for at in (30, 31, 32)]
    assert [flip["seed"] for flip in success["lost"]] == [33, 34, 35, 36]
    assert success["interval"]["confidence"] == pytest.approx(0.9)
    assert returns["verdict"] is None
    assert found["differ_in"] == [{"field": "policy.params.gain", "base": 1, "new": -1}]
    assert found["base"] == {
        "run": str(bench.folder / "base"),
        "policy": "policy",
        "status": "finished",
        "episodes": 50,
        "planned": 50,
        "errors": 0,
    }


def test_what_is_allowed_is_said_in_table_json_and_claim(bench):
    change_json(bench.folder / "new", "run.json", lambda made: made["route"].update(horizon=8))
    assert "horizon  1 in BASE, 8 in NEW" in bench.refusal()
    shown = bench.shown(3, "--allow", "horizon")
    assert " allowed    horizon: 1 in BASE, 8 in NEW " in shown
    assert shown.endswith("; the runs differ in horizon too\n")
    assert bench.json(3, "--allow", "horizon")["allowed"] == [{"field": "horizon", "base": 1, "new": 8}]


def test_runs_that_differ_in_what_is_allowed_alone_are_not_said_to_differ_in_nothing(bench):
    for name in ("base", "new"):
        change_json(bench.folder / name, "run.json", lambda made: made["route"]["policy"].update(params={}))
    change_json(bench.folder / "new", "run.json", lambda made: made["route"].update(horizon=8))
    assert "differ in" not in bench.shown(3, "--allow", "horizon").partition("metrics")[0]


def test_field_that_is_allowed_and_does_not_differ_is_not_mentioned(bench):
    assert bench.json(3, "--allow", "horizon")["allowed"] == []
    assert "horizon" not in bench.shown(3, "--allow", "horizon")


def notes(bench: Bench) -> list[str]:
    found = json.loads(bench.invoke("--json").stdout)["notes"]
    shown = bench.invoke(columns=300).stdout
    told = re.findall(r"^ note +(.*?) *$", shown, re.M)
    assert told == found
    return found


def put_again(bench: Bench, name: str, made, **changes) -> None:
    for file in (bench.folder / name).iterdir():
        file.unlink()
    (bench.folder / name).rmdir()
    bench.put(name, made, **changes)


def test_seeds_that_overlap_in_part_are_said(bench):
    put_again(bench, "new", rows(NEW, first_seed=20))
    assert notes(bench) == ["the seeds overlap in part: 20 of BASE and 20 of NEW have no partner and do not count"]
    found = bench.json(0)
    assert (found["pairs"], found["base_only"], found["new_only"]) == (30, [*range(20)], [*range(50, 70)])


def test_run_that_is_not_over_is_said(bench):
    put_again(bench, "new", rows(NEW)[:30], seeds=range(50), status="running")
    with (bench.folder / "new" / "episodes.jsonl").open("ab") as file:
        file.write(b'{"index": 30')
    assert notes(bench) == [
        "NEW (killed) has 30 of its 50 episodes",
        "the last line of NEW's episodes.jsonl is half written and left out",
        "the seeds overlap in part: 20 of BASE and 0 of NEW have no partner and do not count",
    ]


def test_run_that_stopped_early_is_said(bench):
    put_again(bench, "new", rows(NEW), stopped_at=40, stopping_rule="decided")
    assert notes(bench) == [
        "NEW stopped by `decided` after 40 episodes: the level holds for a fixed number",
        "the seeds overlap in part: 10 of BASE and 0 of NEW have no partner and do not count",
    ]


def test_errors_of_one_side_are_said_and_bounded(bench):
    made = [errored(at, seed=at, start_hash=f"{at:016x}") if at < 5 else one for at, one in enumerate(rows(NEW))]
    put_again(bench, "new", made)
    assert notes(bench) == ["NEW errored in 5 pairs that BASE finished; nothing shows it to be as good there"]
    shown = bench.shown(3, columns=140)
    assert " left out                                5 errored           5 errored \n" in shown
    # 45 pairs with a difference of -1; five more that NEW may have lost, or won as BASE did.
    assert bench.json(3)["metrics"][0]["bounds"] == pytest.approx([-6 / 50, -1 / 50])
    assert " bounds, all pairs            -12.0 to -2.0 points                   - \n" in shown
    assert " over 45 pairs, 5 left out; if " in shown


def test_what_errored_on_both_sides_is_never_the_same(bench):
    made = [errored(at, seed=at, start_hash=f"{at:016x}") if at else one for at, one in enumerate(rows(NEW))]
    for name in ("base", "new"):
        put_again(bench, name, made)
    assert notes(bench) == ["BASE and NEW both errored in 49 pairs: nothing is known of these"]
    found = bench.json(3)
    assert (found["identical"], found["claim"]["verdict"]) == (False, "inconclusive")
    assert " over 1 pair, 49 left out" in found["claim"]["sentence"]
    assert "that did the same" not in bench.shown(3)
    said = bench.shown(3, "--first-divergence").splitlines()[-1]
    assert said == (
        "first divergence: none; every finished pair took the same actions and was paid the same rewards, "
        "and 49 pairs errored alike"
    )


def test_starts_that_are_not_those_of_base_are_said(bench):
    put_again(bench, "new", rows(NEW, start_hash="f" * 16))
    assert notes(bench) == ["50 of 50 pairs start differently in BASE and NEW, though their seed is the same"]


def test_ten_starts_counted_as_fifty_are_said(bench):
    for name, won in (("base", BASE), ("new", NEW)):
        made = [
            row(at, seed=at, success=one, start_hash=f"{at % 10}", trace_hash=f"{at}")
            for at, one in enumerate(won)
        ]
        put_again(bench, name, made)
    assert notes(bench) == ["50 pairs have only 10 different starts: they say less than 50"]


def test_pairs_that_only_repeat_others_are_said(bench):
    for name, won in (("base", True), ("new", False)):
        made = [row(at, seed=at, success=won, start_hash=str(at % 10), trace_hash=name) for at in range(50)]
        put_again(bench, name, made)
    result = bench.invoke("--json")
    found = json.loads(result.stdout)
    assert found["notes"] == ["40 of 50 pairs repeat others step by step and say nothing new: tests count 10"]
    assert (found["pairs"], found["repeats"]) == (50, 40)
    assert [(one["pairs"], one["effective"]) for one in found["metrics"]] == [(50, 10)] * 2


def test_few_pairs_and_info_metrics_are_said(bench):
    for name in ("base", "new"):
        made = [row(at, seed=at, start_hash=str(at), metrics={"gap": 1.0}, trace_hash=name) for at in range(10)]
        put_again(bench, name, made)
    result = bench.invoke("--json", "--metric", "gap")
    assert json.loads(result.stdout)["notes"] == [
        "below 20 pairs the interval of a mean holds the true one less often than it says",
        "of info metrics higher is taken to be better",
    ]


def test_runs_that_could_not_seed_are_paired_in_order_if_that_is_allowed(bench):
    for name, won in (("base", BASE), ("new", NEW)):
        made = [row(at, seed=None, success=one, start_hash=str(at)) for at, one in enumerate(won)]
        put_again(bench, name, made, seeds=range(50), seeded=False)
    assert "seeded  false in BASE and NEW" in bench.refusal()
    shown = bench.shown(3, "--allow", "seeded", columns=140)
    assert "paired in order, for seeds could not be set: a pair has nothing in common but its place" in shown
    assert " NEW alone succeeded        3   index 30, index 31, index 32 " in shown


def test_many_metrics_are_shown_in_tables_that_fit(bench):
    names = [f"metric_number_{number}" for number in range(6)]
    for name in ("base", "new"):
        made = [row(at, seed=at, metrics=dict.fromkeys(names, float(at)), trace_hash=name) for at in range(30)]
        put_again(bench, name, made)
    asked = [part for name in names for part in ("--metric", name)]
    lines = bench.shown(0, *asked, columns=80).splitlines()
    assert lines.count("metrics") > 1
    assert all(sum(name in line for line in lines[:-1]) == 1 for name in names)
    assert max(map(len, lines[:-1])) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--margin", "0"), "a margin of 0 leaves no room"),
        (("--margin", "-3%"), "a margin of -3% leaves no room"),
        (("--margin", "return=3"), "a margin of `mean_return`, but judged is success_rate"),
        (("--alpha", "0"), "alpha is 0\n"),
        (("--alpha", "0.5"), "alpha is 0.5\n"),
        (("--metric", "speed"), "there is no metric `speed` in both runs\n"),
        (("--allow", "everything"), "`everything` is no field of the protocol"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments, words, bench):
    assert words in bench.refusal(*arguments)


def test_number_that_is_none_is_a_mistake_of_usage(bench):
    result = bench.invoke("--alpha", "much")
    assert result.exit_code == 2
    assert "'much' is not a number" in result.stderr


def damage_record(folder: Path) -> None:
    (folder / "run.json").write_text('{"schema": ')


def newer(folder: Path) -> None:
    change_json(folder, "run.json", lambda made: made.update(schema="rlmesh.run.v2"))


def cut_in_the_middle(folder: Path) -> None:
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    (folder / "episodes.jsonl").write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n")


def edit_seed(folder: Path) -> None:
    change_line(folder, 2, lambda line: line.update(seed=999))


def empty(folder: Path) -> None:
    (folder / "episodes.jsonl").write_text("")


def not_there(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def all_errored(folder: Path) -> None:
    made = stored([errored(at, seed=at) for at in range(50)])
    (folder / "episodes.jsonl").unlink()
    (folder / "run.json").unlink()
    folder.rmdir()
    written(folder, made)


def no_run(folder: Path) -> None:
    (folder / "run.json").unlink()


@pytest.mark.parametrize("side", ["base", "new"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_record, "run.json is damaged"),
        (newer, "run.json was written by a newer rlmesh"),
        (cut_in_the_middle, "line 2 is damaged"),
        (edit_seed, "seed 999 of index 1 is not the planned one, 1"),
        (empty, "holds no finished episode"),
        (not_there, "there is no run `"),
        (all_errored, "in none of the 50 pairs both episodes have a result: 50 of them errored"),
        (no_run, "is not a run: it holds no run.json"),
    ],
)
def test_damage_is_a_message_with_cause_place_and_mend(damage, words, side, bench):
    damage(bench.folder / side)
    assert words in bench.refusal()


def test_success_that_was_measured_nowhere_cannot_be_judged(bench):
    for name in ("base", "new"):
        put_again(bench, name, rows([None] * 50, return_=2.0))
    said = bench.refusal("--metric", "success_rate")
    assert "success was not measured: BASE and NEW reported none" in said


def test_rows_that_were_edited_beside_a_summary_prove_nothing(tmp_path):
    base, new = golden_copy(tmp_path, "base"), golden_copy(tmp_path, "new")
    change_line(new, 1, lambda line: line.update({"success": True, "return": 500.0}))
    result = CliRunner().invoke(app, ["compare", str(base), str(new)])
    assert result.exit_code == 2
    assert "summary.json says success_rate 0.75, but its rows add up to 1: one of them was edited" in result.stderr


def test_text_of_users_is_shown_as_it_is(bench):
    for name in ("base", "new"):
        change_json(bench.folder / name, "run.json", lambda made: made["policy"].update(label="[red]\x1b[2J"))
    shown = bench.shown(3)
    assert "([red]\\x1b[2J, 50 of 50 episodes)" in shown


def test_number_of_lanes_makes_no_difference(tmp_path):
    policy = policy_file(tmp_path, ZERO)
    folders = [
        play(tmp_path, policy, episodes=9, num_envs=lanes, out=tmp_path / str(lanes))[1] for lanes in (1, 4)
    ]
    result = CliRunner().invoke(app, ["compare", *map(str, folders), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["identical"] is True


def test_record_of_the_toys_is_one_that_a_run_writes():
    assert record([0])["schema"] == json.loads((GOLDEN / "run.json").read_text())["schema"]


PLANTED = """
import numpy as np

class Policy:
    def predict(self, obs):
        action = np.full(4, 0.25, np.float32)
        if obs[0] == 17 and obs[1] == 2:
            action[3] = {value}
        return action
"""


@pytest.fixture
def planted(tmp_path):
    """Return two runs of three episodes, whose third takes another way at step 17 in one dimension."""
    folders = []
    for name, value in (("one", 0.25), ("other", 0.5)):
        (tmp_path / name).mkdir()
        policy = policy_file(tmp_path / name, PLANTED.replace("{value}", str(value)))
        flags = {"env_args": ("length=30",), "episodes": 3, "quiet": True, "success": "return >= 1"}
        _, folder = play(tmp_path / name, policy, "cli_toys:Quads", **flags)
        folders.append(folder)
    return folders


def test_a_planted_change_is_named_by_step_dimension_and_size(planted):
    result = CliRunner().invoke(app, ["compare", *map(str, planted), "--first-divergence"])
    assert "first divergence: seed 2: first differs at step 17: action[3] is 0.25 in BASE and 0.5 in NEW" in (
        result.stdout
    )
    assert "(by 0.25" in result.stdout
    assert "the policy's doing" in result.stdout
    told = json.loads(
        CliRunner().invoke(app, ["compare", *map(str, planted), "--first-divergence", "--json"]).stdout
    )["first_divergence"]
    assert (told["seed"], told["indices"], told["first"]["step"]) == (2, [2, 2], 17)
    assert (told["first"]["dimension"], told["first"]["size"]) == ([3], 0.25)


def test_verdict_stands_though_no_episode_can_be_played_again(planted):
    """It needs nothing but the rows."""
    command = ["compare", *map(str, planted)]
    verdict = CliRunner().invoke(app, command)
    gone = planted[0].parents[1] / "policy.py"
    gone.unlink()
    result = CliRunner().invoke(app, [*command, "--first-divergence"])
    assert result.exit_code == 2
    assert result.stdout == verdict.stdout
    assert result.stderr == (
        f"rlmesh: no divergence could be looked for: no such policy file: {gone}\n"
        "  at    policy\n"
        "  mend  check the path\n"
    )
    result = CliRunner().invoke(app, [*command, "--first-divergence", "--json"])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["exit_code"], found["claim"]["verdict"]) == (2, 2, "inconclusive")
    assert found["first_divergence"] is None
    assert found["first_divergence_error"] == {
        "cause": f"no divergence could be looked for: no such policy file: {gone}",
        "where": "policy",
        "mend": "check the path",
    }


def test_runs_that_did_the_same_have_no_divergence(planted):
    result = CliRunner().invoke(app, ["compare", str(planted[0]), str(planted[0]), "--first-divergence"])
    assert "first divergence: none; every pair took the same actions" in result.stdout
    assert result.exit_code == 0


def test_what_new_alone_did_not_finish_shows_nothing_to_be_as_good(bench):
    """Sixty pairs that agree, of which NEW crashed in six: left out, the rest would be shown to be not worse."""
    sound = rows([True] * 60)
    broken = [errored(one.index, seed=one.seed) if one.index < 6 else one for one in sound]
    put_again(bench, "base", sound)
    put_again(bench, "new", broken)
    assert bench.json(3, "--margin", "8%")["claim"]["verdict"] == "inconclusive"
    assert bench.json(3, "--margin", "8%", "--metric", "return")["claim"]["verdict"] == "inconclusive"
    put_again(bench, "base", broken)
    put_again(bench, "new", sound)
    assert bench.json(0, "--margin", "8%")["claim"]["verdict"] == "not_worse"


@pytest.mark.parametrize("margin", ["1e-200", "success=1e-160"])
def test_margin_that_nobody_could_show_is_no_bug(bench, margin):
    assert "inconclusive" in bench.shown(3, "--margin", margin)


@pytest.mark.parametrize("alpha", ["1e-17", "1e-300"])
def test_chance_that_leaves_no_interval_is_refused(bench, alpha):
    result = bench.invoke("--alpha", alpha)
    assert result.exit_code == 2
    assert "give a chance above 0 and below 0.5" in result.output


def test_resets_that_failed_are_no_starts_that_are_alike(tmp_path):
    bench = Bench(tmp_path)
    made = [errored(index) if index < 2 else row(index, success=True) for index in range(8)]
    broken = [msgspec.structs.replace(one, start_hash=None) if one.is_error else one for one in made]
    bench.put("base", broken)
    bench.put("new", [msgspec.structs.replace(one, start_hash="0" * 16) if one.is_error else one for one in made])
    said = bench.invoke("--json").output
    assert "different start" not in said
    assert "start differently" not in said
