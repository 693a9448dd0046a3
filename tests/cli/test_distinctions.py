"""Distinctions: what the records of two runs say of what they differ in."""

from __future__ import annotations

import pytest
from stored import record

from rlmesh_cli.distinctions import distinction_lines, distinction_records, distinctions

ONE, OTHER = "1" * 64, "2" * 64


def lines(base: dict, new: dict) -> list[str]:
    made = [record(changes.pop("seeds", [0, 1]), **changes) for changes in (base, new)]
    return [*distinction_lines(distinctions(*made))]


def file(name: str, sha256: str, folder: str = "/there") -> dict:
    return {"path": f"{folder}/{name}", "bytes": 3, "sha256": sha256}


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [
        ({}, {}, []),
        ({"route__policy__params": {"gain": 1}}, {"route__policy__params": {"gain": -1}},
         ["policy.params.gain: 1 in BASE, -1 in NEW"]),
        ({"policy__file": file("policy.py", ONE)}, {"policy__file": file("policy.py", OTHER)},
         ["policy: policy.py 111111111111.. in BASE, policy.py 222222222222.. in NEW"]),
        ({"policy__file": None}, {"policy__file": None, "route__policy__source": "hold"},
         ["policy: policy.py in BASE, hold in NEW"]),
        ({"policy__weights": [file("pi.pt", ONE)]}, {"policy__weights": [file("pi.pt", OTHER)]},
         ["weights[pi.pt]: 111111111111.. in BASE, 222222222222.. in NEW"]),
        ({"modules": [file("nets.py", ONE)]}, {"modules": [file("nets.py", OTHER), file("more.py", ONE)]},
         ["modules.nets.py: 111111111111.. in BASE, 222222222222.. in NEW",
          "modules.more.py: not there in BASE, 111111111111.. in NEW"]),
        ({"versions__torch": "2.1"}, {"versions__numpy": "1.0"},
         ["versions.numpy: 2.4.6 in BASE, 1.0 in NEW", "versions.torch: 2.1 in BASE, not there in NEW"]),
        ({"policy__corner": "predict"}, {"policy__corner": "predict_batch"},
         ["corner: predict in BASE, predict_batch in NEW"]),
        ({"git": {"commit": "a" * 40, "branch": "main", "dirty": False}},
         {"git": {"commit": "a" * 40, "branch": "other", "dirty": True}},
         ["git: aaaaaaaaaaaa in BASE, aaaaaaaaaaaa with changes in NEW"]),
        ({"seeds": [0, 1]}, {"seeds": [*range(30)]}, ["seeds: [0, 1] in BASE, 30 from 0 to 29 in NEW"]),
    ],
)  # fmt: skip
def test_what_differs_is_told_with_both_values(base, new, said):
    assert lines(base, new) == said


@pytest.mark.parametrize(
    "changes",
    [
        {"route__num_envs": 8},
        {"host": {"name": "other"}},
        {"modules": [file("nets.py", ONE, "/another/checkout")]},
        {"versions__rlmesh_policy_x_0": "2"},
        {"git": None},
    ],
)
def test_what_makes_no_difference_is_not_told(changes):
    usual = {"modules": [file("nets.py", ONE)], "git": {"commit": "a" * 40}}
    assert lines({**usual}, usual | changes) == []


def test_of_many_places_of_a_field_three_are_told():
    params = dict.fromkeys("abcde", 1)
    found = lines({"route__policy__params": params}, {"route__policy__params": dict.fromkeys(params, 2)})
    assert found[2:] == ["policy.params.c: 1 in BASE, 2 in NEW", "policy.params: and 2 more"]


def test_other_programs_get_the_values_themselves():
    spec = {"input": {"pos": {"std": [2.5] * 40}}}
    found = distinctions(record([0]), record([0], route__model_spec=spec, versions__torch="2"))
    assert distinction_records(found) == [
        {"field": "model_spec", "base": None, "new": spec},
        {"field": "versions.torch", "new": "2"},
    ]


def test_records_without_what_is_recorded_now_are_read():
    old = {"route": {"env": {"id": "E-v0"}, "policy": {"source": "zero"}}, "seeds": [0], "success_rule": "x"}
    bare = {**old, "route": {"env": {"id": "E-v0"}}}
    assert distinctions(old, old) == {}
    assert list(distinctions(old, bare)) == ["policy"]
