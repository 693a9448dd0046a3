"""`--workers`: several processes play, and nothing but `lane` and `seconds` tells it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Played, finish, play, policy, read_run, start, unarranged

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal

DRAWS = "durable_toys:Draws"
DIARY = "durable_toys:Diary"


@pytest.fixture(autouse=True)
def _no_orphans() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def both(tmp_path: Path, *named: Any, workers: int = 2, **flags: Any) -> tuple[Played, Played]:
    """Play a route without workers and with them."""
    return play(tmp_path, *named, **flags), play(tmp_path, *named, workers=workers, **flags)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    ("source", "env"),
    [(DRAWS, DIARY), ("ragged:Chunks", "Ragged-v0"), ("ragged:Faulty", "Ragged-v0"), ("random", "CartPole-v1")],
)
def test_number_of_workers_changes_no_row(tmp_path: Path, source: str, env: str, lanes: int, workers: int) -> None:
    alone, shared = both(tmp_path, source, env, workers=workers, episodes=17, num_envs=lanes, horizon=2)
    assert shared.code == alone.code
    assert unarranged(shared.rows) == unarranged(alone.rows)
    assert sorted(shared.written) == list(range(17))
    assert set(shared.column("lane")) <= set(range(lanes * workers))
    assert max(shared.column("lane")) >= lanes
    other = ("run", "time", "advisories", "probe", "instances")
    known = {key: value for key, value in shared.summary.items() if key not in other}
    assert {key: alone.summary[key] for key in known} == known
    assert shared.record["actuators"] == alone.record["actuators"]
    assert shared.record["policy"]["chunk_length"] == alone.record["policy"]["chunk_length"]
    assert (shared.summary["time"]["workers"], shared.summary["time"]["lanes"]) == (workers, lanes)
    assert shared.summary["time"]["steps"] == alone.summary["time"]["steps"]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_no_start_method_changes_a_row(tmp_path: Path, method: str) -> None:
    alone, shared = (
        play(tmp_path, DRAWS, DIARY, episodes=6),
        play(tmp_path, DRAWS, DIARY, episodes=6, workers=2, start_method=method),
    )
    assert shared.code == 0
    assert unarranged(shared.rows) == unarranged(alone.rows)


def test_workers_have_environments_in_processes_of_their_own(tmp_path: Path) -> None:
    alone, shared = both(tmp_path, DRAWS, DIARY, episodes=8, num_envs=2, vectorization="async")
    assert unarranged(shared.rows) == unarranged(alone.rows)


def test_counts_of_advisories_are_those_of_one_process(tmp_path: Path) -> None:
    flags = {"episodes": 12, "num_envs": 2, "horizon": 2}
    alone, shared = both(tmp_path, "idle", "toys:Fragile-v0", **flags)
    own = ("workers", "workers-exceed-cores")
    told = [one for one in shared.record["advisories"] if one["code"] not in own]
    assert told == alone.record["advisories"]
    said = shared.advisory("workers")
    assert said is not None
    assert said["message"].startswith("2 workers play, each with a policy and 2 lanes of its own, and ")


def test_more_workers_than_episodes_are_fewer(tmp_path: Path) -> None:
    played = play(tmp_path, DRAWS, DIARY, episodes=2, num_envs=4, workers=5)
    assert (played.code, played.summary["time"]["workers"], played.summary["time"]["lanes"]) == (0, 2, 1)


def test_more_workers_than_cores_are_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("rlmesh_cli.shards.crew.core_count", lambda: 1)
    played = play(tmp_path, DRAWS, DIARY, episodes=4, workers=2)
    assert (played.code, (played.advisory("workers-exceed-cores") or {})["severity"]) == (0, "info")


def test_memory_of_all_policies_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("rlmesh_cli.shards.merging.held_bytes", lambda policy: 3_000_000_000)
    played = play(tmp_path, DRAWS, DIARY, episodes=4, workers=2)
    said = played.advisory("workers-memory")
    assert said is not None
    assert said["message"] == "2 workers hold 3.00 GB of weights each, 6.00 GB together"


@pytest.mark.parametrize("count", [0, -1])
def test_no_workers_are_refused(tmp_path: Path, count: int, capsys: Any) -> None:
    assert play(tmp_path, DRAWS, DIARY, workers=count).code == 2
    assert "--workers" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [{"vectorization": "native"}, {"autoreset": "next_step"}])
def test_environments_without_seeds_are_refused(tmp_path: Path, flags: dict[str, Any], capsys: Any) -> None:
    played = play(tmp_path, "zero", "CartPole-v1", episodes=4, num_envs=2, workers=2, **flags)
    assert (played.code, played.folder) == (2, None)
    said = capsys.readouterr().err
    assert "single episodes cannot be seeded" in said
    assert "use --workers 1" in said


def test_a_policy_that_fails_at_once_is_one_message(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "broken_policy.py"
    file.write_text("def predict(obs):\n    raise ValueError('no')\n")
    alone, shared = both(tmp_path, str(file), DIARY, episodes=6)
    assert (alone.code, shared.code, shared.folder) == (2, 2, None)
    one, other = capsys.readouterr().err.strip().split("rlmesh: ")[1:]
    assert one.strip() == other.strip()


MOODY = """
import multiprocessing, os, pathlib, time

FOLDER = pathlib.Path(__file__).parent


class Policy:
    def predict(self, obs):
        if multiprocessing.current_process().name != "worker-0":
            return 1
        {mood}
"""


def moody(tmp_path: Path, mood: str) -> str:
    """Return a policy whose first worker is unlike the others."""
    file = tmp_path / "moody_policy.py"
    file.write_text(MOODY.format(mood=mood))
    return str(file)


DIES_THEN_RAISES = """
        if (FOLDER / "mark").exists():
            raise ValueError("the second time it only raises")
        (FOLDER / "mark").touch()
        os.kill(os.getpid(), 9)
"""


def test_a_first_worker_that_dies_and_then_fails_ends_the_run(tmp_path: Path, capsys: Any) -> None:
    source = moody(tmp_path, DIES_THEN_RAISES)
    played = play(tmp_path, source, DIARY, episodes=12, workers=2, is_probed=False)
    assert played.code == 2
    said = capsys.readouterr().err
    assert "the policy failed on its very first call (ep-00000" in said
    assert "ValueError: the second time it only raises" in said


def test_what_others_finish_is_on_disk_while_the_first_worker_thinks(tmp_path: Path) -> None:
    """Invariant 5; what ends the first worker's call is that the others' rows are there."""
    rows = f"{tmp_path}/runs-*/*/episodes.jsonl"
    mood = f"""
        import glob
        until = time.monotonic() + 60
        while not any(os.path.getsize(file) for file in glob.glob({rows!r})):
            assert time.monotonic() < until
            time.sleep(0.05)
        return 1
"""
    source = moody(tmp_path, mood)
    played = play(tmp_path, source, DIARY, episodes=6, workers=2, is_probed=False)
    assert played.code == 0
    assert sorted(played.written) == list(range(6))
    assert played.summary["errors"] == 0


PANICS = """
class Panic(BaseException):
    pass


class Policy:
    def predict(self, obs, context):
        if context.index == 3 and context.step == 5:
            raise {name}("it came to this")
        return 1
"""


@pytest.mark.parametrize("name", ["Panic", "SystemExit"])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_no_exception_to_python_is_a_fault_of_its_episode(tmp_path: Path, name: str, workers: int) -> None:
    file = tmp_path / "panics.py"
    file.write_text(PANICS.format(name=name))
    played = play(tmp_path, str(file), DIARY, episodes=6, workers=workers)
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert list(errors) == [3]
    assert (errors[3]["phase"], errors[3]["step"]) == ("policy", 5)
    assert errors[3]["message"].startswith(f"{name}: it came to this")


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "GeneratorExit"])
def test_an_interrupt_in_a_worker_is_a_fault_for_workers_hear_no_ctrl_c(tmp_path: Path, name: str) -> None:
    file = tmp_path / "panics.py"
    file.write_text(PANICS.format(name=name))
    played = play(tmp_path, str(file), DIARY, episodes=6, workers=2)
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert list(errors) == [3]
    assert errors[3]["message"].startswith(f"{name}: it came to this")


def test_a_run_whose_workers_cannot_be_built_is_left_as_it_was(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "shy_policy.py"
    file.write_text(
        "import multiprocessing\n"
        "class Policy:\n"
        "    def __init__(self):\n"
        "        if multiprocessing.parent_process(): raise OSError('one at a time')\n"
        "    def predict(self, obs):\n        return 1\n"
    )
    played = play(tmp_path, str(file), DIARY, episodes=3)
    assert played.folder is not None
    before = {path.name: path.read_bytes() for path in played.folder.iterdir()}
    flags = {"resume": str(played.folder), "extend": 3, "workers": 2, "out": played.folder.parent, "quiet": True}
    assert run(Request(**flags)) == 2
    assert {path.name: path.read_bytes() for path in played.folder.iterdir()} == before
    assert run(Request(**{**flags, "workers": 1})) == 0
    assert len(read_run(played.folder.parent, 0).rows) == 6


def test_a_policy_that_cannot_be_built_in_a_worker_is_one_message(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "shy_policy.py"
    file.write_text(
        "import multiprocessing\n"
        "class Policy:\n"
        "    def __init__(self):\n"
        "        if multiprocessing.parent_process(): raise OSError('one at a time')\n"
        "    def predict(self, obs):\n        return 1\n"
    )
    played = play(tmp_path, str(file), DIARY, episodes=6, workers=2)
    assert (played.code, played.folder) == (2, None)
    assert "Policy cannot be built: OSError: one at a time" in capsys.readouterr().err


def test_a_worker_that_is_killed_while_it_builds_is_one_message(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "greedy_policy.py"
    file.write_text(
        "import multiprocessing, os\n"
        "class Policy:\n"
        "    def __init__(self):\n"
        "        if multiprocessing.parent_process(): os.kill(os.getpid(), 9)\n"
        "    def predict(self, obs):\n        return 1\n"
    )
    played = play(tmp_path, str(file), DIARY, episodes=6, workers=2)
    assert (played.code, played.folder) == (2, None)
    said = capsys.readouterr().err
    assert "exit code -9: it was killed, as a system does that runs out of memory" in said
    assert "use fewer workers" in said


def test_what_cannot_be_sent_is_one_message(tmp_path: Path, capsys: Any) -> None:
    """A route that was made in Python may hold anything."""
    env = EnvRoute(id=DIARY, kwargs={"diary": lambda: 0})
    route = Route(env=env, policy=PolicyRoute(source=policy("idle")), episodes=4, workers=2)
    with pytest.raises(HarnessError, match="the route cannot be sent to a worker") as caught:
        evaluate(route, out=tmp_path, watcher=SilentWatcher(), stopper=StopOnSignal(), source={})
    assert "--workers 1" in caught.value.mend


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """Its environment ends the process once; what it had in hand is played by another."""
    mark = tmp_path / "mark"
    mark.mkdir()
    arguments = (f"mark={mark}", "dies=true")
    flags = {"episodes": 12, "num_envs": 2, "workers": 2, "env_args": arguments}
    played = play(tmp_path, DRAWS, "durable_toys:Stumbles", **flags)
    sound = play(tmp_path, DRAWS, DIARY, episodes=12)
    assert played.code == 0
    assert played.column("trace_hash") == sound.column("trace_hash")
    assert played.rows[2]["attempts"] == 1
    said = played.advisory("worker-died")
    assert said is not None
    assert (said["severity"], said["count"]) == ("info", 1)


@pytest.mark.parametrize("lanes", [1, 3])
def test_an_episode_at_which_two_workers_die_is_errored_alone(tmp_path: Path, lanes: int) -> None:
    played = play(tmp_path, DRAWS, "durable_toys:Dies", episodes=12, num_envs=lanes, workers=2)
    sound = play(tmp_path, DRAWS, DIARY, episodes=12)
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert list(errors) == [4]
    assert (errors[4]["phase"], errors[4]["step"]) == ("worker", None)
    assert errors[4]["message"] == "the worker died, twice at this episode (exit code 9)"
    kept = [index for index in range(12) if index != 4]
    assert [played.rows[at]["trace_hash"] for at in kept] == [sound.rows[at]["trace_hash"] for at in kept]
    assert sorted(played.written) == list(range(12))


def test_what_ended_its_worker_is_not_played_here_afterwards(tmp_path: Path) -> None:
    """Seed 4 ends whatever process it is played in, also by a built-in policy."""
    flags = {"episodes": 9, "workers": 2, "verify_lanes": 9, "controls": "zero"}
    played = play(tmp_path, DRAWS, "durable_toys:Dies", **flags)
    assert played.code == 4
    assert (played.summary["verification"]["verdict"], played.summary["verification"]["episodes"]) == (
        "invariant",
        8,
    )
    said = played.advisory("fewer-verified")
    assert said is not None
    assert said["message"].startswith("8 of 9 chosen episodes were verified")
    (control,) = played.summary["controls"]
    assert control["returns"]["pairs"] == 8


@pytest.mark.parametrize(
    "flags", [{"until": "width<0.5"}, {"until": "decided", "gates": ("success_rate >= 0.3",)}]
)
def test_a_run_stops_early_after_the_same_episode(tmp_path: Path, flags: dict[str, Any]) -> None:
    alone, shared = both(tmp_path, DRAWS, DIARY, episodes=300, num_envs=2, success="is_success", **flags)
    assert shared.code == alone.code
    assert shared.record["stopped_at"] == alone.record["stopped_at"] is not None
    count = alone.record["stopped_at"]
    assert unarranged(shared.rows)[:count] == unarranged(alone.rows)[:count]
    assert shared.summary["success"] == alone.summary["success"]


def test_too_many_errors_stop_the_workers(tmp_path: Path) -> None:
    played = play(tmp_path, "idle", "toys:Fragile-v0", episodes=400, seed=3, max_errors=0, workers=2)
    assert (played.code, played.record["status"]) == (4, "stopped")
    assert played.summary["episodes"] < 400


def test_workers_go_on_with_a_run_and_judge_it(tmp_path: Path) -> None:
    base, whole = play(tmp_path, DRAWS, DIARY, episodes=9), play(tmp_path, DRAWS, DIARY, episodes=9)
    cut = play(tmp_path, DRAWS, DIARY, episodes=4)
    assert base.folder is not None
    assert cut.folder is not None
    flags = {"workers": 2, "extend": 5, "baseline": str(base.folder), "controls": "zero", "verify_lanes": 3}
    junit = tmp_path / "junit.xml"
    code = int(run(Request(resume=str(cut.folder), out=cut.out, quiet=True, junit=junit, **flags)))
    played = read_run(cut.out, code)
    assert code == 0
    assert unarranged(played.rows) == unarranged(whole.rows)
    assert played.summary["verification"]["verdict"] == "invariant"
    assert played.summary["verification"]["episodes"] == 3
    assert [one["name"] for one in played.summary["controls"]] == ["zero"]
    assert played.summary["baseline"]["claim"]["verdict"] == "not_worse"
    assert [session["workers"] for session in played.record["sessions"]] == [1, 2]
    assert "<testsuites" in junit.read_text()


def test_a_probe_finds_what_workers_would_mix_up(tmp_path: Path) -> None:
    """One lane in each worker is several lanes too."""
    file = tmp_path / "counting_policy.py"
    file.write_text(
        "class Policy:\n"
        "    def __init__(self):\n        self.count = 0\n"
        "    def predict(self, obs):\n        self.count += 1\n        return self.count % 8\n"
    )
    played = play(tmp_path, str(file), DIARY, episodes=6, workers=2, instances="shared")
    assert (played.code, played.folder) == (2, None)
    alone, shared = both(tmp_path, str(file), DIARY, episodes=6, instances="episode")
    assert unarranged(shared.rows) == unarranged(alone.rows)


def alarm(tmp_path: Path, *others: str) -> Any:
    """Start a run whose environment signals whoever should stop it."""
    command = [policy("idle"), "--env", "toys:Alarm-v0", "-n", "400", "--workers", "2", "--env-arg", "at=60"]
    return start(*command, *others, "--out", "results", cwd=tmp_path)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("to", ["parent", "group"])
def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path, to: str, name: str) -> None:
    process = alarm(tmp_path, "--env-arg", f"sends=[{name}]", "--env-arg", f"to={to}")
    code, out, err = finish(process)
    assert code == 130
    played = read_run(tmp_path / "results", code)
    assert played.record["status"] == "interrupted"
    assert len(played.rows) >= 40
    assert f"interrupted: {len(played.rows)} of 400 episodes are saved".encode() in out
    assert [line for line in err.splitlines() if line] == [
        b"rlmesh: stopping after this step; press Ctrl-C again to stop at once"
    ]
    with pytest.raises(ProcessLookupError, match="No such process"):
        os.killpg(process.pid, 0)


def begun(tmp_path: Path, *others: str) -> tuple[Any, Path]:
    """Start a slow run with two workers, and wait for its first rows."""
    out = tmp_path / "results"
    command = [DRAWS, "--env", DIARY, "--env-arg", "nap=0.005", "-n", "80", "--workers", "2", "--out", str(out)]
    process = start(*command, *others, cwd=tmp_path)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if any(path.stat().st_size for path in out.glob("*/episodes.jsonl")):
            break
        time.sleep(0.02)
    return process, out


def processes_of(group: int) -> list[int]:
    """Return what runs in a process group and is no zombie."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, owner = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if int(owner) == group and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_end_with_a_killed_parent(tmp_path: Path, method: str) -> None:
    process, out = begun(tmp_path, "--start-method", method)
    process.kill()
    process.communicate()
    until = time.monotonic() + 5
    while processes_of(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_of(process.pid) == []
    rows = len(read_run(out, 130).rows)
    assert rows >= 1
    code = int(run(Request(resume=str(next(out.iterdir())), out=out, quiet=True)))
    sound = play(tmp_path, DRAWS, DIARY, episodes=80)
    assert (code, unarranged(read_run(out, code).rows)) == (0, unarranged(sound.rows))


def test_a_worker_that_somebody_kills_is_replaced(tmp_path: Path) -> None:
    process, out = begun(tmp_path)
    victims = [number for number in processes_of(process.pid) if number != process.pid]
    os.kill(max(victims), signal.SIGKILL)
    code, said, err = finish(process)
    assert code == 0, err
    assert b"exit code -9: it was killed" in said.replace(b"\n", b" ")
    rows = unarranged(read_run(out, code).rows)
    assert rows == unarranged(play(tmp_path, DRAWS, DIARY, episodes=80).rows)


def test_two_signals_do_not_wait(tmp_path: Path) -> None:
    process, out = begun(tmp_path)
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGINT)
    code, _, _ = finish(process, seconds=20)
    assert code == 130
    assert read_run(out, code).record["status"] == "interrupted"
    assert processes_of(process.pid) == []
