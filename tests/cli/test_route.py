"""Route: a file and flags become one record, or an error that names the place."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from cli_toys import mended
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.documents import KeyPath
from rlmesh_cli.route import Flags, Route, read_route

BASE = "env: {id: X}\npolicy: {source: zero}\n"


class Reader:
    """Reads routes of texts from one folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "r.yaml"

    def __call__(self, text: str, **flags: Any) -> Route:
        self.path.write_text(text, encoding="utf-8")
        return read_route(self.path, flagged(**flags))[0]

    def refusal(self, text: str, **flags: Any) -> RouteError:
        with pytest.raises(RouteError) as caught:
            self(text, **flags)
        mended(caught.value)
        return caught.value


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def flagged(**given: Any) -> Flags:
    """Return flags; `env__id` stands for the path ("env", "id"), and is called `--env.id` in messages."""
    values: dict[KeyPath, Any] = {tuple(name.split("__")): value for name, value in given.items()}
    return Flags(values=values, names={path: "--" + ".".join(map(str, path)) for path in values})


def test_route_of_a_file_says_everything_it_says(read):
    route = read("""
version: 1
env:
  id: CartPole-v1
  kwargs: {sutton_barto_reward: true, deep: {list: [1, 2e0]}}
  imports: [a.b]
  wrappers: [FlattenObservation, {name: "m:W", kwargs: {k: 1e-3}}]
  vectorization: async
  start_method: spawn
  autoreset: same_step
  max_episode_steps: 9
  max_episode_seconds: 2
policy: {source: "a.module:Name", params: {p: [x]}}
horizon: 2
num_envs: 3
episodes: 4
seed: 5
instances: lane
success: {key: won, when: any}
metrics: [speed]
gates: ["errors == 0"]
""")
    env = route.env
    assert (env.id, env.imports, env.vectorization) == ("CartPole-v1", ("a.b",), "async")
    assert env.kwargs == {"sutton_barto_reward": True, "deep": {"list": [1, 2.0]}}
    assert env.wrappers[0] == "FlattenObservation"
    assert (env.wrappers[1].name, env.wrappers[1].kwargs) == ("m:W", {"k": 0.001})
    assert (env.start_method, env.autoreset) == ("spawn", "same_step")
    assert (env.max_episode_steps, env.max_episode_seconds) == (9, 2.0)
    assert (route.policy.source, route.policy.params) == ("a.module:Name", {"p": ["x"]})
    assert (route.horizon, route.num_envs, route.instances) == (2, 3, "lane")
    assert route.episode_seeds == (5, 6, 7, 8)
    assert (route.success_rule.keys, route.success_rule.when) == (("won",), "any")
    assert (route.metrics, route.gates) == (("speed",), ("errors == 0",))


def test_what_is_not_said_has_the_documented_default(read):
    route = read(BASE)
    assert (route.horizon, route.num_envs, route.instances, route.env.vectorization) == (1, 1, "auto", "sync")
    assert route.episode_seeds == tuple(range(50))
    assert (route.success_rule.keys, route.success_rule.when) == (("is_success", "success"), "final")


def test_a_route_needs_no_file():
    route = read_route(None, flagged(env__id="X", policy__source="zero", episodes=2, seed=3))[0]
    assert (route.env.id, route.policy.source, route.episode_seeds) == ("X", "zero", (3, 4))


def test_flags_override_the_file_and_leave_the_rest(read):
    route = read(
        "env: {id: X, kwargs: {a: 1, b: 2}}\npolicy: {source: zero}\nhorizon: 4\nnum_envs: 2\n",
        env__id="Y",
        env__kwargs__b=5,
        horizon=1,
    )
    assert (route.env.id, route.env.kwargs) == ("Y", {"a": 1, "b": 5})
    assert (route.horizon, route.num_envs) == (1, 2)


@pytest.mark.parametrize("source", ["../pick.py", "../pick.py:Policy", "sub/../../pick.py"])
def test_policy_path_in_a_file_is_read_from_the_files_folder(source, tmp_path, monkeypatch):
    folder = tmp_path / "routes"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    route = Reader(folder)(f"env: {{id: X}}\npolicy: {{source: '{source}'}}\n")
    path, colon, attribute = route.policy.source.partition(":")
    assert Path(path) == tmp_path / "pick.py"
    assert colon + attribute == (":Policy" if source.endswith(":Policy") else "")


@pytest.mark.parametrize("source", ["zero", "a.module", "a.module:Name"])
def test_policy_that_is_no_path_stays_as_it_is(source, read):
    assert read(f"env: {{id: X}}\npolicy: {{source: '{source}'}}\n").policy.source == source


def test_policy_flag_is_meant_from_where_the_user_stands(read):
    assert read(BASE, policy__source="mine.py").policy.source == "mine.py"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2**63), min_size=1, max_size=6))
def test_seeds_are_played_as_listed_and_fix_the_number_of_episodes(seeds):
    route = read_route(None, flagged(env__id="X", policy__source="zero", seeds=seeds))[0]
    assert route.episode_seeds == tuple(seeds)
    assert route.episodes == len(seeds)


def test_seeds_on_the_command_line_replace_seeds_and_episodes_of_the_file(read):
    assert read(BASE + "episodes: 9\nseeds: [1, 2, 3]\n", seeds=[7, 8]).episode_seeds == (7, 8)
    assert read(BASE + "episodes: 2\nseeds: [1, 2]\n", seed=7).episode_seeds == (7, 8)
    assert read(BASE + "episodes: 9\n", seeds=[7]).episode_seeds == (7,)


def test_seed_and_seeds_side_by_side_are_refused(read):
    """One of the two would be left aside without a word."""
    read.refusal(BASE, seed=5, seeds=[1, 2])


UNKNOWN = {
    "horizn: 2": ("horizn", 3, "`horizon`"),
    "seeed: 2": ("seeed", 3, "`seed"),
    "zzz: 2": ("zzz", 3, "known here: version, env, policy"),
    "success:\n  key: a\n  wen: any": ("success.wen", 5, "`when`"),
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_key_is_refused_with_its_line_and_the_nearest_known_one(text, read):
    name, line, near = UNKNOWN[text]
    error = read.refusal(BASE + text)
    assert error.cause == f"unknown key `{name}`"
    assert error.where == f"r.yaml:{line}: {name}"
    assert near in error.mend


@pytest.mark.parametrize(
    ("env", "name", "near"),
    [
        ("{id: X, wraper: []}", "env.wraper", "`wrappers`"),
        ("{id: X, wrappers: [A, {name: B, kwrgs: {}}]}", "env.wrappers[1].kwrgs", "`kwargs`"),
    ],
)
def test_unknown_key_of_the_environment_is_refused(env, name, near, read):
    error = read.refusal(f"policy: {{source: zero}}\nenv: {env}\n")
    assert (error.cause, error.where) == (f"unknown key `{name}`", f"r.yaml:2: {name}")
    assert near in error.mend


def test_arguments_of_the_users_own_code_may_have_any_name(read):
    route = read("env: {id: X, kwargs: {horizn: 1}}\npolicy: {source: zero, params: {seeed: 2}}\n")
    assert (route.env.kwargs, route.policy.params) == ({"horizn": 1}, {"seeed": 2})


# line of a route -> path, and words of the error
WRONG = {
    "horizon: two": ("horizon", ["int", "'two'"]),
    "horizon: 1.5": ("horizon", ["int", "1.5"]),
    "horizon: 0": ("horizon", [">= 1", "0"]),
    "horizon: .nan": ("horizon", ["int", "nan"]),
    "num_envs: true": ("num_envs", ["int", "True"]),
    "num_envs: .inf": ("num_envs", ["int", "inf"]),
    "episodes: null": ("episodes", ["int", "null"]),
    "episodes: -1": ("episodes", [">= 1", "-1"]),
    "seed: -1": ("seed", [">= 0", "-1"]),
    "seed: '1'": ("seed", ["int", "'1'", "without quotes"]),
    "seeds: 5": ("seeds", ["5"]),
    "seeds: [1, x]": ("seeds[1]", ["int", "'x'"]),
    "seeds: [1, -2]": ("seeds[1]", [">= 0", "-2"]),
    "seeds: []": ("seeds", []),
    "metrics: a": ("metrics", ["'a'"]),
    "metrics: [[a]]": ("metrics[0]", ["str"]),
    "gates: success_rate >= 1": ("gates", ["success_rate >= 1"]),
    "version: 2": ("version", ["1", "2"]),
    "instances: every": ("instances", ["auto", "shared", "lane", "'every'"]),
    "success: yes": ("success", ["'yes'"]),
    "success: ok:held:-1": ("success", ["`ok:held:-1` is not a success rule"]),
    "success: {key: a, when: sometimes}": ("success.when", ["final", "any", "'sometimes'"]),
    "success: {key: 5}": ("success.key", ["str", "5"]),
    "success: {return_at_least: .nan}": ("success.return_at_least", ["finite", "nan"]),
    "success: {return_at_least: .inf}": ("success.return_at_least", ["finite", "inf"]),
    "success: {return_at_least: '9'}": ("success.return_at_least", ["float", "'9'"]),
    "success: {key: a, return_at_least: 9}": ("success", ["`key`", "`return_at_least`"]),
    "success: {when: any}": ("success", ["`key`", "`return_at_least`"]),
}


@pytest.mark.parametrize("line", WRONG)
def test_value_that_cannot_be_meant_is_refused_at_its_path(line, read):
    path, words = WRONG[line]
    error = read.refusal(BASE + line + "\n")
    assert error.where == f"r.yaml:3: {path}"
    assert [word for word in words if word not in str(error)] == []
    assert "enum" not in str(error)


AS_FLAGS = {
    "seeds: 11..13": ("seeds", (11, 12, 13)),
    "seeds: 3,1,4": ("seeds", (3, 1, 4)),
    "record: video": ("record", ("video",)),
    "record: steps, video": ("record", ("steps", "video")),
    "controls: random": ("controls", ("random",)),
}


@pytest.mark.parametrize("line", AS_FLAGS)
def test_value_may_stand_in_a_file_as_its_flag_takes_it(line, read):
    name, value = AS_FLAGS[line]
    assert getattr(read(BASE + line + "\n"), name) == value


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("return >= 475", "return >= 475"),
        ("won:any", "won, any step"),
        ("won:held:3", "won, held for 3 steps"),
        ("won", "won, last value"),
    ],
)
def test_success_may_stand_in_a_file_as_its_flag_takes_it(text, described, read):
    assert read(BASE + f"success: '{text}'\n").success_rule.describe() == described


@pytest.mark.parametrize("line", ["seeds: 3..x", "success: 'return >= much'", "record: film"])
def test_such_a_value_that_cannot_be_read_is_refused_at_its_line(line, read):
    assert read.refusal(BASE + line + "\n").where.startswith(f"r.yaml:3: {line.partition(':')[0]}")


WRONG_ENV = {
    "vectorization: snyc": ("env.vectorization", ["sync", "async", "native", "'snyc'"]),
    "autoreset: never": ("env.autoreset", ["next_step", "same_step", "disabled", "'never'"]),
    "start_method: fork": ("env.start_method", ["fork", "async"]),
    "workers: 2": ("env.workers", ["2 environment workers", "async"]),
    "workers: 0": ("env.workers", [">= 1", "0"]),
    "max_episode_steps: 0": ("env.max_episode_steps", [">= 1", "0"]),
    "max_episode_seconds: .nan": ("env.max_episode_seconds", ["nan"]),
    "max_episode_seconds: .inf": ("env.max_episode_seconds", ["finite", "inf"]),
    "max_episode_seconds: 0": ("env.max_episode_seconds", ["> 0", "0"]),
    "kwargs: [1]": ("env.kwargs", ["[1]"]),
    "imports: a": ("env.imports", ["'a'"]),
    "wrappers: [7]": ("env.wrappers[0]", ["7"]),
    "wrappers: [{kwargs: {}}]": ("env.wrappers[0]", ["name"]),
}


@pytest.mark.parametrize("part", WRONG_ENV)
def test_environment_that_cannot_be_meant_is_refused_at_its_path(part, read):
    path, words = WRONG_ENV[part]
    error = read.refusal(f"policy: {{source: zero}}\nenv:\n  id: X\n  {part}\n")
    assert error.where == f"r.yaml:4: {path}"
    assert [word for word in words if word not in str(error)] == []
    assert "enum" not in str(error)
    assert "Object" not in str(error)


def test_native_environments_reset_in_their_own_mode(read):
    text = "policy: {source: zero}\nenv: {id: X, vectorization: native, autoreset: disabled}\n"
    assert "autoreset mode of its own" in read.refusal(text).cause


@pytest.mark.parametrize("text", ["[a, b]\n", "just words\n", "5\n"])
def test_route_that_is_no_mapping_is_refused(text, read):
    assert "a route is a mapping" in read.refusal(text).cause


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy: {source: zero}\n", "no environment is named"),
        ("env: {id: X}\n", "no policy is named"),
        ("env: {id: ''}\npolicy: {source: zero}\n", "no environment is named"),
        ("", "no environment is named"),
    ],
)
def test_route_without_environment_or_policy_is_refused(text, words, read):
    assert words in read.refusal(text).cause


def test_section_of_the_wrong_type_is_not_dropped_for_a_flag(read):
    error = read.refusal("env: {id: X}\npolicy: pick.py\n", policy__params__gain=2)
    assert "pick.py" in str(error)


@pytest.mark.parametrize(("seeds", "word"), [("[1, 2]", "fewer"), ("[1, 2, 3, 4]", "more")])
def test_seeds_must_be_as_many_as_episodes(seeds, word, read):
    error = read.refusal(BASE + f"seeds: {seeds}\nepisodes: 3\n")
    assert f"{word} than 3 episodes" in error.cause
    assert error.where == "r.yaml:3: seeds"


def test_error_of_a_flags_value_names_the_flag(read):
    assert read.refusal(BASE, horizon=0).where == "--horizon"
    assert read.refusal(BASE, success={"key": "a", "when": "never"}).where == "--success"


def test_message_about_a_long_value_stays_short(read):
    error = read.refusal("policy: {source: zero}\nenv: [" + "abcdef, " * 5000 + "]\n")
    assert len(str(error)) < 1000


def test_a_bound_on_the_return_is_a_rule(read):
    rule = read(BASE + "success: {return_at_least: 475}\n").success_rule
    assert (rule.return_at_least, rule.describe()) == (475.0, "return >= 475")


@pytest.mark.parametrize("seed", ["seed: 5", "seed: 0"])
def test_a_file_that_counts_from_a_seed_and_lists_seeds_is_refused(read, seed):
    error = read.refusal(BASE + seed + "\nseeds: [7]\n")
    assert "a list of seeds contradict one another" in error.cause
    assert error.where == "r.yaml:4: seeds"
    assert read(BASE + seed + "\nseeds: null\n").seeds is None
    assert read(BASE + seed + "\nseeds: [7]\n", seeds=[1, 2]).episode_seeds == (1, 2)


def test_the_hash_of_a_route_is_of_the_bytes_that_were_read(tmp_path):
    # A pipe can be read once only.
    path, text = tmp_path / "pipe", BASE.encode()
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(text,))
    writer.start()
    route, digest = read_route(path, flagged())
    writer.join()
    assert (route.env.id, digest) == ("X", hashlib.sha256(text).hexdigest())
    assert read_route(None, flagged(env__id="X", policy__source="zero"))[1] is None
