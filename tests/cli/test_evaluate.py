"""Evaluate: one evaluation from policy and lanes to the run folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_toys import ZERO, play, policy_file

import rlmesh_cli
from rlmesh_cli.contracting import env_request
from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.route import Flags, Route, read_route


def read(folder: Path, name: str = "run.json") -> dict[str, Any]:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines()]
    return sorted(rows, key=lambda row: row["index"])


def unarranged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in ("lane", "seconds")} for row in rows]


def played(tmp_path: Path, policy: str = "zero", env: str = "cli_toys:Steps", **flags: Any) -> Path:
    """Return the folder of a run that was played to its end, whatever it scored."""
    code, folder = play(tmp_path, policy, env, **{"episodes": 3, "quiet": True, **flags})
    assert code in (0, 1, 4)
    assert folder is not None
    return folder


def test_record_says_what_was_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlmesh", "eval", "policy.py"])
    text = ZERO.replace("predict(self, obs)", "predict_chunk(self, obs)").replace("return 0", "return [0] * 5")
    policy = policy_file(tmp_path, text)
    folder = played(tmp_path, policy, num_envs=2, horizon=2, seed=7, success="won:any", metrics=("seed",))
    record = read(folder)
    assert (record["schema"], record["status"]) == ("rlmesh.run.v1", "finished")
    assert record["started_at"] <= record["finished_at"]
    assert (record["argv"], record["route_file"]) == (["eval", "policy.py"], None)
    assert (record["seeds"], record["seeded"]) == ([7, 8, 9], True)
    assert record["env"]["layers"] == ["Steps"]
    assert (record["env"]["lanes"], record["env"]["autoreset"]) == (2, "disabled")
    assert record["env"]["action_space"] == "Discrete(4)"
    assert record["policy"] == {
        "label": "policy",
        "file": {"path": policy, "bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()},
        "weights": [],
        "corner": "predict_chunk",
        "corners": ["predict_chunk"],
        "horizon": 2,
        "instances": "shared",
        "chunk_length": 5,
    }
    assert record["success_rule"] == "won, any step"
    assert record["route"]["metrics"] == ["seed"]
    assert record["limits"] == {"steps": 100_000, "seconds": None}
    assert [advisory["code"] for advisory in record["advisories"]] == ["no-time-limit"]
    assert record["versions"]["rlmesh-cli"] == rlmesh_cli.__version__
    assert record["host"]["cpus"] >= 1


def test_recorded_route_can_be_run_again_and_gives_the_same_rows(tmp_path):
    policy = policy_file(tmp_path, "class Policy:\n    def __init__(self, gain): pass\n" + ZERO[14:])
    flags = {
        "policy_args": ("gain=1e-3",),
        "seeds": "3,1,4",
        "num_envs": 2,
        "metrics": ("seed",),
        "gates": ("seed > 0",),
    }
    first = played(tmp_path, policy, env_args=("length=4", "name='x'"), episodes=None, **flags)
    path = tmp_path / "again.yaml"
    path.write_text(json.dumps(read(first)["route"]))
    code, second = play(tmp_path, None, None, route=path, quiet=True, out=tmp_path / "again")
    assert code == 0
    assert unarranged(rows_of(second)) == unarranged(rows_of(first))
    assert read(second)["route"] == read(first)["route"]
    assert read(second)["route_file"] == str(path)


def test_summary_adds_up_the_rows(tmp_path):
    folder = played(tmp_path, num_envs=2, gates=("mean_return > 0", "seed >= 0"))
    rows, summary = rows_of(folder), read(folder, "summary.json")
    # Episode with seed s pays (s + 1) + (s + 2) + (s + 3).
    assert [row["return"] for row in rows] == [6.0, 9.0, 12.0]
    assert (summary["mean_return"], summary["returns"]["n"]) == (9.0, 3)
    assert (summary["episodes"], summary["planned"], summary["errors"], summary["in_flight"]) == (3, 3, 0, 0)
    assert (summary["steps"], summary["policy_calls"]) == (9, 9)
    assert summary["success_rate"] == 1.0
    assert [verdict["passed"] for verdict in summary["gates"]] == [True, True]
    assert summary["run"] == str(folder)
    assert summary["status"] == "finished"


def test_metric_of_a_gate_is_kept_by_episode(tmp_path):
    rows = rows_of(played(tmp_path, metrics=("seed",), gates=("t >= 0", "seed >= 0", "errors == 0")))
    assert [row["metrics"] for row in rows] == [{"seed": float(seed), "t": None} for seed in range(3)]


@pytest.mark.parametrize(("num_envs", "episodes", "lanes"), [(8, 3, 3), (2, 3, 2), (1, 3, 1)])
def test_no_lane_is_made_that_would_have_no_episode(num_envs, episodes, lanes, tmp_path):
    assert read(played(tmp_path, num_envs=num_envs, episodes=episodes))["env"]["lanes"] == lanes


def test_environments_that_step_in_lockstep_keep_all_their_lanes():
    def lanes(**env: Any) -> int:
        flags = {("env", name): value for name, value in {"id": "X", **env}.items()}
        values = {**flags, ("policy", "source"): "zero", ("num_envs",): 8, ("episodes",): 3}
        return env_request(read_route(None, Flags(values=values))[0]).num_envs

    assert lanes() == lanes(vectorization="async") == 3
    assert lanes(vectorization="native") == lanes(autoreset="same_step") == 8


def test_run_is_recorded_as_running_while_it_runs(tmp_path):
    text = (
        "import json, pathlib\nclass Policy:\n    seen = []\n    def predict(self, obs):\n"
        f"        for path in pathlib.Path({str(tmp_path)!r}).glob('runs/*/run.json'):\n"
        "            self.seen.append(json.loads(path.read_text())['status'])\n"
        "        return len(set(self.seen)) if obs[0] else 0\n"
    )
    folder = played(tmp_path, policy_file(tmp_path, text), episodes=1)
    assert read(folder)["status"] == "finished"
    silent = played(tmp_path / "other", policy_file(tmp_path, ZERO), episodes=1)
    # The first call saw no folder, the later ones saw `running` and acted differently from `zero`.
    assert rows_of(folder)[0]["trace_hash"] != rows_of(silent)[0]["trace_hash"]


def test_weights_that_the_policy_names_are_hashed(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"weights")
    text = "class Policy:\n    def __init__(self, path): pass\n" + ZERO[14:]
    folder = played(tmp_path, policy_file(tmp_path, text), policy_args=(f"path={tmp_path / 'w.bin'}",))
    (record,) = read(folder)["policy"]["weights"]
    assert record["sha256"] == hashlib.sha256(b"weights").hexdigest()


def test_policy_that_keeps_its_weights_in_an_array_can_be_run(tmp_path):
    text = "import numpy as np\nclass Policy:\n    weights = np.zeros((4, 2))\n" + ZERO[14:]
    assert len(rows_of(played(tmp_path, policy_file(tmp_path, text)))) == 3


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_state_of_the_policys_checkout_is_recorded(tmp_path):
    policy = policy_file(tmp_path, ZERO)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "policy.py"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    state = read(played(tmp_path, policy))["git"]
    assert (state["commit"], state["dirty"]) == (commit, False)


def test_first_call_that_fails_leaves_no_process_behind(tmp_path, monkeypatch):
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *arguments, **keywords):
            started.append(self)
            super().__init__(*arguments, **keywords)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    code, _ = play(tmp_path, policy_file(tmp_path, ZERO.replace("return 0", "return 99")), episodes=1)
    still_running = [process for process in started if process.returncode is None]
    for process in still_running:
        process.communicate()
    assert (code, still_running) == (2, [])


@pytest.mark.parametrize("hook", ["close", "on_episode_end"])
def test_hook_that_raises_is_an_advisory(hook, tmp_path):
    text = f"class Policy:\n    def {hook}(self): raise OSError('too late')\n" + ZERO[14:]
    folder = played(tmp_path, policy_file(tmp_path, text))
    for name in ("run.json", "summary.json"):
        messages = [advisory["message"] for advisory in read(folder, name)["advisories"]]
        assert any("too late" in message for message in messages), messages


def test_parameters_are_recorded_as_they_were_given(tmp_path):
    text = "class Policy:\n    def __init__(self, log):\n        log.append('mine')\n" + ZERO[14:]
    folder = played(tmp_path, policy_file(tmp_path, text), policy_args=("log=[given]",))
    assert read(folder)["route"]["policy"]["params"] == {"log": ["given"]}


def test_argument_that_is_no_unicode_can_be_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlmesh", "eval", "caf\udce9"])
    assert len(read(played(tmp_path))["argv"]) == 2


def test_value_that_is_not_finite_is_flagged_in_the_record(tmp_path):
    record = read(played(tmp_path, env_args=("gravity=.nan",)))
    assert record["route"]["env"]["kwargs"] == {"gravity": None}
    assert record["nonfinite"] == ["route.env.kwargs.gravity"]


def test_returns_that_no_float_can_hold_are_no_fault_of_ours(tmp_path):
    code, folder = play(tmp_path, "zero", "cli_toys:Rich", episodes=2, quiet=True)
    assert code != 70
    assert len(rows_of(folder)) == 2


class StopsAtOnce:
    def watch(self, stop) -> None:
        stop()


def route_of_steps(**values: Any) -> Route:
    given = {("env", "id"): "cli_toys:Steps", ("policy", "source"): "zero"}
    return read_route(None, Flags(values={**given, **{(name,): value for name, value in values.items()}}))[0]


def test_run_that_is_stopped_says_what_is_missing(tmp_path):
    route = route_of_steps(episodes=4, num_envs=2)
    made = evaluate(route, out=tmp_path, watcher=SilentWatcher(), stopper=StopsAtOnce(), source={})
    assert (made.status, made.rows, made.in_flight) == ("interrupted", [], 2)
    assert (made.summary.episodes, made.summary.planned) == (0, 4)
    assert read(made.folder)["status"] == read(made.folder, "summary.json")["status"] == "interrupted"


def test_watcher_is_told_the_plan_and_the_end(tmp_path):
    told: list[Any] = []

    class Watcher:
        def begin(self, planned: int) -> None:
            told.append(planned)

        def tick(self, tally: Any, done: int, look: Any) -> None:
            told.append((tally, done))

        def end(self) -> None:
            told.append("end")

    class NeverStops:
        def watch(self, stop) -> None: ...

    evaluate(route_of_steps(episodes=2), out=tmp_path, watcher=Watcher(), stopper=NeverStops(), source={})
    assert told[0] == 2
    assert told[-1] == "end"


class Looks:
    """Looks at every tick, and keeps what there is to be seen."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def begin(self, planned: int) -> None: ...

    def tick(self, tally: Any, done: int, look: Any) -> None:
        self.seen.append((done, look()))

    def end(self) -> None: ...

    def watch(self, stop) -> None: ...


def test_watcher_that_looks_sees_what_each_lane_plays(tmp_path):
    looks = Looks()
    evaluate(route_of_steps(episodes=5, num_envs=2), out=tmp_path, watcher=looks, stopper=looks, source={})
    done, glance = looks.seen[0]
    assert done == 0
    assert glance.title == "zero on cli_toys:Steps"
    # Two lanes stand after the first step, which is the first moment at which anything can be seen.
    assert glance.company.lanes == [(0, 0, 1), (1, 1, 1)]
    assert glance.company.workers == ()


def test_watcher_that_looks_sees_what_workers_hold(tmp_path):
    looks = Looks()
    route = route_of_steps(episodes=40, workers=2)
    evaluate(route, out=tmp_path, watcher=looks, stopper=looks, source={})
    done, glance = looks.seen[0]
    assert glance.company.lanes == ()
    workers = glance.company.workers
    assert [worker for worker, _, _ in workers] == [0, 1]
    assert not any(is_built for *_, is_built in workers)
    assert 0 < sum(held for _, held, _ in workers) <= 40 - done


def test_resets_that_fail_before_a_policy_that_fails_leave_no_folder(tmp_path):
    """The policy's first call is asked for the lane whose reset went well."""
    policy = policy_file(tmp_path, ZERO.replace("return 0", "raise ValueError('no')"))
    code, folder = play(tmp_path, policy, "cli_toys:Unready", episodes=2, num_envs=2, quiet=True)
    assert (code, folder) == (2, None)
    code, folder = play(tmp_path, "zero", "cli_toys:Unready", episodes=3, num_envs=2, quiet=True)
    assert code == 4
    assert [row["end"] for row in rows_of(folder)] == ["error", "terminated", "terminated"]
    code, folder = play(tmp_path, "zero", "cli_toys:Unready", episodes=1, quiet=True, out=tmp_path / "one")
    assert (code, [row["end"] for row in rows_of(folder)]) == (4, ["error"])


@pytest.mark.parametrize("twice", [False, True])
def test_interrupt_in_the_policys_close_keeps_the_rows_and_names_the_folder(tmp_path, twice, capfd):
    text = (
        "import signal, os\n"
        + ZERO
        + (
            "\n    def close(self):\n        os.kill(os.getpid(), signal.SIGINT)\n"
            + ("        os.kill(os.getpid(), signal.SIGINT)\n" if twice else "")
        )
    )
    code, folder = play(tmp_path, policy_file(tmp_path, text), episodes=2, quiet=True)
    assert code == (130 if twice else 0)
    assert folder is not None
    assert len(rows_of(folder)) == 2
    assert read(folder)["status"] == ("interrupted" if twice else "finished")
    assert "nothing was written" not in capfd.readouterr().err
