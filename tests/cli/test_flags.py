"""Flags: what is typed becomes values of the route."""

from __future__ import annotations

import pytest
from cli_toys import mended
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.evaluation_command import Request
from rlmesh_cli.flags import parse_seeds, read_flags


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3,1,4", [3, 1, 4]),
        ("11..15", [11, 12, 13, 14, 15]),
        ("0..0", [0]),
        ("1..2, 9 ,1..2", [1, 2, 9, 1, 2]),
        ("0", [0]),
    ],
)
def test_seeds_are_numbers_and_ranges_with_both_ends(text, seeds):
    assert parse_seeds(text) == seeds


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 5)), min_size=1, max_size=4))
def test_ranges_are_read_as_python_counts_them(ranges):
    text = ",".join(f"{first}..{first + more}" for first, more in ranges)
    assert parse_seeds(text) == [seed for first, more in ranges for seed in range(first, first + more + 1)]


@pytest.mark.parametrize(
    "text", ["", "1,,2", "-1", "5..3", "1..2..3", "1.5", "x", "1e3", "²", "0..99999999999", "9" * 5000]
)
def test_what_is_no_seed_is_refused(text):
    with pytest.raises(RouteError, match="is not a seed") as caught:
        parse_seeds(text)
    assert mended(caught.value).where == "--seeds"
    assert len(str(caught.value)) < 1000


def test_flags_that_are_not_given_say_nothing():
    flags = read_flags(Request())
    assert (flags.values, flags.names) == ({}, {})


def test_every_flag_lands_at_its_place_in_the_route():
    flags = read_flags(
        Request(
            policy="p.py",
            env="E",
            env_args=("g=9.8", "name= x y ", "flag=true", "empty=", "list=[1, a]"),
            policy_args=("lr=1e-3",),
            episodes=2,
            num_envs=3,
            seed=4,
            seeds="5..6",
            horizon=7,
            max_episode_steps=8,
            max_episode_seconds=9.5,
            vectorization="async",
            start_method="fork",
            autoreset="disabled",
            instances="lane",
            success="won:any",
            metrics=("speed", "height"),
            gates=("errors == 0",),
        )
    )
    assert flags.values == {
        ("policy", "source"): "p.py",
        ("env", "id"): "E",
        ("env", "kwargs", "g"): 9.8,
        ("env", "kwargs", "name"): "x y",
        ("env", "kwargs", "flag"): True,
        ("env", "kwargs", "empty"): "",
        ("env", "kwargs", "list"): [1, "a"],
        ("policy", "params", "lr"): 0.001,
        ("episodes",): 2,
        ("num_envs",): 3,
        ("seed",): 4,
        ("seeds",): [5, 6],
        ("horizon",): 7,
        ("env", "max_episode_steps"): 8,
        ("env", "max_episode_seconds"): 9.5,
        ("env", "vectorization"): "async",
        ("env", "start_method"): "fork",
        ("env", "autoreset"): "disabled",
        ("instances",): "lane",
        ("success",): {"key": "won", "when": "any"},
        ("metrics",): ["speed", "height"],
        ("gates",): ["errors == 0"],
    }
    assert flags.names.keys() == flags.values.keys()
    assert flags.names[("env", "max_episode_steps")] == "--max-episode-steps"
    assert flags.names[("env", "kwargs", "g")] == "--env-arg g"
    assert flags.names[("metrics",)] == "--metric"


def test_zero_and_empty_are_values_too():
    assert read_flags(Request(seed=0, env="")).values == {("seed",): 0, ("env", "id"): ""}


def test_value_may_hold_an_equals_sign():
    assert read_flags(Request(env_args=("url=a=b",))).values == {("env", "kwargs", "url"): "a=b"}


def test_colour_is_not_taken_for_a_comment():
    values = read_flags(Request(env_args=("color=#ff0000",))).values
    assert values == {("env", "kwargs", "color"): "#ff0000"}


@pytest.mark.parametrize("flag", ["--env-arg", "--policy-arg"])
@pytest.mark.parametrize("text", ["x", "=5", " = 5", ""])
def test_pair_without_name_or_value_is_refused(flag, text):
    given_flags = {"--env-arg": {"env_args": (text,)}, "--policy-arg": {"policy_args": (text,)}}[flag]
    with pytest.raises(RouteError, match="is not NAME=VALUE") as caught:
        read_flags(Request(**given_flags))
    assert mended(caught.value).where == flag


@pytest.mark.parametrize("value", ["[1", "*x", "None", "@home", "a: b: c", "\0", "{a: 1, a: 2}"])
def test_value_that_is_no_yaml_is_refused_by_the_name_of_its_flag(value):
    with pytest.raises(RouteError) as caught:
        read_flags(Request(env_args=("fine=1", f"gain={value}")))
    assert "--env-arg" in mended(caught.value).where
    assert "gain" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("won", {"key": "won"}),
        ("won:any", {"key": "won", "when": "any"}),
        ("info.won : final", {"key": "info.won", "when": "final"}),
        ("return >= 475", {"return_at_least": 475}),
        ("return>=-1e-3", {"return_at_least": -0.001}),
        (" return  >=  4.5 ", {"return_at_least": 4.5}),
    ],
)
def test_success_is_a_key_or_a_bound_on_the_return(text, rule):
    assert read_flags(Request(success=text)).values == {("success",): rule}


@pytest.mark.parametrize(
    "text",
    [
        *("", ":any", "return > 5", "return >=", "return <= 5", "return >= 5 or so"),
        *(
            "ok:held:-1",
            "ok:held:1.5",
            "ok:held:ten",
            "ok:held:1e3",
            "ok:held:",
            "ok:held:9999999999",
            "ok:a-b",
            "a:b:any",
        ),
    ],
)
def test_success_that_is_no_rule_is_refused(text):
    with pytest.raises(RouteError) as caught:
        read_flags(Request(success=text))
    assert mended(caught.value).where == "--success"
    assert ("a key that holds a colon stands in a route file" in caught.value.mend) is (":" in text)
