"""What a user can get wrong: one message with cause, place and mend, code 2, no run, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_toys import ZERO, Refusals, policy_file
from stored import golden_copy

from rlmesh_cli.yamls import parse_document


@pytest.fixture
def refused(tmp_path: Path, capsys) -> Refusals:
    return Refusals(tmp_path, capsys)


# text of a policy file -> words of the message
FILES = {
    "x = (\n": ["syntax error", "policy.py:1"],
    "import math\nmath.sqrt(-1)\n": ["ValueError", "policy.py:2"],
    "import not_there_at_all\n" + ZERO: ["not_there_at_all", "policy.py:1", "install"],
    "import sys\nsys.exit(0)\n": ["SystemExit", "policy.py:2"],
    "class E(Exception):\n    def __str__(self): raise OSError\nraise E\n": ["E: (its message", "policy.py:3"],
    "class Walker: pass\nRATE = 3\n": ["found: `Walker`", "define a class `Policy`"],
    "": ["no class or function of its own"],
    "class Policy: pass\n": ["predict, predict_batch, predict_chunk, predict_chunk_batch"],
    "Policy = 5\n": ["has none of"],
    "def make_policy(): return None\n": ["NoneType has none of"],
    "def make_policy(): return {'predict': 0}\n": ["dict has none of"],
    "def make_policy(checkpoint): return None\n": ["needs `checkpoint`", "--policy-arg checkpoint=VALUE"],
    "class Policy:\n    def __init__(self, gain, *, bias): pass\n" + ZERO[14:]: ["needs `gain`, `bias`"],
    "class Policy:\n    def __init__(self):\n        1 / 0\n" + ZERO[14:]: ["ZeroDivisionError", "policy.py:3"],
    "class Policy:\n    def __init__(self):\n        raise SystemExit\n" + ZERO[14:]: [
        "SystemExit",
        "policy.py:3",
    ],
}


@pytest.mark.parametrize("text", FILES)
def test_policy_file_that_gives_no_policy(text, refused):
    said = refused.policy(text)
    assert [word for word in FILES[text] if word not in said] == []


def test_policy_that_cannot_be_found(refused):
    assert "no such policy file: nowhere/p.py" in refused.message("nowhere/p.py")
    assert "neither a built-in policy" in refused.message("zeros")
    assert "no policy is named" in refused.message(None)


def test_checkpoint_that_lies_beside_the_route_is_named(refused, tmp_path, monkeypatch):
    """And not beside the policy, where it is looked for first."""
    text = "class Policy:\n    def __init__(self, net):\n        open(net)\n" + ZERO[14:]
    (tmp_path / "policies").mkdir()
    policy_file(tmp_path / "policies", text)
    (tmp_path / "net.pt").touch()
    monkeypatch.chdir(tmp_path / "policies")
    source = "policy: {source: policies/policy.py, params: {net: net.pt}}\n"
    said = refused.route("env: {id: 'cli_toys:Steps'}\n" + source)
    assert f"mend  give --policy-arg net={tmp_path / 'net.pt'}: paths are seen from the folder" in said


@pytest.mark.parametrize("env", [None, "cli_toys:Steps"])
def test_run_in_the_place_of_a_policy(env, refused, tmp_path):
    """A shell makes two arguments of `--baseline base/*`, and the second is then the policy."""
    first, second = (golden_copy(tmp_path / "base", name) for name in ("a", "b"))
    said = refused.message(str(second), env=env, baseline=str(first))
    assert f"rlmesh: {second} is a run's folder, and no policy: --baseline takes one run\n  at    policy\n" in said
    assert "a run is named without `*`, after --baseline or --resume" in said


@pytest.mark.parametrize("env", [None, "cli_toys:Steps"])
@pytest.mark.parametrize("name", ["route.yaml", "other.yml", "ROUTE.YAML", "not there.yaml"])
def test_route_in_the_place_of_a_policy(name, env, refused, tmp_path, monkeypatch):
    (tmp_path / "route.yaml").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    said = refused.message(name, env=env)
    shown = f"'{name}'" if " " in name else name
    assert said == (
        f"rlmesh: {name} is no policy: by its name it is a route\n"
        "  at    policy\n"
        f"  mend  that is a route: --route {shown}\n"
    )


CHECKPOINTS = ["model.zip", "net.pt", "net.pth", "a.ckpt", "a.safetensors", "a.onnx", "a.pkl", "a.npz"]


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoint_in_the_place_of_a_policy(name, is_there, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if is_there:
        (tmp_path / name).touch()
    assert refused.message(name) == (
        f"rlmesh: {name} is a checkpoint, and no policy\n"
        "  at    policy\n"
        "  mend  write a policy that loads it (`rlmesh init` writes one to begin with), and name both: "
        f"policy.py --policy-arg checkpoint={name}\n"
    )


def test_checkpoint_in_a_folder_or_with_a_class_is_one(refused):
    assert "nowhere/model.zip is a checkpoint" in refused.message("nowhere/model.zip", env=None)
    assert "model.zip is a checkpoint" in refused.message("model.zip:PPO")


def test_checkpoint_that_a_route_file_names_as_its_policy(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pt").touch()
    said = refused.route("env: {id: 'cli_toys:Steps'}\npolicy: {source: net.pt}\n")
    assert "net.pt is a checkpoint, and no policy\n  at    route.yaml:2: policy.source" in said


def test_policy_parameter_that_is_not_taken(refused):
    said = refused.policy(
        "class Policy:\n    def __init__(self, gain=1): pass\n" + ZERO[14:], policy_args=("gian=1",)
    )
    assert "takes no `gian`" in said
    assert "did you mean gain?" in said


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("CartPol-v1", ["no environment has the id `CartPol-v1`", "CartPole-v1"]),
        ("CartPole-v77", ["`CartPole-v77`", "CartPole-v1"]),
        ("Zzzzz-v0", ["no environment has the id `Zzzzz-v0`", "env.imports"]),
        ("ALE/NoSuchGame-v5", ["ale-py", "pip install"]),
        ("not_installed_here:X-v0", ["module `not_installed_here` is not installed"]),
        ("cli_toys:Nothing", ["`Nothing`"]),
        ("cli_toys:ROOT", ["`ROOT`"]),
        ("cli_toys:row", ["cli_toys:row", "cannot be built"]),
        ("cli_toys:Unbuildable", ["cannot be built", "OSError: no display", "cli_toys.py"]),
        ("", ["no environment is named"]),
        (":", ["no environment has the id"]),
        ("..x:Y", ["..x"]),
    ],
)
def test_environment_that_cannot_be_had(env, words, refused):
    said = refused.message("zero", env=env)
    assert [word for word in words if word not in said] == []


def test_environment_that_refuses_its_arguments(refused):
    said = refused.message("zero", env="CartPole-v1", env_args=("gravityy=3",))
    assert "gravityy" in said
    assert "--env-arg" in said


@pytest.mark.parametrize(
    ("flags", "flag", "words"),
    [
        ({"num_envs": 0}, "--num-envs", [">= 1", "0"]),
        ({"num_envs": -3}, "--num-envs", [">= 1", "-3"]),
        ({"episodes": -1}, "--episodes", [">= 1", "-1"]),
        ({"episodes": 0}, "--episodes", [">= 1", "0"]),
        ({"horizon": 0}, "--horizon", [">= 1", "0"]),
        ({"max_episode_steps": 0}, "--max-episode-steps", [">= 1", "0"]),
        ({"max_episode_seconds": float("nan")}, "--max-episode-seconds", ["nan"]),
        ({"max_episode_seconds": float("inf")}, "--max-episode-seconds", ["inf"]),
        ({"seed": -1}, "--seed", [">= 0", "-1"]),
        ({"seeds": "1,2", "episodes": 3}, "--seeds", ["2 seeds", "3 episodes"]),
        ({"seeds": "1,x"}, "--seeds", ["`x` is not a seed"]),
        ({"vectorization": "snyc"}, "--vectorization", ["'snyc'", "sync"]),
        ({"autoreset": "never"}, "--autoreset", ["'never'", "next_step"]),
        ({"instances": "many"}, "--instances", ["'many'", "shared"]),
        ({"start_method": "spawn"}, "--start-method", ["spawn", "async"]),
        ({"env_workers": 2}, "--env-workers", ["2 environment workers", "--vectorization async"]),
        ({"env_workers": 0, "vectorization": "async"}, "--env-workers", [">= 1", "0"]),
        (
            {"env_workers": 2, "vectorization": "async", "autoreset": "disabled"},
            "--env-workers",
            ["a process a lane", "drop autoreset"],
        ),
        ({"success": "won:sometimes"}, "--success", ["'sometimes'", "final"]),
        ({"success": "return > 5"}, "--success", ["return > 5"]),
        ({"success": "return >= nan"}, "--success", ["nan"]),
        ({"success": ""}, "--success", []),
        ({"gates": ("success_rate > = 1",)}, "gate", ["`success_rate > = 1` is not a gate"]),
        ({"gates": ("errors == 0", "success_rate >= nan")}, "gate", ["`nan` is not a number"]),
        ({"env_args": ("gain",)}, "--env-arg", ["`gain` is not NAME=VALUE"]),
        ({"env_args": ("gain=[1",)}, "--env-arg", ["gain"]),
        ({"policy_args": ("gain=1",)}, "policy", ["takes no parameters, got gain"]),
        ({"vectorization": "native"}, "native", ["no vector entry point"]),
    ],
)
def test_flag_that_cannot_be_meant(flags, flag, words, refused):
    said = refused.message("zero", **{"episodes": 2 if "seeds" not in flags else None, **flags})
    assert flag in said.split("\n  at    ")[1]
    assert [word for word in words if word not in said] == []


BASE = "env: {id: 'cli_toys:Steps'}\npolicy: {source: zero}\n"
ROUTES = {
    BASE + "horizn: 2\n": ["unknown key `horizn`", "route.yaml:3", "`horizon`"],
    BASE + "seed: 1\nseed: 2\n": ["key `seed` stands twice", "route.yaml:4"],
    BASE + "success: {key: a, wen: any}\n": ["unknown key `success.wen`", "route.yaml:3", "`when`"],
    BASE + "num_envs: '8'\n": ["num_envs must be int", "'8'", "route.yaml:3: num_envs"],
    BASE + "seeds: [1, .nan]\n": ["seeds[1]", "nan", "route.yaml:3"],
    BASE + "horizon: .inf\n": ["horizon", "inf", "route.yaml:3"],
    BASE + "success: {return_at_least: .nan}\n": ["finite", "nan", "route.yaml:3"],
    BASE + "seeds: [1, 2]\nepisodes: 3\n": ["2 seeds", "3 episodes", "route.yaml:3"],
    BASE + "seed: None\n": ["`None`", "null", "route.yaml:3"],
    BASE + "metrics: &m [a]\ngates: *m\n": ["alias `*m`", "route.yaml:4"],
    BASE + "metrics: [a\n": ["not YAML", "route.yaml:4"],
    BASE + "version: 2\n": ["version", "2", "route.yaml:3"],
    BASE + "seed: " + "9" * 5000: ["seed"],
    "a: " + "[" * 700 + "]" * 700: ["not YAML"],
    "- a\n- b\n": ["a route is a mapping"],
    b"a: \0\n": ["not YAML"],
    bytes(range(256)): ["cannot be read", "UTF-8"],
    b"a: " + b"x" * 1_000_001: ["bytes"],
    "": ["no environment is named"],
}


@pytest.mark.parametrize("place", range(len(ROUTES)), ids=lambda place: str(list(ROUTES)[place][-24:]))
def test_route_file_that_cannot_be_meant(place, refused):
    text = list(ROUTES)[place]
    said = refused.route(text)
    assert [word for word in ROUTES[text] if word not in said] == []
    assert len(said) < 1500


@pytest.mark.parametrize(
    ("line", "mend"),
    [
        ("max_episode_steps: 3", "did you mean `env.max_episode_steps`?"),
        ("max-episode-steps: 3", "did you mean `env.max_episode_steps`?"),
        ("max_episode_step: 3", "did you mean `env.max_episode_steps`?"),
        ("vectorization: sync", "did you mean `env.vectorization`?"),
        ("wrappers: []", "did you mean `env.wrappers`?"),
        ("id: CartPole-v1", "did you mean `env.id`?"),
        ("kwargs: {}", "did you mean `env.kwargs`?"),
        ("env-arg: {}", "did you mean `env.kwargs`?"),
        ("source: policy.py", "did you mean `policy.source`?"),
        ("policy_arg: {}", "did you mean `policy.params`?"),
        ("env_workers: 2", "did you mean `env.workers`?"),
        ("margin: 5%", "did you mean `baseline.margin`?"),
        ("num-envs: 2", "did you mean `num_envs`?"),
        ("gate: []", "did you mean `gates`?"),
        ("strict: true", "`strict` is a flag of the command line: --strict"),
        ("verify_lanes: 3", "`verify_lanes` is a flag of the command line: --verify-lanes"),
        ("trust-entrypoints: true", "`trust_entrypoints` is a flag of the command line: --trust-entrypoints"),
        ("success: {key: a, horizon: 2}", "did you mean `horizon`, outside of `success`?"),
        ("baseline: {run: a, report: true}", "`report` is a flag of the command line: --report"),
    ],
)
def test_key_that_has_another_place_is_told_which(line, mend, refused):
    said = refused.route(f"{BASE}{line}\n")
    assert said.startswith("rlmesh: unknown key `")
    assert "\n  at    route.yaml:3: " in said
    assert said.endswith(f"  mend  {mend}\n")


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("policy: {source: zero, kwargs: {a: 1}}\n", "did you mean `params`?"),
        ("env: {id: a, params: {a: 1}}\n", "did you mean `kwargs`?"),
        ("env: {id: a, wrappers: [{name: b, episodes: 2}]}\n", "did you mean `episodes`, outside of `env`?"),
        ("zzzzzzzz: 1\n", "known here: version, env, policy, "),
        ("env: CartPole-v1\n", "write env: {id: CartPole-v1}\n"),
        ("env: 'cli_toys:Steps'\n", "write env: {id: 'cli_toys:Steps'}\n"),
        ("policy: policy.py\n", "write policy: {source: policy.py}\n"),
        ("policy: policy.py:Arm\n", "write policy: {source: 'policy.py:Arm'}\n"),
        ("env: {id: a}\nbaseline: runs/base\n", "write baseline: {run: runs/base}\n"),
        ("env: [a]\n", "write `key: value` pairs below it, or {key: value}\n"),
    ],
)
def test_section_that_is_written_otherwise_is_told_how(text, mend, refused):
    assert f"  mend  {mend}" in refused.route(text)


@pytest.mark.parametrize(
    ("text", "section"),
    [("env: 'cli_toys:Steps'\n", "env"), ("policy: policy.py:Arm\n", "policy"), ("baseline: a b\n", "baseline")],
)
def test_section_that_a_mend_shows_can_be_read(text, section, refused):
    """And holds what was written."""
    shown = refused.route(text).split("mend  write ")[1]
    assert list(parse_document(shown, "shown").value[section].values()) == [
        parse_document(text, "").value[section]
    ]


def test_route_file_that_cannot_be_found(refused, tmp_path):
    assert "no such route file" in refused.message(None, env=None, route=tmp_path / "nowhere.yaml")
    assert "is a folder" in refused.message(None, env=None, route=tmp_path)


def test_out_that_names_a_file(refused, tmp_path):
    (tmp_path / "taken").write_text("kept")
    said = refused.message("zero", out=tmp_path / "taken", episodes=2)
    assert "is a file" in said
    assert "--out" in said
    assert (tmp_path / "taken").read_text() == "kept"
    refused.message("zero", out=tmp_path / "taken" / "below", episodes=2)


# answer of predict(obs) for Discrete(4) -> words of the message
ANSWERS = {
    "None": ["NoneType"],
    "'left'": ["U4"],
    "{'action': 1}": ["dict"],
    "[]": ["(0,)"],
    "[0, 1]": ["int64(2,)"],
    "[[0], [1, 2]]": ["list"],
    "1.5": ["whole numbers", "float64"],
    "float('nan')": ["whole numbers", "float64"],
    "99": ["99", "Discrete(4)", "0 to 3"],
    "-1": ["-1", "Discrete(4)"],
    "2 ** 70": ["1180591620717411303424"],
    "object()": ["object"],
    "lambda: 0": ["function"],
    "1j": ["complex128"],
    "b'x'": ["S1"],
    "Mute()": ["Mute"],
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answer_that_is_no_action(answer, refused):
    mute = "class Mute:\n    def __repr__(self): raise ValueError('no text')\n"
    said = refused.policy(mute + ZERO.replace("return 0", f"return {answer}"))
    assert "predict of the policy" in said or "in predict" in said or answer in ("99", "-1")
    assert [word for word in ANSWERS[answer] if word not in said] == []


IMPORT = "import numpy as np\nclass Policy:\n    def {}(self, obs):\n        return {}\n"


@pytest.mark.parametrize(
    ("corner", "answer", "env", "flags", "words"),
    [
        ("predict_batch", "np.array([0])", "Steps", {"num_envs": 2}, ["(2,)", "(1,)", "predict_batch"]),
        ("predict_batch", "np.zeros((2, 1), int)", "Steps", {"num_envs": 2}, ["(2,)", "(2, 1)", "predict_batch"]),
        ("predict_batch", "np.zeros(2)", "Steps", {"num_envs": 2}, ["whole numbers", "float64", "predict_batch"]),
        ("predict", "np.zeros(3, np.float32)", "Boxed", {}, ["(2,)", "(3,)", "predict"]),
        ("predict", "np.zeros((1, 2), np.float32)", "Boxed", {}, ["(2,)", "(1, 2)", "predict"]),
        ("predict", "np.zeros(2, complex)", "Boxed", {}, ["complex128", "predict"]),
        ("predict_chunk", "[]", "Steps", {}, ["empty", "predict_chunk"]),
        ("predict_chunk", "np.zeros((0, 2), np.float32)", "Boxed", {}, ["empty", "predict_chunk"]),
        ("predict_chunk", "[0, 1]", "Steps", {"horizon": 3}, ["horizon is 3", "2 actions", "--horizon 2"]),
        ("predict_chunk", "[[0, 1], [2]]", "Boxed", {"horizon": 2}, ["ragged", "predict_chunk"]),
        ("predict_chunk", "0", "Steps", {}, ["int64()", "predict_chunk"]),
        (
            *("predict_chunk_batch", "np.zeros((1, 4), int)", "Steps"),
            {"num_envs": 2, "horizon": 2},
            ["(2, H)", "(1, 4)", "predict_chunk_batch"],
        ),
        (
            "predict_chunk_batch",
            "np.zeros((2, 0), int)",
            "Steps",
            {"num_envs": 2},
            ["empty", "predict_chunk_batch"],
        ),
        ("predict_chunk_batch", "[[], []]", "Steps", {"num_envs": 2}, ["empty", "predict_chunk_batch"]),
    ],
)
def test_action_of_the_wrong_shape_or_type(corner, answer, env, flags, words, refused):
    said = refused.policy(IMPORT.format(corner, answer), env=f"cli_toys:{env}", **flags)
    assert [word for word in words if word not in said] == []


METHODS = "class Mute(Exception):\n    def __str__(self): raise OSError\nclass Policy:\n"


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (
            "    def reset(self):\n        raise ValueError('cold')\n" + ZERO[14:],
            ["ValueError: cold", "policy.py:5"],
        ),
        (
            "    def predict(self, obs):\n        raise ValueError('cold')\n",
            ["ValueError: cold", "policy.py:5", "float64"],
        ),
        ("    def predict_batch(self, obs):\n        return obs['x']\n", ["IndexError", "policy.py:5"]),
        ("    def predict_chunk(self, obs):\n        raise Mute\n", ["Mute: (its message", "policy.py:5"]),
        ("    def predict(self, obs):\n        raise Mute\n", ["Mute: (its message", "policy.py:5"]),
        ("    def predict(self, obs):\n        import sys; sys.exit(0)\n", ["SystemExit", "policy.py:5"]),
        ("    def reset(self):\n        raise SystemExit(3)\n" + ZERO[14:], ["SystemExit", "policy.py:5"]),
    ],
)
def test_policy_that_fails_at_its_first_call(methods, words, num_envs, refused):
    said = refused.policy(METHODS + methods, num_envs=num_envs)
    assert "very first call" in said
    assert [word for word in words if word not in said] == []


def test_policy_whose_attributes_raise(refused):
    text = "class Policy:\n    def __getattr__(self, name): raise RuntimeError(f'no {name} yet')\n"
    assert "RuntimeError" in refused.policy(text)


def test_policy_that_prints_spoils_no_message(refused):
    loud = "print('loading')\n" + ZERO.replace("return 0", "print('thinking'); return 'left'")
    said = refused.policy(loud)
    assert said.startswith("loading\nthinking\nrlmesh: ")


def test_environment_without_an_action(refused):
    said = refused.message("random", env="film_toys:Idle", episodes=2)
    assert "holds nothing to act with" in said
    assert "of Idle" in said
