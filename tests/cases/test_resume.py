"""Going on with a run: what is on disk counts, what is missing is played, and the sum is that of one sitting."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from reuse_toys import TAGS
from running import Played, finish, play, read_run, start, strict_loads, unarranged
from stored import record

from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.resuming import differences
from rlmesh_cli.store import RunStore

DRAWS = "durable_toys:Draws"
DIARY = "durable_toys:Diary"


def resume(folder: Path, **flags: Any) -> tuple[int, Played]:
    """Go on with a run; return the exit code and what is in the folder now."""
    code = int(run(Request(resume=str(folder), out=folder.parent, quiet=True, **flags)))
    return code, read_run(folder.parent, code)


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without where, when and on how many lanes it was made."""
    return {name: value for name, value in summary.items() if name not in ("run", "time", "probe", "instances")}


def cut(played: Played, rows: int, torn: bytes = b"") -> Path:
    """Make a run what it was when only so many rows were written."""
    folder = played.folder
    assert folder is not None
    lines = (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "episodes.jsonl").write_bytes(b"".join(lines[:rows]) + torn)
    (folder / "summary.json").unlink()
    record = json.loads((folder / "run.json").read_text())
    record |= {"status": "running", "finished_at": None}
    record["sessions"][-1] |= {"finished_at": None, "played": 0}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def lose_last_row(folder: Path) -> None:
    """Take the last row away, as a disk or a copy may."""
    lines = (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "episodes.jsonl").write_bytes(b"".join(lines[:-1]))


@pytest.mark.parametrize(("rows", "torn"), [(0, b""), (1, b""), (4, b'{"index":4,"se'), (8, b""), (4, b"\xff")])
@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}, {"num_envs": 3, "vectorization": "async"}])
def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(
    tmp_path: Path, rows: int, torn: bytes, flags: dict[str, Any]
) -> None:
    """Invariant 5, whatever the lanes are the second time."""
    gates = ("success_rate >= 0.1", "mean_return > 1")
    whole = play(tmp_path, DRAWS, DIARY, episodes=8, gates=gates)
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=8, gates=gates), rows, torn)
    before = (folder / "episodes.jsonl").read_bytes()[: -len(torn) or None]
    code, played = resume(folder, **flags)
    assert code == whole.code == 0
    assert unarranged(played.rows) == unarranged(whole.rows)
    assert told(played.summary) == told(whole.summary)
    assert (folder / "episodes.jsonl").read_bytes().startswith(before)
    assert [session["played"] for session in played.record["sessions"]] == [rows, 8 - rows]
    assert played.record["status"] == "finished"


def test_only_what_is_missing_is_played(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=6, env_args=(f"diary={diary}",)), 4)
    diary.unlink()
    resume(folder)
    assert diary.read_text().split() == ["4", "5"]
    diary.unlink()
    code, played = resume(folder)
    assert (code, diary.exists(), len(played.rows)) == (0, False, 6)


def test_sittings_keep_what_they_played_though_a_row_is_lost_later(tmp_path: Path) -> None:
    folder = play(tmp_path, DRAWS, DIARY, episodes=4).folder
    assert folder is not None
    resume(folder)
    lose_last_row(folder)
    resume(folder)
    code, played = resume(folder)
    assert (code, len(played.rows)) == (0, 4)
    assert [session["played"] for session in played.record["sessions"]] == [4, 0, 1, 0]


def test_killed_sitting_whose_rows_are_lost_played_nobody_knows_how_many(tmp_path: Path) -> None:
    folder = play(tmp_path, DRAWS, DIARY, episodes=4).folder
    assert folder is not None
    resume(folder)
    cut(read_run(folder.parent, 0), 3)
    code, played = resume(folder)
    assert code == 0
    assert [session["played"] for session in played.record["sessions"]] == [4, None, 1]


def test_miscounted_sitting_is_gone_on_with_once_it_is_null(tmp_path: Path, capsys: Any) -> None:
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=4), 3)
    sitting = {"argv": [], "finished_at": "2026-01-01T00:00:00+00:00"}
    counts = [-1, None]
    for count, code in zip(counts, (2, 0), strict=True):
        record = json.loads((folder / "run.json").read_text())
        record["sessions"] = [{**sitting, "played": 4}, {**sitting, "played": count}]
        (folder / "run.json").write_text(json.dumps(record))
        assert run(Request(resume=str(folder), out=folder.parent, quiet=True)) == code
    assert "  mend  write null there: " in capsys.readouterr().err
    sessions = read_run(folder.parent, 0).record["sessions"]
    assert [session["played"] for session in sessions] == [4, None, 1]


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ({"horizon": 2}, "horizon: was 1, is 2"),
        ({"seed": 7}, "seeds: was [0, 1, 2, 3], is [7, 8, 9, 10]"),
        ({"env_args": ("length=5",)}, "env.kwargs.length: was not there, is 5"),
        ({"max_episode_steps": 3}, "limits.steps: was 100000, is 3"),
        ({"success": "won"}, "success rule: was is_success or success, last value, is won, last value"),
        ({"metrics": ("speed",)}, "metrics: was [], is ['speed']"),
        ({"policy": "zero"}, "policy: was "),
        ({"env": "durable_toys:Hangs"}, "env.id: was "),
    ],
)
def test_another_evaluation_is_refused_field_by_field(
    tmp_path: Path, flags: dict[str, Any], field: str, capsys: Any
) -> None:
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=4), 2)
    rows = (folder / "episodes.jsonl").read_bytes()
    given = {"policy": DRAWS, "env": DIARY, "episodes": 4, **flags}
    assert resume(folder, **given)[0] == 2
    said = capsys.readouterr().err
    assert "this is not the evaluation that was begun in" in said
    assert field in said
    assert (folder / "episodes.jsonl").read_bytes() == rows


def test_long_values_are_named_where_they_differ() -> None:
    def spec(std: float, **others: object) -> dict[str, Any]:
        image = {"type": "image", "key": "camera", "resize": [224, 224], "normalize": True}
        pos = {"type": "state", "key": "pos", "normalize": {"mean": [0.0], "std": [std]}, **others}
        return {"route__model_spec": {"input": {"image": image, "pos": pos}}}

    before, now = record([0], **spec(2.5)), record([0], **spec(0.25))
    assert differences(before, now) == ["model_spec.input.pos.normalize.std: was [2.5], is [0.25]"]
    more = record([0], **spec(0.25, a=1, b=2, c=3, d=4))
    assert differences(before, more)[1:] == [
        "model_spec.input.pos.a: was not there, is 1",
        "model_spec.input.pos.b: was not there, is 2",
        "model_spec: and 2 more",
    ]


def test_a_policy_that_was_edited_is_refused_by_its_bytes(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "edited_policy.py"
    file.write_text("def predict(obs):\n    return 1\n")
    folder = cut(play(tmp_path, str(file), DIARY, episodes=4), 2)
    assert resume(folder)[0] == 0
    folder = cut(read_run(folder.parent, 0), 2)
    file.write_text("def predict(obs):\n    return 2\n")
    assert resume(folder)[0] == 2
    assert "policy: was " in capsys.readouterr().err


def test_another_policy_of_the_same_file_is_refused_by_its_name(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "two_policies.py"
    file.write_text(
        "class Good:\n    def predict(self, obs):\n        return 1\n"
        "class Bad:\n    def predict(self, obs):\n        return 2\n"
    )
    folder = cut(play(tmp_path, f"{file}:Good", DIARY, episodes=4), 2)
    assert resume(folder, policy=f"{file}:Bad")[0] == 2
    assert "policy.name: was Good, is Bad" in capsys.readouterr().err
    assert resume(folder, policy=f"{file}:Good")[0] == 0


ENV_FILE = """
from durable_toys import Diary


class Pays(Diary):
    bonus = 1
"""


@pytest.mark.parametrize("flags", [{}, {"num_envs": 2, "vectorization": "async"}, {"autoreset": "disabled"}])
def test_an_environment_whose_file_was_edited_is_refused(
    tmp_path: Path, flags: dict[str, Any], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "edited_shop.py"
    file.write_text(ENV_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "edited_shop", raising=False)
    played = play(tmp_path, DRAWS, "edited_shop:Pays", episodes=4, **flags)
    (known,) = played.record["env"]["files"]
    assert known["path"] == str(file)
    assert known["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    folder = cut(played, 2)
    file.write_text(file.read_text().replace("bonus = 1", "bonus = 5"))
    assert resume(folder)[0] == 2
    assert "env.files[edited_shop.py]: was " in capsys.readouterr().err


@pytest.mark.parametrize("who", ["policy", "environment"])
def test_a_module_that_was_edited_beside_them_is_refused(
    tmp_path: Path, who: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / f"project_{who}"
    package = project / f"made_for_{who}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "weights.py").write_text("W = 1\n")
    (package / "envs.py").write_text(
        "from durable_toys import Diary\nfrom .weights import W\nclass Weighed(Diary):\n    weight = W\n"
    )
    (project / "acts.py").write_text(
        f"from made_for_{who}.weights import W\ndef predict(obs):\n    return W\n"
        if who == "policy"
        else "def predict(obs):\n    return 1\n"
    )
    monkeypatch.syspath_prepend(project)
    env = DIARY if who == "policy" else f"made_for_{who}.envs:Weighed"
    folder = cut(play(tmp_path, str(project / "acts.py"), env, episodes=4), 2)
    assert resume(folder)[0] == 0
    folder = cut(read_run(folder.parent, 0), 2)
    (package / "weights.py").write_text("W = 2\n")
    assert resume(folder)[0] == 2
    assert f"module {package / 'weights.py'}: was " in capsys.readouterr().err


def test_a_module_that_is_imported_at_the_first_call_is_looked_at_on_disk(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "helps_late.py"
    helper.write_text("W = 1\n")
    file = tmp_path / "imports_late.py"
    file.write_text("def predict(obs):\n    from helps_late import W\n    return W\n")
    monkeypatch.syspath_prepend(tmp_path)
    folder = cut(play(tmp_path, str(file), DIARY, episodes=4), 2)
    for edited, code in (("W = 1\n", 0), ("W = 2\n", 2), (None, 2)):
        monkeypatch.delitem(sys.modules, "helps_late", raising=False)
        helper.write_text(edited) if edited else helper.unlink()
        assert resume(folder)[0] == code
        if code:
            assert f"module {helper}: was " in capsys.readouterr().err
        else:
            folder = cut(read_run(folder.parent, 0), 2)


def test_an_environment_that_is_named_otherwise_is_refused(tmp_path: Path, capsys: Any) -> None:
    folder = cut(play(tmp_path, "zero", "gymnasium.envs.classic_control:CartPole-v1", episodes=4), 2)
    assert resume(folder, env="CartPole-v1")[0] == 2
    assert "env.named: was gymnasium.envs.classic_control:CartPole-v1, is CartPole-v1" in capsys.readouterr().err


def test_what_is_installed_is_told_apart_by_its_version_alone(tmp_path: Path) -> None:
    assert play(tmp_path, "zero", "CartPole-v1", episodes=1).record["env"]["files"] == []


def test_weights_that_were_replaced_are_refused(tmp_path: Path, capsys: Any) -> None:
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"one")
    file = tmp_path / "edited_policy.py"
    file.write_text(
        "class Policy:\n"
        "    def __init__(self, weights):\n        self.weights = weights\n"
        "    def predict(self, obs):\n        return 1\n"
    )
    folder = cut(play(tmp_path, str(file), DIARY, episodes=4, policy_args=(f"weights={weights}",)), 2)
    weights.write_bytes(b"two")
    assert resume(folder)[0] == 2
    assert "weights[weights.bin]: was " in capsys.readouterr().err


def test_another_version_of_a_package_is_refused(tmp_path: Path, capsys: Any) -> None:
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=4), 2)
    record = json.loads((folder / "run.json").read_text())
    record["versions"]["gymnasium"] = "0.0.1"
    (folder / "run.json").write_text(json.dumps(record))
    assert resume(folder)[0] == 2
    assert "version of gymnasium: was 0.0.1, is " in capsys.readouterr().err


@pytest.mark.parametrize("flags", [{"num_envs": 2}, {"gates": ("errors == 0",)}, {"step_timeout": 9.0}])
def test_arrangement_and_bars_may_be_others(tmp_path: Path, flags: dict[str, Any]) -> None:
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=4), 2)
    assert resume(folder, **flags)[0] == 0


@pytest.mark.parametrize("given", [{}, {"env": DIARY}, {"policy": DRAWS, "env": DIARY}])
@pytest.mark.parametrize("rows", [2, 4])
def test_what_is_not_said_is_the_runs_own(tmp_path: Path, rows: int, given: dict[str, Any]) -> None:
    """A run of another number of episodes than the usual 50, with a gate that it misses."""
    flags = {"episodes": 4, "gates": ("mean_return >= 99",), "num_envs": 2, "env_args": ("length=9",)}
    whole = play(tmp_path, DRAWS, DIARY, **flags)
    assert whole.folder is not None
    folder = cut(whole, rows) if rows < 4 else whole.folder
    code, played = resume(folder, **given)
    assert (code, whole.code, len(played.rows)) == (1, 1, 4)
    assert played.record["route"] == whole.record["route"]
    assert told(played.summary)["gates"] == told(whole.summary)["gates"]


@pytest.mark.parametrize(
    ("flags", "code", "count"),
    [({"episodes": 7}, 0, 7), ({"episodes": 3}, 2, 4), ({"seeds": "0..5"}, 0, 6), ({"seed": 0}, 0, 4)],
)
def test_what_is_said_of_the_episodes_counts(tmp_path: Path, flags: dict[str, Any], code: int, count: int) -> None:
    played = play(tmp_path, DRAWS, DIARY, episodes=4)
    assert played.folder is not None
    ended, longer = resume(played.folder, policy=DRAWS, env=DIARY, **flags)
    assert (ended, len(longer.rows)) == (code, count)


@pytest.mark.parametrize(
    ("more", "gates", "count"),
    [
        ({}, ["mean_return >= 99"], 4),
        ({"gates": []}, [], 4),
        ({"episodes": 6, "gates": ["errors == 0"]}, ["errors == 0"], 6),
        ({"seeds": [0, 1, 2, 3, 9]}, ["mean_return >= 99"], 5),
        ({"seed": 0}, ["mean_return >= 99"], 4),
    ],
)
def test_what_a_route_file_does_not_say_is_the_runs_own(
    tmp_path: Path, more: dict[str, Any], gates: list[str], count: int
) -> None:
    route = tmp_path / "route.json"
    said = {"version": 1, "env": {"id": DIARY}, "policy": {"source": DRAWS}}
    route.write_text(json.dumps(said))
    typed = {"episodes": 4, "gates": ("mean_return >= 99",), "env_args": ("length=9",)}
    played = play(tmp_path, None, route=route, **typed)
    assert played.folder is not None
    route.write_text(json.dumps({**said, **more}))
    code, longer = resume(played.folder, route=route)
    assert (code, len(longer.rows)) == (1 if "mean_return >= 99" in gates else 0, count)
    assert longer.record["route"]["gates"] == gates
    assert longer.record["route"]["env"]["kwargs"] == {"length": 9}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"policy": "zero"}, ["policy: was ", "policy.params.gain: was 1, is not there"]),
        ({"env": "CartPole-v1"}, ["env.id: was ", "env.kwargs.length: was 9, is not there"]),
    ],
)
def test_another_policy_or_environment_is_not_given_the_arguments_of_the_runs(
    tmp_path: Path, given: dict[str, str], fields: list[str], capsys: Any
) -> None:
    file = tmp_path / "amplifies.py"
    file.write_text(
        "class Policy:\n    def __init__(self, gain):\n        self.gain = gain\n"
        "    def predict(self, obs):\n        return self.gain\n"
    )
    played = play(tmp_path, str(file), DIARY, episodes=2, policy_args=("gain=1",), env_args=("length=9",))
    assert played.folder is not None
    assert resume(played.folder, **{"policy": str(file), "env": DIARY, **given})[0] == 2
    said = capsys.readouterr().err
    assert [field for field in fields if field not in said] == []


def test_what_contradicts_a_route_file_is_placed_in_the_run(tmp_path: Path, capsys: Any) -> None:
    played = play(tmp_path, DRAWS, DIARY, episodes=4, vectorization="async", start_method="fork")
    assert played.folder is not None
    route = tmp_path / "route.json"
    route.write_text(json.dumps({"version": 1, "env": {"id": DIARY, "vectorization": "sync"}}))
    assert resume(played.folder, route=route)[0] == 2
    assert f"  at    {played.folder.name}/run.json:1: env.start_method" in capsys.readouterr().err


def test_auto_says_all_of_an_evaluation(tmp_path: Path) -> None:
    """It begins one where there is none, so what it does not say is what a new run takes."""
    out = tmp_path / "runs"
    given = {"policy": DRAWS, "env": DIARY, "quiet": True, "out": out}
    assert int(run(Request(**given, episodes=4, gates=("mean_return >= 99",)))) == 1
    cut(read_run(out, 1), 2)
    assert int(run(Request(**given, resume="auto"))) == 0
    played = read_run(out, 0)
    assert (len(played.rows), played.record["route"]["gates"]) == (50, [])


def test_a_run_is_extended(tmp_path: Path) -> None:
    played = play(tmp_path, DRAWS, DIARY, episodes=4)
    whole = play(tmp_path, DRAWS, DIARY, episodes=7)
    assert played.folder is not None
    code, longer = resume(played.folder, extend=3)
    assert code == 0
    assert unarranged(longer.rows) == unarranged(whole.rows)
    assert told(longer.summary) == told(whole.summary)
    assert longer.record["seeds"] == list(range(7))


@pytest.mark.parametrize(
    ("first", "flags", "words"),
    [
        ({}, {"extend": 0}, "0 episodes cannot be added"),
        ({}, {"extend": 2, "episodes": 6}, "--episodes and --extend contradict one another"),
        ({"seeds": "3,1,4"}, {"extend": 2}, "the run's seeds were listed one by one"),
        ({"until": "width<0.9", "episodes": 60}, {"extend": 2}, "the run ended by its stopping rule"),
    ],
)
def test_an_extension_that_cannot_be_meant_is_refused(
    tmp_path: Path, first: dict[str, Any], flags: dict[str, Any], words: str, capsys: Any
) -> None:
    played = play(tmp_path, DRAWS, DIARY, **{"episodes": None if "seeds" in first else 4, **first})
    assert played.folder is not None
    assert resume(played.folder, **flags)[0] == 2
    assert words in capsys.readouterr().err


def test_extension_of_no_run_is_refused(tmp_path: Path, capsys: Any) -> None:
    assert play(tmp_path, DRAWS, DIARY, extend=3).code == 2
    assert "it is not said which run gets more episodes" in capsys.readouterr().err
    assert play(tmp_path, DRAWS, DIARY, extend=3, resume="auto").code == 2
    assert "a finished run has to be named" in capsys.readouterr().err


def test_listed_seeds_go_on_where_the_old_ones_end(tmp_path: Path) -> None:
    played = play(tmp_path, DRAWS, DIARY, seeds="3,1")
    assert played.folder is not None
    code, longer = resume(played.folder, policy=DRAWS, env=DIARY, seeds="3,1,4,1")
    assert (code, longer.column("seed")) == (0, [3, 1, 4, 1])


def test_auto_goes_on_with_the_unfinished_run_of_the_same_evaluation(tmp_path: Path) -> None:
    out = tmp_path / "runs"

    def auto(**flags: Any) -> int:
        given = {"policy": DRAWS, "env": DIARY, "episodes": 4, "resume": "auto", "quiet": True, "out": out}
        return int(run(Request(**{**given, **flags})))

    assert auto() == 0
    folder = cut(read_run(out, 0), 2)
    (out / "not-a-run").mkdir()
    (out / "damaged").mkdir()
    (out / "damaged" / "run.json").write_text("{")
    assert auto(seed=50) == 0  # another evaluation is another run
    assert len(list(out.iterdir())) == 4
    assert auto() == 0
    assert len(list(out.iterdir())) == 4
    assert strict_loads((folder / "run.json").read_text())["status"] == "finished"
    assert auto() == 0  # nothing is unfinished: a new run
    assert len(list(out.iterdir())) == 5


def test_two_processes_on_one_run_are_refused(tmp_path: Path, capsys: Any) -> None:
    """K52."""
    folder = cut(play(tmp_path, DRAWS, DIARY, episodes=4), 2)
    held = RunStore.reopen(folder)
    try:
        assert resume(folder)[0] == 2
        assert f"another process is writing to {folder}" in capsys.readouterr().err
    finally:
        held.close()
    assert resume(folder)[0] == 0


def test_runs_without_seeds_of_their_own_are_refused(tmp_path: Path, capsys: Any) -> None:
    played = play(tmp_path, "zero", "CartPole-v1", episodes=4, num_envs=2, vectorization="native")
    assert played.folder is not None
    assert resume(played.folder)[0] == 2
    assert "have no seeds of their own" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_named(tmp_path: Path, capsys: Any) -> None:
    play(tmp_path, DRAWS, DIARY, episodes=1)
    assert play(tmp_path, None, resume="nowhere").code == 2
    assert "there is no run `nowhere`" in capsys.readouterr().err


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, capsys: Any) -> None:
    played = play(tmp_path, "idle", "toys:Alarm-v0", episodes=9, env_args=("at=3", "sends=[SIGINT]"))
    assert played.code == 130
    assert f"go on with: rlmesh eval --resume {played.folder}" in capsys.readouterr().out


def chaos(tmp_path: Path, kills: int, episodes: int) -> None:
    """Kill a run at random moments, go on each time, and hold the end against an undisturbed run."""
    chance = random.Random(kills)
    diary, out = tmp_path / "diary", tmp_path / "runs"
    command = [
        *(DRAWS, "--env", DIARY, "--env-arg", f"diary={diary}", "--env-arg", "nap=0.002", "-n", str(episodes)),
        *("--num-envs", "3", "--success", "is_success", "--resume", "auto", "--out", str(out), "--json"),
    ]
    counted: list[bytes] = []
    killed = 0
    while killed < kills:
        process = start(*command, cwd=tmp_path)
        try:
            process.wait(timeout=0.3 + chance.random() * 0.5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        folders = []
        for folder in sorted(out.iterdir()) if out.exists() else ():
            if (folder / "run.json").exists():
                folders.append(folder)
            else:  # killed between making the folder and saying what it is
                shutil.rmtree(folder)
        assert len(folders) <= 1, "a second run was begun"
        if folders:
            lines = (folders[0] / "episodes.jsonl").read_bytes().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith(b"\n")]
            assert whole[: len(counted)] == counted, "a counted row has changed"
            counted = whole
            (tmp_path / f"seen-{killed}").write_text(f"{len(diary.read_text().split())}\n")
        if process.returncode == 0:
            break
    assert killed >= kills // 2, "the run was over too soon to be disturbed"
    code, _, err = finish(start(*command, cwd=tmp_path))
    assert code == 0, err
    final = read_run(out, code)
    whole_run = play(
        tmp_path,
        DRAWS,
        DIARY,
        episodes=episodes,
        success="is_success",
        num_envs=3,
        env_args=(f"diary={tmp_path / 'other'}", "nap=0.0"),
    )
    assert sorted(final.written) == list(range(episodes))
    rows = unarranged(final.rows)
    assert rows == unarranged(whole_run.rows)
    assert told(final.summary) == told(whole_run.summary)
    _check_diary(diary, tmp_path, out)


def _check_diary(diary: Path, tmp_path: Path, out: Path) -> None:
    """No seed is reset again once its row has been counted."""
    resets = [int(seed) for seed in diary.read_text().split()]
    folder = next(out.iterdir())
    order = [strict_loads(line)["seed"] for line in (folder / "episodes.jsonl").read_text().splitlines()]
    last = {seed: max(at for at, other in enumerate(resets) if other == seed) for seed in order}
    # A row is written after its last reset and before the last reset of any row three lanes or more behind it.
    for at, seed in enumerate(order[:-6]):
        assert last[seed] < max(last[other] for other in order[at + 1 :]), seed


def test_three_kills_change_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    chaos(tmp_path, 3, 120)
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    chaos(tmp_path, 20, 700)


FAILS_LATE = """
class Policy:
    def predict(self, obs):
        if obs[1] >= 3:
            raise ValueError("no idea")
        return 1
"""


def test_a_policy_that_answered_before_may_fail_first_thing_in_the_next_sitting(tmp_path: Path) -> None:
    file = tmp_path / "fails_late.py"
    file.write_text(FAILS_LATE)
    whole = play(tmp_path, str(file), DIARY, episodes=6)
    assert whole.code == 4
    folder = cut(play(tmp_path, str(file), DIARY, episodes=6), 3)
    code, played = resume(folder)
    assert (code, played.record["status"]) == (4, "finished")
    assert unarranged(played.rows) == unarranged(whole.rows)
    assert told(played.summary) == told(whole.summary)


def test_what_an_earlier_sitting_advised_is_not_forgotten(tmp_path: Path) -> None:
    """Seed 0 leaves its observation space, the others do not; --strict counts cautions."""
    flags = {"episodes": 6, "strict": True}
    whole = play(tmp_path, DRAWS, "durable_toys:LeavesItsSpace", **flags)
    assert whole.code == 1
    folder = cut(play(tmp_path, DRAWS, "durable_toys:LeavesItsSpace", **flags), 3)
    code, played = resume(folder, strict=True)
    assert code == 1
    assert played.advisory("observation-outside") == whole.advisory("observation-outside")
    assert told(played.summary) == told(whole.summary)
    again, played = resume(folder, strict=True)
    assert (again, played.advisory("observation-outside")) == (1, whole.advisory("observation-outside"))


def test_a_stopped_run_goes_on_where_another_bar_wants_more(tmp_path: Path) -> None:
    """Episodes beyond the end were played, and are not played again."""
    flags = {"episodes": 120, "num_envs": 5, "until": "decided", "success": "return >= 1"}
    easy = play(tmp_path, DRAWS, DIARY, gates=("success_rate >= 0.3",), **flags)
    assert easy.record["stopped_at"] < 60
    assert easy.folder is not None
    before = sorted(easy.written)
    code, harder = resume(easy.folder, gates=("success_rate >= 0.93",))
    direct = play(tmp_path, DRAWS, DIARY, gates=("success_rate >= 0.93",), **flags)
    assert code == direct.code == 0
    assert sorted(harder.written) == sorted(set(harder.written))
    assert set(before) <= set(harder.written)
    assert harder.record["stopped_at"] == direct.record["stopped_at"] > easy.record["stopped_at"]
    assert harder.summary["success"] == direct.summary["success"]


def test_a_stopped_run_that_is_resumed_says_the_same(tmp_path: Path) -> None:
    flags = {"episodes": 120, "num_envs": 5, "until": "width<0.5", "success": "return >= 1"}
    played = play(tmp_path, DRAWS, DIARY, **flags)
    assert played.folder is not None
    _, again = resume(played.folder)
    queue = {name: count for name, count in played.summary["queue"].items() if name != "started"}
    rest = played.summary["queue"]["discarded"] - played.summary["in_flight"]
    assert again.summary["queue"]["discarded"] == rest
    assert again.summary["queue"]["counted"] == queue["counted"]
    assert again.record["stopped_at"] == played.record["stopped_at"]


def test_a_run_cannot_be_its_own_baseline(tmp_path: Path, capsys: Any) -> None:
    base = play(tmp_path, DRAWS, DIARY, episodes=8)
    out = tmp_path / "runs"
    code = int(run(Request(policy=DRAWS, env=DIARY, episodes=8, baseline=str(base.folder), out=out, quiet=True)))
    new = read_run(out, code)
    assert new.record["route"]["baseline"]["run"] == str(base.folder)
    folder = cut(new, 3)
    assert resume(folder)[0] == 0
    assert read_run(out, 0).summary["baseline"]["base"]["run"] == str(base.folder)
    assert resume(folder, baseline="latest")[0] == 2
    assert "it cannot be its own baseline" in capsys.readouterr().err


@pytest.mark.parametrize("folder_name", ["my.pyproj", ".pyenv"])
def test_a_policy_in_a_folder_that_looks_like_a_file_is_found_again(tmp_path: Path, folder_name: str) -> None:
    (tmp_path / folder_name).mkdir()
    file = tmp_path / folder_name / "acts.py"
    file.write_text("class Acts:\n    def predict(self, obs):\n        return 1\n")
    folder = cut(play(tmp_path, f"{file}:Acts", DIARY, episodes=4), 2)
    assert resume(folder)[0] == 0


def test_auto_passes_by_runs_without_seeds_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    given = {"policy": "zero", "env": "CartPole-v1", "episodes": 4, "num_envs": 2, "vectorization": "native"}
    request = Request(**given, resume="auto", quiet=True, out=out)
    assert int(run(request)) == 0
    cut(read_run(out, 0), 2)
    assert int(run(request)) == 0
    assert len(list(out.iterdir())) == 2


def of_actions(played: Played) -> list[dict[str, Any]]:
    return [one for one in played.record["advisories"] if one["code"].startswith("action-")]


def test_what_a_sitting_notes_itself_is_not_noted_twice(tmp_path: Path) -> None:
    """Two actions that the environment has no place for, each an advisory of one code."""
    roles = [{"role": "x/act", "dim": 1}, {"role": "x/grip", "dim": 1}, {"role": "x/lamp", "dim": 1}]
    spec = {"input": {"type": "state", "components": ["x/obs"]}, "output": {"components": roles}}
    file = tmp_path / "three_actions.py"
    file.write_text(
        f"import numpy as np\nclass Policy:\n    spec = {spec!r}\n"
        "    def predict_batch(self, obs):\n        return np.zeros((len(obs), 3))\n"
    )
    route = tmp_path / "route.json"
    document = {"version": 1, "env": {"id": "reuse_toys:Ramp"}, "policy": {"source": str(file)}, "env_tags": TAGS}
    route.write_text(json.dumps(document))
    played = play(tmp_path, None, route=route, episodes=4)
    before = of_actions(played)
    assert len({one["code"] for one in before}) < len(before)
    code, again = resume(cut(played, 2))
    assert (code, of_actions(again)) == (0, before)
    code, longer = resume(again.folder, extend=2)
    assert (code, of_actions(longer)) == (0, before)


def unreadable(played: Played) -> list[tuple[str, int]]:
    told = played.record["advisories"]
    return [(one["message"], one["count"]) for one in told if one["code"].endswith("-unreadable")]


def test_counts_of_reports_that_cannot_be_read_are_those_of_one_sitting(tmp_path: Path) -> None:
    metrics = ("is_success", "score", "words", "more words")
    whole = play(tmp_path, DRAWS, "durable_toys:Mumbles", episodes=6, metrics=metrics)
    known = unreadable(whole)
    assert [count for _, count in known] == [6, 6, 6]
    played = play(tmp_path, DRAWS, "durable_toys:Mumbles", episodes=4, metrics=metrics)
    code, again = resume(played.folder, extend=2)
    assert code == 0
    assert sorted(unreadable(again)) == sorted(known)


def test_nothing_that_could_be_verified_is_said_to_be_verified(tmp_path: Path) -> None:
    played = play(tmp_path, DRAWS, DIARY, episodes=3)
    assert played.folder is not None
    code, again = resume(played.folder, verify_lanes=2, strict=True)
    assert (code, again.summary["verification"]) == (1, None)
    assert again.advisory("lanes-not-verified") is not None
