"""Loading: from what a route calls its policy to something that builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_toys import ROOT, ZERO, mended, policy_file

from rlmesh_adapters.errors import LoadError
from rlmesh_adapters.spaces import SpaceView, frozen_array
from rlmesh_cli.loading import load_policy

ACTION = SpaceView(
    kind="discrete",
    dtype=np.dtype(np.int64),
    low=frozen_array(0, shape=(), dtype=np.int64),
    high=frozen_array(3, shape=(), dtype=np.int64),
)


def build(source: str, **params):
    return load_policy(source, params).build(ACTION)


def refusal(source: str, **params) -> LoadError:
    """Return the error of a policy that cannot be loaded or built."""
    with pytest.raises(LoadError) as caught:
        build(source, **params)
    mended(caught.value)
    return caught.value


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose modules can be imported, and are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_make_policy_comes_before_the_class_and_the_class_before_the_function(tmp_path):
    everything = (
        "class Policy:\n    made = False\n    def predict(self, obs): return 1\n"
        "def predict(obs): return 2\n"
        "def make_policy(**params):\n    policy = Policy()\n    policy.made = True\n    return policy\n"
    )
    assert build(policy_file(tmp_path, everything, "a.py")).made is True
    without = everything.replace("make_policy", "other")
    assert build(policy_file(tmp_path, without, "b.py")).predict(None) == 1
    bare = "def predict(obs): return 2\n"
    assert build(policy_file(tmp_path, bare, "c.py")).predict(None) == 2


@pytest.mark.parametrize("returned", ["act", "lambda obs: gain", "Model().act"])
def test_make_policy_may_return_a_function_that_acts(returned, tmp_path):
    source = (
        "class Model:\n    gain = 3\n    def act(self, obs): return self.gain\n"
        "def make_policy(gain=3):\n    def act(obs): return gain\n"
        f"    return {returned}\n"
    )
    assert build(policy_file(tmp_path, source)).predict(None) == 3


@pytest.mark.parametrize("returned", ["Model", "5", "Model()"])
def test_what_make_policy_returns_is_called_only_where_it_is_a_function(returned, tmp_path):
    """A class that was not built yet is no policy, though it can be called."""
    source = (
        f"class Model:\n    def __init__(self, *obs): self.obs = obs\ndef make_policy():\n    return {returned}\n"
    )
    assert not hasattr(build(policy_file(tmp_path, source)), "predict")


def test_every_build_is_another_object(tmp_path):
    made = ZERO + "ready = Policy()\n"
    texts = {
        "a.py": (ZERO, ""),
        "b.py": ("calls = []\ndef predict(obs): return 0\n", ""),
        "c.py": (made, ":ready"),
    }
    for name, (text, attribute) in texts.items():
        source = load_policy(f"{policy_file(tmp_path, text, name)}{attribute}", {})
        built = [source.build(ACTION) for _ in range(3)]
        assert len({id(policy) for policy in built}) == 3, built


def test_modules_that_are_run_again_share_nothing(tmp_path):
    text = "seen = []\ndef predict(obs):\n    seen.append(obs)\n    return len(seen)\n"
    source = load_policy(policy_file(tmp_path, text), {})
    first, second, third = (source.build(ACTION) for _ in range(3))
    assert [first.predict(0), first.predict(0), second.predict(0), third.predict(0)] == [1, 2, 1, 1]


def test_named_attribute_is_taken(tmp_path):
    text = ZERO + "class Other:\n    def predict(self, obs): return 3\nready = Other()\ndef act(obs): return 2\n"
    path = policy_file(tmp_path, text)
    assert build(f"{path}:Other").predict(None) == 3
    assert build(f"{path}:ready").predict(None) == 3
    assert build(f"{path}:act").predict(None) == 2
    assert load_policy(f"{path}:Other", {}).label == "policy-Other"
    assert load_policy(path, {}).label == "policy"


@pytest.mark.parametrize(
    "flags",
    [[], ["--vectorization", "async", "--start-method", "spawn"], ["--workers", "2", "--start-method", "spawn"]],
)
def test_environment_for_a_built_in_policy_is_looked_for_in_the_working_folder(flags, tmp_path):
    """A policy file has its own folder; `random` has none. Worker processes start with a path of their own."""
    text = (
        "import gymnasium as gym\nfrom gymnasium.envs.classic_control import CartPoleEnv\n\n\n"
        "class Pole(CartPoleEnv):\n    pass\n"
    )
    (tmp_path / "pole_of_a_test.py").write_text(text, encoding="utf-8")
    command = ["eval", "random", "--env", "pole_of_a_test:Pole", "--episodes", "2", "--num-envs", "2", *flags]
    sources = os.pathsep.join(str(ROOT / folder) for folder in (".", "adapters", "envs"))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlmesh_cli", *command],  # -P: as an installed script, without this folder
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 of 2" in done.stdout


def test_parameters_reach_the_constructor(tmp_path):
    text = "class Policy:\n    def __init__(self, gain, names=()):\n        self.all = (gain, names)\n" + ZERO[14:]
    assert build(policy_file(tmp_path, text), gain=0.5, names=["a"]).all == (0.5, ["a"])
    text = (
        "def make_policy(**params):\n    class P:\n        all = params\n        predict = None\n    return P()\n"
    )
    assert build(policy_file(tmp_path, text, "b.py"), gain=0.5).all == {"gain": 0.5}


def test_policies_share_no_parameter_that_one_of_them_changes(tmp_path):
    text = (
        "class Policy:\n    def __init__(self, log):\n        self.log = log\n        log.append(1)\n" + ZERO[14:]
    )
    params = {"log": []}
    source = load_policy(policy_file(tmp_path, text), params)
    first, second = source.build(ACTION), source.build(ACTION)
    assert (first.log, second.log, params) == ([1], [1], {"log": []})


OPENS = "class Policy:\n    def __init__(self, checkpoint, size=1):\n        {}\n" + ZERO[14:]
READ = "open(checkpoint).read()"
TRIED = f"try:\n            {READ}\n        except Exception as error:\n            {{}}"


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a policy and its weights, which lies in the one that the command is typed in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm" / "data").mkdir(parents=True)
    (tmp_path / "arm" / "net.pt").touch()
    (tmp_path / "arm" / "data" / "net 2.pt").touch()
    return tmp_path / "arm"


@pytest.mark.parametrize(
    "body",
    [
        READ,
        "open(__import__('os').path.abspath(checkpoint)).read()",
        "raise FileNotFoundError(f'no weights in {checkpoint}')",
        TRIED.format("raise ValueError('no net') from error"),
        TRIED.format("raise ValueError('no net')"),
    ],
)
@pytest.mark.parametrize("name", ["net.pt", "data/net 2.pt"])
def test_file_beside_the_policy_that_is_not_found_is_named(name, body, apart):
    """Python sees a path in a parameter from the working folder."""
    shown = "arm/net.pt" if name == "net.pt" else "'arm/data/net 2.pt'"
    assert refusal(policy_file(apart, OPENS.format(body)), checkpoint=name).mend == (
        f"give --policy-arg checkpoint={shown}: paths are seen from the folder that the command is typed in, "
        f"{apart.parent}"
    )


def test_file_beside_the_route_that_is_not_found_is_named(apart, tmp_path):
    (tmp_path / "policies").mkdir()
    path = policy_file(tmp_path / "policies", OPENS.format(READ))
    with pytest.raises(LoadError) as caught:
        load_policy(path, {"checkpoint": "net.pt"}, apart / "route.yaml").build(ACTION)
    assert "give --policy-arg checkpoint=arm/net.pt: paths are seen from" in caught.value.mend


def test_file_that_is_not_found_by_another_name_is_named_without_the_flag(apart, monkeypatch):
    path = policy_file(apart, OPENS.format("open(checkpoint + '.pt').read()"))
    said = "paths are seen from the folder that the command is typed in, "
    assert refusal(path, checkpoint="net").mend == f"give arm/net.pt: {said}{apart.parent}"
    monkeypatch.chdir(apart / "data")  # from where the file is not below
    assert refusal(path, checkpoint="net").mend == f"give {apart / 'net.pt'}: {said}{apart / 'data'}"


def test_file_that_a_policy_reads_while_it_is_loaded_is_named(apart):
    error = refusal(policy_file(apart, "weights = open('net.pt').read()\n" + ZERO))
    assert error.mend.startswith("give arm/net.pt: paths are seen from the folder that the command is typed in, ")


@pytest.mark.parametrize("checkpoint", ["none.pt", "/nowhere/net.pt", "", ".", "x" * 300, "a\0b"])
def test_file_that_is_nowhere_is_not_named(checkpoint, apart):
    body = TRIED.format("raise FileNotFoundError(f'no [{checkpoint}]')")
    error = refusal(policy_file(apart, OPENS.format(body)), checkpoint=checkpoint)
    assert error.mend == "check its arguments; --policy-arg NAME=VALUE gives one"


#: A class of the script that saved it, as pickle names it.
OF_A_SCRIPT = b"c__main__\nNet\n."
UNPICKLES = "import pathlib, pickle; pickle.loads(pathlib.Path(checkpoint).read_bytes())"
#: As torch does it with `weights_only`: in the place of what says which class it was.
REFUSES = (
    "try:\n            raise ValueError('Unsupported global: GLOBAL __main__.Net was not an allowed global')\n"
    "        except ValueError:\n            raise RuntimeError('Weights only load failed. ' * 40) from None"
)


@pytest.mark.parametrize("body", [UNPICKLES, REFUSES])
def test_class_that_a_script_pickled_is_told_how_it_is_saved(body, apart):
    """What runs as `__main__` is another file now."""
    (apart / "net.pkl").write_bytes(OF_A_SCRIPT)
    error = refusal(policy_file(apart, OPENS.format(body)), checkpoint=str(apart / "net.pkl"))
    assert error.mend == (
        "it was pickled by a script, as `__main__`: save it from a module that can be imported, "
        "or save the state dict"
    )
    at_once = f"checkpoint = {str(apart / 'net.pkl')!r}\ndef load():\n        {body}\nload()\n{ZERO}"
    assert refusal(policy_file(apart, at_once, "at_once.py")).mend == error.mend


def test_class_that_its_module_lost_was_not_pickled_by_a_script(apart):
    (apart / "net.pkl").write_bytes(b"cjson\nNet\n.")
    error = refusal(policy_file(apart, OPENS.format(UNPICKLES)), checkpoint=str(apart / "net.pkl"))
    assert "Can't get attribute 'Net' on <module 'json'" in error.cause
    assert error.mend == "check its arguments; --policy-arg NAME=VALUE gives one"


def test_module_is_found_by_its_dotted_name(on_path):
    (on_path / "robots").mkdir()
    policy_file(on_path / "robots", ZERO, "arm.py")
    policy_file(on_path / "robots", "def predict(obs): return 5\n", "leg.py")
    assert build("robots.arm").predict(None) == 0
    assert build("robots.arm:Policy").predict(None) == 0
    assert build("robots.leg").predict(None) == 5
    assert load_policy("robots.arm", {}).label == "arm"


def test_module_may_be_called_as_a_checkpoint_ends(on_path):
    (on_path / "robots_of_a_test").mkdir()
    policy_file(on_path / "robots_of_a_test", ZERO, "onnx.py")
    assert build("robots_of_a_test.onnx").predict(None) == 0


def test_module_is_found_where_the_user_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policy_file(tmp_path, ZERO, "standing_here.py")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert build("standing_here:Policy").predict(None) == 0
    del sys.modules["standing_here"]


def test_path_may_hold_a_colon(tmp_path):
    folder = tmp_path / "run 12:30"
    folder.mkdir()
    assert build(policy_file(folder, ZERO)).predict(None) == 0


@pytest.mark.parametrize("name", ["random", "zero"])
def test_built_in_policies_have_their_name(name):
    source = load_policy(name, {})
    assert (source.label, source.file) == (name, None)
    assert source.build(ACTION) is not None


def test_missing_file_names_its_neighbour(tmp_path):
    policy_file(tmp_path, ZERO, "walker.py")
    error = refusal(str(tmp_path / "walkr.py"))
    assert "no such policy file" in error.cause
    assert error.mend == "did you mean walker.py?"
    assert refusal("nowhere/at/all.py").cause == "no such policy file: nowhere/at/all.py"
    assert "no such policy file" in refusal("x" * 300 + ".py").cause


def test_name_that_is_nothing_lists_what_it_could_be():
    error = refusal("no_such_module_at_all")
    assert "neither a built-in policy, a .py file nor a module" in error.cause
    assert "random, zero" in error.mend


# text of a policy file -> words of the cause, line in which it went wrong
BROKEN = {
    "x = 1\ny = (\n": ("syntax error: '(' was never closed", 2),
    "def f(:\n": ("syntax error", 1),
    "if 1:\nx = 1\n": ("syntax error", 2),
    "import math\n\n\n1 / 0\n": ("ZeroDivisionError: division by zero", 4),
    "def f():\n    raise ValueError('first\\nsecond')\nf()\n": ("ValueError: first", 2),
    "import json\njson.loads('{')\n": ("JSONDecodeError", 2),
    "import not_a_module_of_ours\n": ("No module named 'not_a_module_of_ours'", 1),
    "import sys\n\nsys.exit('no GPU')\n": ("SystemExit: no GPU", 3),
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n": (
        "E: (its message cannot be shown)",
        3,
    ),
    "eval('1 +')\n": ("syntax", 1),
}


@pytest.mark.parametrize("text", BROKEN)
def test_error_while_loading_names_file_and_line_of_the_users_code(text, tmp_path):
    words, line = BROKEN[text]
    path = policy_file(tmp_path, text)
    error = refusal(path)
    assert words in error.cause
    assert error.where.startswith(f"{path}:{line}")
    assert "\n" not in error.cause


@pytest.mark.parametrize("content", [b"x = 1\ny = '\xff'\n", b"x = 1\0\n", b"\x7fELF\x01\x02"])
def test_file_that_is_no_text_is_named(content, tmp_path):
    path = tmp_path / "policy.py"
    path.write_bytes(content)
    error = refusal(str(path))
    assert error.where.startswith(str(path))
    assert "None" not in str(error)


def test_error_in_a_neighbour_names_the_neighbour(on_path):
    policy_file(on_path, "\nraise RuntimeError('cold')\n", "cold_neighbour.py")
    error = refusal(policy_file(on_path, "import cold_neighbour\n" + ZERO))
    assert "RuntimeError: cold" in error.cause
    assert "policy.py:1" in error.where
    policy_file(on_path, "x = (\n", "open_neighbour.py")
    error = refusal(policy_file(on_path, "import open_neighbour\n" + ZERO, "second.py"))
    assert f"{on_path / 'open_neighbour.py'}:1" in error.where


def test_file_without_policy_says_what_it_holds(tmp_path):
    error = refusal(policy_file(tmp_path, "import math\nRATE = 5\nclass Arm: pass\ndef reach(): pass\n"))
    assert "found: `Arm`, `reach`" in error.cause
    assert "define a class `Policy`" in error.mend
    error = refusal(policy_file(tmp_path, "import math\n", "empty.py"))
    assert "no class or function of its own" in error.cause
    error = refusal(policy_file(tmp_path, ZERO.replace("Policy", "Walker"), "other.py"))
    assert "other.py:Walker" in error.mend


def test_attribute_that_is_not_there_names_the_nearest(tmp_path):
    path = policy_file(tmp_path, ZERO + "class Walker: pass\n")
    assert refusal(f"{path}:Walkr").mend == "did you mean Walker?"
    assert "`Policy`, `Walker`" in refusal(f"{path}:zzz").mend


INIT = "class Policy:\n    def __init__(self, {}): pass\n" + ZERO[14:]


@pytest.mark.parametrize(
    "text", [INIT.format("gain, bias, more=1"), "def make_policy(gain, *, bias): return None\n"]
)
def test_parameters_that_are_needed_are_named(text, tmp_path):
    path = policy_file(tmp_path, text)
    error = refusal(path)
    assert "needs `gain`, `bias`" in error.cause
    assert "--policy-arg gain=VALUE --policy-arg bias=VALUE" in error.mend
    assert "needs `bias`" in refusal(path, gain=1).cause


@pytest.mark.parametrize("text", [INIT.format("gain=1"), "def make_policy(gain=1): return None\n"])
def test_parameter_that_is_not_taken_names_the_nearest(text, tmp_path):
    path = policy_file(tmp_path, text)
    error = refusal(path, gian=1)
    assert "takes no `gian`" in error.cause
    assert error.mend == "did you mean gain?"
    assert refusal(path, zzz=1).mend == "it takes: gain"


def test_parameters_that_nobody_takes_are_refused(on_path):
    path = policy_file(
        on_path, "def predict(obs): return 0\n" + ZERO.replace("Policy", "Made") + "made = Made()\n"
    )
    assert "takes no parameters, got gain" in refusal(path, gain=1).cause
    assert "gain" in refusal("policy", gain=1).cause
    assert "gain" in refusal(f"{path}:made", gain=1).cause
    assert "takes no parameters, got gain" in refusal("zero", gain=1).cause


@pytest.mark.parametrize("statement", ["raise KeyError('gain')", "import sys; sys.exit(0)", "1 / 0"])
def test_constructor_that_raises_is_named_with_its_line(statement, tmp_path):
    path = policy_file(tmp_path, f"class Policy:\n    def __init__(self):\n        {statement}\n" + ZERO[14:])
    error = refusal(path)
    assert "Policy cannot be built" in error.cause
    assert error.where.startswith(f"{path}:3 in __init__")


def test_a_module_that_misses_another_one_of_a_like_name_is_not_itself_missing(tmp_path, monkeypatch):
    policy_file(tmp_path, "import torchlike\n" + ZERO, "torchlike_policy.py")
    monkeypatch.chdir(tmp_path)
    error = refusal("torchlike_policy")
    assert "No module named 'torchlike'" in error.cause
    assert "neither a built-in policy" in refusal("torchlike_missing.deep").cause


def test_what_is_no_policy_file_is_told_as_what_it_is(tmp_path, monkeypatch):
    (tmp_path / "notes.ipynb").write_text("{}")
    (tmp_path / "pkg").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, what in (("notes.ipynb", "no .py file"), ("./pkg", "a folder"), (".", "a folder")):
        error = refusal(name)
        assert error.cause == f"{name} is {what}"
        assert ".py file" in error.mend


def test_file_of_a_package_is_told_by_the_name_that_it_has_there(tmp_path):
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "acts.py").write_text("from .net import W\n")
    error = refusal(str(tmp_path / "brain" / "acts.py"))
    assert error.mend == "it is part of a package: name it brain.acts, from the folder around that"


def test_file_that_leaves_while_it_is_loaded_is_told_what_to_do(tmp_path):
    text = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', required=True)\n"
    error = refusal(policy_file(tmp_path, text + "parser.parse_args([])\n"))
    assert error.mend == 'put what the file does as a script under `if __name__ == "__main__":`'
