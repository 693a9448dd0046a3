"""Policy files that define, print, move, seed or fail: what they do to the process is not kept."""

from __future__ import annotations

import logging
import os
import random
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import rich.style  # noqa: F401 - the first import of it draws a global random number
from running import finish, play, policy, read_run, start, strict_loads, unarranged

from rlmesh_cli.evaluation_command import Request, run


def loaded(name: str) -> list[str]:
    """Return the modules that were made from a file of this name."""
    return [module for module in sys.modules if module.startswith("rlmesh_policy_") and name in module]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_a_dataclass_in_the_policy_file_finds_its_module(tmp_path: Path, vectorization: str) -> None:
    """K46. Without it in `sys.modules`: 'NoneType' object has no attribute '__dict__'."""
    played = play(tmp_path, "configured", "toys:Echo-v0", episodes=2, vectorization=vectorization)
    assert played.column("return") == [5.0, 7.0]
    assert len(loaded("configured")) == 1


def test_a_file_that_raises_leaves_no_module_and_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """K46 and K52: no result, no exit code 0."""
    before = set(sys.modules)
    played = play(tmp_path, "broken", "toys:Echo-v0")
    assert played.code == 2
    assert not played.out.exists()
    assert loaded("broken") == []
    assert set(sys.modules) == before
    message = capsys.readouterr().err
    assert "RuntimeError: weights.bin is missing" in message
    assert "broken.py:3" in message
    assert "Traceback" not in message


def test_a_file_is_not_run_as_a_script_and_a_script_can_be_mended(tmp_path: Path) -> None:
    """K47. What failed once is loaded anew the next time."""
    path = tmp_path / "draft.py"
    path.write_text("def predict(obs):\n    return 0\nif __name__ == '__main__':\n    1 / 0\nraise ValueError\n")
    assert play(tmp_path, str(path), "toys:Coins-v0", episodes=1).code == 2
    path.write_text(path.read_text().replace("raise ValueError\n", "# mended, and no longer of the same size\n"))
    assert play(tmp_path, str(path), "toys:Coins-v0", episodes=1).code == 0


def test_a_bad_guest_changes_nothing_in_this_process(tmp_path: Path) -> None:
    """K47."""
    random.seed(5)
    np.random.seed(5)
    expected = (random.Random(5).random(), np.random.RandomState(5).random_sample())
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        folder, arguments = os.getcwd(), list(sys.argv)
        played = play(tmp_path, "guest", "toys:TwoPaces-v0", episodes=4)
        assert played.code == 0
        assert (os.getcwd(), sys.argv) == (folder, arguments)
        assert logging.root.manager.disable == logging.NOTSET
        assert handler in logging.getLogger().handlers
        assert (random.random(), np.random.random_sample()) == expected
    finally:
        logging.getLogger().removeHandler(handler)
    idle = play(tmp_path, "idle", "toys:TwoPaces-v0", episodes=4)
    assert unarranged(played.rows) == unarranged(idle.rows)


def test_a_bad_guest_s_results_stay_where_the_command_was_given_and_stdout_is_json(tmp_path: Path) -> None:
    """K47. It prints while it is loaded and at every call, and so does C code underneath it."""
    arguments = ("--env", "toys:TwoPaces-v0", "-n", "4", "--out", "results", "--json")
    code, out, err = finish(start(policy("guest"), *arguments, cwd=tmp_path))
    assert (code, err.count(b"Traceback")) == (0, 0)
    assert out.count(b"\n") == 1
    document = strict_loads(out.decode())
    played = read_run(tmp_path / "results", code)
    assert played.folder is not None
    assert Path(document["run"]) == played.folder.resolve()
    assert document == {**played.summary, "exit_code": 0}
    assert played.record["argv"] == ["eval", policy("guest"), *arguments]
    for words in (b"reading weights", b"so does the C library", b"thinking"):
        assert words in err
    idle = play(tmp_path, "idle", "toys:TwoPaces-v0", episodes=4)
    assert unarranged(played.rows) == unarranged(idle.rows)


@pytest.mark.parametrize("moment", ["load", "build", "predict", "reset"])
def test_a_guest_that_leaves_the_process_does_not_end_the_evaluation_with_success(
    tmp_path: Path, moment: str
) -> None:
    """K52. `sys.exit(0)` in a policy is not a finished run."""
    lines = dict.fromkeys(("load", "build", "predict", "reset"), "pass") | {moment: "sys.exit(0)"}
    path = tmp_path / "leaver.py"
    path.write_text(
        f"import sys\n{lines['load']}\n"
        f"class Policy:\n    def __init__(self):\n        {lines['build']}\n"
        f"    def reset(self):\n        {lines['reset']}\n"
        f"    def predict(self, obs):\n        {lines['predict']}\n        return 0\n"
    )
    played = play(tmp_path, str(path), "toys:Coins-v0", episodes=2)
    assert played.code == 2
    assert not played.out.exists()


def test_an_environment_that_leaves_the_process_costs_its_episode(tmp_path: Path) -> None:
    """K52."""
    path = tmp_path / "leaving_toy.py"
    path.write_text(
        "import sys\nimport gymnasium as gym\nimport toys\n"
        "class LeavingToy(toys.Coins):\n    def pay(self, action):\n"
        "        return sys.exit(0) if self.seed == 1 else super().pay(action)\n"
        "if 'LeavingToy-v0' not in gym.registry:\n    gym.register('LeavingToy-v0', entry_point=LeavingToy)\n"
        "def predict(obs):\n    return 0\n"
    )
    played = play(tmp_path, str(path), "LeavingToy-v0", episodes=3)
    assert played.code == 4
    assert played.column("end") == ["terminated", "error", "terminated"]


@pytest.mark.parametrize("lasts", [0.5, 60])
def test_a_thread_that_a_policy_leaves_running_keeps_the_process_no_longer_than_it_must(
    tmp_path: Path, lasts: float
) -> None:
    """Plain Python waits for it, however long that takes."""
    file = tmp_path / "threads.py"
    file.write_text(
        "import threading, time\n"
        "class Policy:\n"
        "    def __init__(self):\n"
        f"        threading.Thread(target=time.sleep, args=({lasts},), name='feeder').start()\n"
        "    def predict(self, obs):\n        return 0\n"
    )
    began = time.monotonic()
    arguments = ("--env", "toys:Coins-v0", "--episodes", "2", "--json")
    code, out, err = finish(start(str(file), *arguments, cwd=tmp_path))
    assert code == 0
    assert strict_loads(out)["episodes"] == 2
    assert time.monotonic() - began < 30
    assert ("not waiting for threads of policy or environment that go on: feeder" in err.decode()) is (lasts > 30)


def test_a_policy_that_changes_the_folder_while_it_acts_changes_no_path(tmp_path: Path) -> None:
    file = tmp_path / "wanders.py"
    file.write_text("import os\ndef predict(obs):\n    os.chdir('/')\n    return 0\n")
    before = Path.cwd()
    played = play(tmp_path, str(file), "toys:Coins-v0", episodes=2)
    assert (played.code, Path.cwd()) == (0, before)


DRAWS = """
import random
import numpy as np
{seeding}

class Policy:
    def __init__(self):
        {seeding}
        pass
    def predict(self, obs):
        return int(random.random() + np.random.random() > 1)
"""


@pytest.mark.parametrize("seeding", ["", "random.seed(0); np.random.seed(0)"])
@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}])
def test_global_random_numbers_are_the_same_at_the_next_run(
    tmp_path: Path, seeding: str, flags: dict[str, int]
) -> None:
    """K47. Whatever was drawn in this process before."""
    file = tmp_path / "draws.py"
    file.write_text(DRAWS.format(seeding=seeding))
    first = play(tmp_path, str(file), "CartPole-v1", episodes=6, **flags)
    random.random()
    np.random.random()
    assert unarranged(play(tmp_path, str(file), "CartPole-v1", episodes=6, **flags).rows) == unarranged(first.rows)
    other = play(tmp_path, str(file), "CartPole-v1", episodes=6, seed=1, **flags)
    assert other.column("trace_hash") != first.column("trace_hash")
    assert (first.advisory("policy-stochastic") is not None) is bool(flags)


@pytest.mark.parametrize("keeps", ["", "    def reset(self, context):\n        self.rng = context.rng\n"])
def test_numbers_of_the_episode_are_no_chance_of_the_policys_own(tmp_path: Path, keeps: str) -> None:
    file = tmp_path / "draws.py"
    draw = "self.rng" if keeps else "context.rng"
    file.write_text(
        f"class Policy:\n{keeps}    def predict(self, obs, context):\n        return int({draw}.random() > 0.5)\n"
    )
    alone, together = (play(tmp_path, str(file), "CartPole-v1", episodes=6, num_envs=lanes) for lanes in (1, 3))
    assert unarranged(together.rows) == unarranged(alone.rows)
    assert together.advisory("policy-stochastic") is None


@pytest.mark.parametrize("flags", [{}, {"workers": 2}])
def test_a_later_sitting_draws_other_global_random_numbers(tmp_path: Path, flags: dict[str, int]) -> None:
    file = tmp_path / "draws.py"
    file.write_text("import numpy as np\ndef predict(obs):\n    return int(np.random.random() > 0.5)\n")
    played = play(tmp_path, str(file), "toys:Echo-v0", episodes=12, is_probed=False, **flags)
    assert played.folder is not None
    assert run(Request(resume=str(played.folder), extend=12, out=played.out, quiet=True, is_probed=False)) == 0
    traces = read_run(played.out, 0).column("trace_hash")
    if not flags:  # which worker plays which episode is nobody's choice
        assert traces[:12] != traces[12:]
    whole = play(tmp_path, str(file), "toys:Echo-v0", episodes=12, is_probed=False)
    assert whole.column("trace_hash") == traces[:12] or flags


@pytest.mark.parametrize(
    "held", ["random.SystemRandom()", "threading.Thread(target=print)", "logging.getLogger('x')"], ids=str
)
def test_what_has_no_state_that_could_be_read_is_probed_as_ever(tmp_path: Path, held: str) -> None:
    file = tmp_path / "holds.py"
    file.write_text(
        "import logging, random, threading\n"
        f"class Policy:\n    def __init__(self):\n        self.held = {held}\n"
        "    def predict(self, obs):\n        return 0\n"
    )
    played = play(tmp_path, str(file), "CartPole-v1", episodes=4, num_envs=2)
    assert (played.code, played.record["probe"]["verdict"]) == (0, "stateless")


def test_who_sets_a_seed_in_every_call_does_the_same_each_time(tmp_path: Path) -> None:
    file = tmp_path / "seeds.py"
    file.write_text(
        "import numpy as np\ndef predict(obs):\n    np.random.seed(0)\n    return int(np.random.rand() < obs[2])\n"
    )
    played = play(tmp_path, str(file), "CartPole-v1", episodes=4, num_envs=2)
    assert (played.code, played.advisory("policy-stochastic")) == (0, None)


def test_a_lazy_module_of_somebody_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            raise ImportError(f"{name} wants a backend")

    module = Lazy("lazy_backend")
    del module.__dict__["__spec__"]
    monkeypatch.setitem(sys.modules, "lazy_backend", module)
    assert play(tmp_path, "idle", "toys:Coins-v0", episodes=1).code == 0


def test_a_folder_that_user_code_removes_takes_no_result_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    file = tmp_path / "tidies.py"
    file.write_text(
        f"import shutil\ndef predict(obs):\n    shutil.rmtree({str(tmp_path / 'home')!r}, True)\n    return 0\n"
    )
    request = Request(policy=str(file), env="toys:Coins-v0", episodes=2, out=tmp_path / "runs", quiet=True)
    assert run(request) == 0
    assert read_run(tmp_path / "runs", 0).record["status"] == "finished"


def test_a_command_in_a_folder_that_is_gone_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    (tmp_path / "home").rmdir()
    assert run(Request(policy="zero", env="CartPole-v1", episodes=1, out=Path("runs"), quiet=True)) == 2
    assert "the folder that this was typed in is not there any more" in capsys.readouterr().err
