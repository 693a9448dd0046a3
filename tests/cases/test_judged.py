"""A run that judges itself: against a baseline, by a rule that may stop, beside controls, and by its starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import Played, play, unarranged
from scipy.stats import binomtest

DRAWS = "durable_toys:Draws"
DIARY = "durable_toys:Diary"

NOISY = """
class Policy:
    def __init__(self, bad=0.0):
        self.bad = bad
    def predict(self, obs, context):
        if context.rng.random() < self.bad:
            return int(context.rng.integers(2))
        return int(obs[2] + 0.5 * obs[3] > 0)
"""
SUCCESS = "return >= 195"
CARTPOLE = {"env": "CartPole-v1", "max_episode_steps": 200, "success": SUCCESS, "num_envs": 4, "is_probed": False}


@pytest.fixture
def noisy(tmp_path: Path) -> str:
    file = tmp_path / "noisy.py"
    file.write_text(NOISY)
    return str(file)


def cartpole(tmp_path: Path, policy: str, bad: float, **flags: Any) -> Played:
    return play(tmp_path, policy, policy_args=(f"bad={bad}",), **{**CARTPOLE, "episodes": 60, **flags})


def test_a_baseline_judges_worse_not_worse_and_open(tmp_path: Path, noisy: str, capsys: Any) -> None:
    base = cartpole(tmp_path, noisy, 0.0)
    worse = cartpole(tmp_path, noisy, 0.6, baseline=str(base.folder))
    assert worse.code == 1
    assert worse.summary["baseline"]["claim"]["verdict"] == "worse"
    assert "NEW is worse than BASE at alpha 0.05" in capsys.readouterr().out
    same = cartpole(tmp_path, noisy, 0.0, baseline=str(base.folder), num_envs=2)
    assert same.code == 0
    assert same.summary["baseline"]["identical"] is True
    few = cartpole(tmp_path, noisy, 0.35, episodes=8, baseline=str(base.folder), margins=("1%",))
    assert few.code == 3
    assert few.summary["baseline"]["claim"]["verdict"] == "inconclusive"


def test_another_protocol_is_refused_before_anything_is_played(tmp_path: Path, noisy: str, capsys: Any) -> None:
    base = cartpole(tmp_path, noisy, 0.0, episodes=4)
    other = cartpole(tmp_path, noisy, 0.0, episodes=4, max_episode_steps=100, baseline=str(base.folder))
    assert (other.code, other.folder) == (2, None)
    assert "limits.steps  200 in BASE, 100 in NEW" in capsys.readouterr().err
    flags = {"max_episode_steps": 100, "baseline": str(base.folder), "allowed": ("limits.steps",)}
    allowed = cartpole(tmp_path, noisy, 0.0, episodes=4, **flags)
    assert allowed.code in (0, 1, 3)
    assert [found["field"] for found in allowed.summary["baseline"]["allowed"]] == ["limits.steps"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"baseline": "nowhere"}, "there is no run `nowhere`"),
        ({"margins": ("5%",)}, "no baseline is named"),
        ({"baseline": "HERE", "margins": ("0",)}, "leaves no room"),
        ({"baseline": "HERE", "alpha": 0.7}, "baseline.alpha must be"),
        ({"baseline": "HERE", "allowed": ("seeed",)}, "seeed"),
        ({"until": "decided"}, "there is nothing to decide"),
        ({"until": "width<2"}, "cannot be 2 wide"),
        ({"until": "decided", "gates": ("mean_return > 3",)}, "cannot be decided early"),
        ({"gate_on": "lower", "gates": ("success_rate == 1",)}, "asks for one value"),
        ({"gate_on": "upper"}, "gate_on must be one of value, lower"),
        ({"controls": "nothing"}, "controls[0] must be one of random, zero, hold"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"interval": "wald"}, "interval must be one of exact, wilson, blaker"),
        ({"max_errors": -1}, "max_errors must be"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_it_is_played(
    tmp_path: Path, flags: dict[str, Any], words: str, capsys: Any
) -> None:
    base = play(tmp_path, DRAWS, DIARY, episodes=2)
    if flags.get("baseline") == "HERE":
        flags = {**flags, "baseline": str(base.folder)}
    played = play(tmp_path, DRAWS, DIARY, episodes=2, **flags)
    assert (played.code, played.folder) == (2, None)
    said = capsys.readouterr().err
    assert words in said
    assert "  mend  " in said


def test_a_bar_on_the_lower_end_asks_for_more_episodes(tmp_path: Path) -> None:
    """Three of three are a rate of 1, whose exact 95 % interval begins at 29 %."""
    flags = {"episodes": 3, "gates": ("success_rate >= 0.9",)}
    assert play(tmp_path, "idle", "toys:Coins-v0", **flags).code == 0
    lower = play(tmp_path, "idle", "toys:Coins-v0", gate_on="lower", **flags)
    assert lower.code == 1
    (gate,) = lower.summary["gates"]
    assert (gate["held"], gate["passed"]) == ("lower", False)
    assert gate["value"] == pytest.approx(0.025 ** (1 / 3), abs=1e-9)


@pytest.mark.parametrize("flags", [{"num_envs": 1}, {"num_envs": 5}, {"num_envs": 3, "vectorization": "async"}])
def test_a_rule_stops_at_the_same_episode_on_any_lanes(tmp_path: Path, flags: dict[str, Any]) -> None:
    """The first to end are not the first of the plan, and it is the plan that counts."""
    given = {"episodes": 200, "gates": ("success_rate >= 0.5",), "until": "decided"}
    lone = play(tmp_path, "idle", "toys:Shy-v0", num_envs=1, success="is_success:any", **given)
    other = play(tmp_path, "idle", "toys:Shy-v0", success="is_success:any", **{**given, **flags})
    assert other.record["stopped_at"] == lone.record["stopped_at"]
    assert other.summary["success"] == lone.summary["success"]
    assert other.summary["queue"]["planned"] == 200
    assert other.summary["queue"]["counted"] == other.summary["episodes"] == (other.record["stopped_at"] or 200)
    assert other.record["stopping_rule"] == "decided"


def test_a_sure_bar_ends_a_run_early_and_says_so(tmp_path: Path, capsys: Any) -> None:
    flags = {"episodes": 300, "gates": ("success_rate >= 0.8",), "until": "decided", "num_envs": 4, "quiet": False}
    played = play(tmp_path, "idle", "toys:Coins-v0", **flags)
    assert played.code == 0
    stopped = played.record["stopped_at"]
    assert stopped is not None
    assert stopped < 300
    assert played.summary["success"]["interval"]["method"] == "betting"
    assert played.summary["success"]["interval"]["low"] >= 0.8
    assert played.advisory("stopped-early") is not None
    queue = played.summary["queue"]
    assert queue["started"] == queue["counted"] + queue["discarded"]
    assert len(played.written) >= stopped


def test_a_rule_that_found_nothing_to_look_at_says_so(tmp_path: Path) -> None:
    flags = {"episodes": 6, "until": "width<0.5", "num_envs": 2}
    advisory = play(tmp_path, "zero", "CartPole-v1", **flags).advisory("until-unmeasured")
    assert advisory is not None
    assert advisory["message"] == "no success was reported, so width<0.5 had nothing to look at and ended nothing"
    assert play(tmp_path, "idle", "toys:Coins-v0", **flags).advisory("until-unmeasured") is None


def test_a_bar_that_stays_open_is_inconclusive(tmp_path: Path, capsys: Any) -> None:
    """Shy reports success, failure or nothing by the seed modulo 3: half of those that report succeed."""
    flags = {"episodes": 30, "gates": ("success_rate >= 0.5",), "until": "decided"}
    played = play(tmp_path, "idle", "toys:Shy-v0", **flags)
    assert played.code == 3
    (gate,) = played.summary["gates"]
    assert (gate["passed"], gate["is_open"]) == (False, True)
    assert "open success_rate >= 0.5" in capsys.readouterr().out


def test_a_decided_baseline_stops_early(tmp_path: Path, noisy: str) -> None:
    base = cartpole(tmp_path, noisy, 0.0, episodes=200)
    flags = {"episodes": 200, "baseline": str(base.folder), "until": "decided"}
    worse = cartpole(tmp_path, noisy, 0.7, **flags)
    assert worse.code == 1
    assert worse.record["stopped_at"] < 100
    (metric, *_) = worse.summary["baseline"]["metrics"]
    assert metric["interval"]["method"] == "betting"
    assert metric["interval"]["high"] < 0


def test_controls_play_the_same_seeds_and_a_task_that_nothing_solves_is_found_out(
    tmp_path: Path, capsys: Any
) -> None:
    flags = {"episodes": 20, "controls": "zero,random", "num_envs": 4, "quiet": False}
    played = play(tmp_path, "idle", "toys:Coins-v0", **flags)
    zero, chance = played.summary["controls"]
    assert (zero["name"], chance["name"]) == ("zero", "random")
    assert (zero["success"]["pairs"], zero["success"]["difference"]) == (20, 0.0)
    advisory = played.advisory("control-not-beaten")
    assert advisory is not None
    assert advisory["severity"] == "caution"
    assert "controls" in capsys.readouterr().out
    alone = play(tmp_path, "random", "toys:Coins-v0", episodes=20)
    assert played.folder is not None
    text = (played.folder / "control-random.jsonl").read_text()
    assert len(text.splitlines()) == len(alone.rows) == 20


def test_a_policy_with_skill_is_told_apart_from_controls(tmp_path: Path, noisy: str) -> None:
    played = cartpole(tmp_path, noisy, 0.0, episodes=30, controls="random,hold")
    assert played.advisory("control-not-beaten") is None
    for control in played.summary["controls"]:
        assert control["success"]["interval"]["low"] > 0.5
        assert control["returns"]["difference"] > 100


def test_hold_keeps_one_action_an_episode(tmp_path: Path) -> None:
    """Echo's return is the sum of the actions it was given, so a held one is a multiple of the length."""
    played = play(tmp_path, "hold", DIARY, episodes=12, num_envs=3)
    again = play(tmp_path, "hold", DIARY, episodes=12, num_envs=1)
    assert unarranged(played.rows) == unarranged(again.rows)
    for row in played.rows:
        paid = row["return"] / row["length"] - 0.1
        assert paid == pytest.approx(round(paid))
    assert len({row["trace_hash"] for row in played.rows}) > 4


def test_ten_starts_are_counted_as_ten(tmp_path: Path, capsys: Any) -> None:
    """Fifty episodes from ten start states, by a policy without chance: K14's other half."""
    flags = {
        "episodes": 50,
        "num_envs": 4,
        "env_args": ("starts=10",),
        "quiet": False,
        "gates": ("distinct_starts >= 20",),
    }
    played = play(tmp_path, "idle", "durable_toys:TenStarts", **flags)
    starts = played.summary["starts"]
    assert (starts["known"], starts["distinct"], starts["are_repeats"]) == (50, 10, True)
    ten = play(tmp_path, "idle", "durable_toys:TenStarts", episodes=10, env_args=("starts=10",))
    assert played.summary["success"]["interval"] == ten.summary["success"]["interval"]
    assert played.code == 1
    advisory = played.advisory("repeated-starts")
    assert advisory is not None
    assert (advisory["severity"], advisory["count"]) == ("caution", 40)
    assert "10 distinct of 50" in capsys.readouterr().out
    drawn = play(tmp_path, "random", "durable_toys:TenStarts", episodes=50, env_args=("starts=10",))
    assert (drawn.summary["starts"]["distinct"], drawn.summary["starts"]["are_repeats"]) == (10, False)


def test_success_that_has_to_be_held(tmp_path: Path) -> None:
    """Flash is true at step 4 only: once, and never ten times in a row."""
    held = play(tmp_path, "idle", "toys:Flash-v0", episodes=1, success="is_success:held:2")
    once = play(tmp_path, "idle", "toys:Flash-v0", episodes=1, success="is_success:held:1")
    assert (held.column("success"), once.column("success")) == ([False], [True])
    assert held.column("success_held") == [1]
    assert held.record["success_rule"] == "is_success, held for 2 steps"
    found = {one["name"]: one for one in held.summary["meanings"]}
    assert {name: one["successes"] for name, one in found.items()} == {
        "final": 0,
        "any": 1,
        "held 2": 0,
        "at_reset": 0,
    }
    assert [name for name, one in found.items() if one["is_declared"]] == ["held 2"]


def test_a_run_that_was_stopped_by_errors_is_never_a_pass(tmp_path: Path) -> None:
    flags = {"episodes": 50, "max_errors": 1, "gates": ("errors <= 10", "success_rate >= 0.1")}
    played = play(tmp_path, "idle", "toys:Fragile-v0", **flags)
    assert (played.code, played.record["status"]) == (4, "stopped")


def test_a_baseline_that_cannot_tell_leaves_the_run_complete(tmp_path: Path, capsys: Any) -> None:
    """Every episode of the new run errors."""
    base = play(tmp_path, "idle", "toys:Coins-v0", episodes=4)
    new = play(
        tmp_path,
        "idle",
        "durable_toys:NeverStarts",
        episodes=4,
        baseline=str(base.folder),
        allowed=("env", "env.version", "limits.steps"),
    )
    assert (new.code, new.record["status"], new.summary["errors"]) == (3, "finished", 4)
    assert "NEW cannot be held against BASE" in capsys.readouterr().out


def test_seeds_that_are_not_those_of_the_baseline_are_refused_first(tmp_path: Path, capsys: Any) -> None:
    base = play(tmp_path, DRAWS, DIARY, episodes=4)
    new = play(tmp_path, DRAWS, DIARY, episodes=4, seed=100, baseline=str(base.folder))
    assert (new.code, new.folder) == (2, None)
    assert "have no seed in common" in capsys.readouterr().err


def test_a_margin_of_a_metric_means_that_it_is_judged(tmp_path: Path, noisy: str) -> None:
    base = cartpole(tmp_path, noisy, 0.0)
    new = cartpole(tmp_path, noisy, 0.0, baseline=str(base.folder), margins=("return=5",))
    assert new.code == 0
    assert new.summary["baseline"]["claim"]["metrics"] == ["mean_return"]


def test_controls_that_cannot_be_played_leave_the_run_complete(tmp_path: Path, capsys: Any) -> None:
    mark = tmp_path / "mark"
    mark.mkdir()
    flags = {"episodes": 3, "controls": "zero", "env_args": (f"mark={mark}",)}
    played = play(tmp_path, DRAWS, "durable_toys:OnlyOnce", **flags)
    assert (played.code, played.record["status"], len(played.rows)) == (2, "finished", 3)
    assert played.summary["episodes"] == 3
    said = capsys.readouterr().err
    assert "there is only one" in said
    assert f"the run itself is complete, in {played.folder}" in said


def test_what_the_policy_did_not_finish_is_no_lead_over_a_control(tmp_path: Path) -> None:
    """Of ten episodes the policy finishes five and wins them; doing nothing wins all ten."""
    file = tmp_path / "half.py"
    file.write_text(
        "def predict(obs):\n    if obs[1] % 2 and obs[0] == 1:\n        raise ValueError('no')\n    return 0\n"
    )
    played = play(tmp_path, str(file), "toys:Coins-v0", episodes=10, controls="zero")
    (control,) = played.summary["controls"]
    assert (control["success"]["pairs"], control["success"]["policy"], control["success"]["control"]) == (
        10,
        0.5,
        1.0,
    )
    assert (control["returns"]["pairs"], control["returns"]["left_out"]) == (5, 5)
    assert played.advisory("control-not-beaten") is not None


def test_repeated_starts_count_once_in_every_interval(tmp_path: Path) -> None:
    """Metrics, meanings and controls too."""
    flags = {"metrics": ("score",), "controls": "zero", "env_args": ("starts=2",), "success": "is_success"}
    many = play(tmp_path, "idle", "durable_toys:TenStarts", episodes=20, **flags)
    two = play(tmp_path, "idle", "durable_toys:TenStarts", episodes=2, **flags)
    for pick in (
        lambda summary: summary["metrics"]["score"]["interval"],
        lambda summary: summary["returns"]["interval"],
        lambda summary: [one["interval"] for one in summary["meanings"]],
        lambda summary: summary["controls"][0]["success"]["interval"],
    ):
        assert pick(many.summary) == pick(two.summary)


def test_failed_resets_stay_in_the_interval_beside_repeated_starts(tmp_path: Path) -> None:
    """Two starts that are played twice each, and four resets that fail, say what 64 / (4 + 4 + 4) = 5 would."""
    played = play(tmp_path, "idle", "durable_toys:StartsAndNone", episodes=8)
    assert played.summary["success"]["rate"] == 0.5
    interval = played.summary["success"]["interval"]
    assert interval["low"] == pytest.approx(binomtest(2, 5).proportion_ci(method="exact").low, abs=1e-9)
    assert interval["high"] == pytest.approx(binomtest(3, 5).proportion_ci(method="exact").high, abs=1e-9)
