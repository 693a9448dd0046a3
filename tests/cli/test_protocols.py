"""Protocols: what two runs must have in common."""

from __future__ import annotations

import pytest
from cli_toys import mended
from stored import rows, stored

from rlmesh_cli.protocols import FIELDS, ProtocolError, agree

ROWS = rows([True, False])
SHOP = [{"path": "/there/shop.py", "bytes": 9, "sha256": "a" * 64}]

#: Field -> (change of the record of NEW, what is said of it).
CHANGES = {
    "env": ({"route__env__id": "Acrobot-v1"}, "CartPole-v1 in BASE, Acrobot-v1 in NEW"),
    "env.kwargs": ({"route__env__kwargs": {"gravity": 3}}, "none in BASE, gravity: 3 in NEW"),
    "env.wrappers": (
        {"route__env__wrappers": [{"name": "FlattenObservation"}]},
        "none in BASE, name: FlattenObservation in NEW",
    ),
    "env.version": ({"versions__gymnasium": "0.9"}, "gymnasium: 1.4.0 in BASE, gymnasium: 0.9 in NEW"),
    "env.files": (
        {"env__files": [{"path": "/here/shop.py", "bytes": 9, "sha256": "b" * 64}]},
        "shop.py: aaaaaaaaaaaa.. in BASE, shop.py: bbbbbbbbbbbb.. in NEW",
    ),
    "horizon": ({"route__horizon": 8}, "1 in BASE, 8 in NEW"),
    "ensemble": ({"route__ensemble": {"decay": 0.1}}, "none in BASE, decay: 0.1 in NEW"),
    "limits.steps": ({"limits__steps": 300}, "500 in BASE, 300 in NEW"),
    "limits.seconds": ({"limits__seconds": 1.5}, "none in BASE, 1.5 in NEW"),
    "success_rule": ({"success_rule": "return >= 9"}, "is_success, last value in BASE, return >= 9 in NEW"),
    "adapter": ({"adapter": ["input", " x"]}, "none in BASE, input; x in NEW"),
    "seeded": ({"seeded": False}, "false in NEW"),
}


def refusal(changes, *allowed: str, of_base=None) -> str:
    with pytest.raises(ProtocolError) as caught:
        agree(stored(ROWS, **{"env__files": SHOP, **(of_base or {})}), stored(ROWS, **changes), allowed)
    return str(mended(caught.value))


def test_runs_of_one_protocol_agree():
    assert agree(stored(ROWS), stored(ROWS), ()) == []


def test_every_field_is_tried_here():
    assert tuple(CHANGES) == FIELDS


@pytest.mark.parametrize("field", CHANGES)
def test_field_that_differs_is_refused_with_both_values_unless_it_is_allowed(field):
    changes, words = CHANGES[field]
    said = refusal(changes)
    assert f"{field}  {words}\n" in said
    assert f"let the difference pass with --allow {field}" in said
    passed = agree(stored(ROWS, env__files=SHOP), stored(ROWS, **changes), (field,))
    assert [(one.field, one.describe()) for one in passed] == [(field, words)]


def test_all_that_differ_are_named_at_once():
    said = refusal({"route__horizon": 8, "limits__steps": 300}, "env")
    assert "horizon       1 in BASE, 8 in NEW\n        limits.steps  500 in BASE, 300 in NEW" in said
    assert "--allow horizon --allow limits.steps" in said


def test_what_is_allowed_lets_nothing_else_pass():
    said = refusal({"route__horizon": 8, "limits__steps": 300}, "horizon")
    assert "limits.steps" in said
    assert "horizon" not in said


def test_two_runs_without_seeds_are_refused_too():
    assert "seeded  false in BASE and NEW" in refusal({"seeded": False}, of_base={"seeded": False})


def test_long_values_are_shown_where_they_part():
    lines = ["input", "  image: bilinear 224", "  state: 8"]
    said = refusal({"adapter": [*lines[:2], "  state: 7"]}, of_base={"adapter": lines})
    assert "adapter  state: 8 in BASE, state: 7 in NEW" in said
    said = refusal({"route__env__kwargs": {"a": 1, "b": 2}}, of_base={"route__env__kwargs": {"a": 1, "b": 3}})
    assert "env.kwargs  b: 3 in BASE, b: 2 in NEW" in said


def test_values_too_long_for_a_line_are_named_by_their_path():
    def kwargs(scale: float, size: int) -> dict[str, object]:
        shaping = {"kind": "a text that fills the line, and would leave no room", "scale": scale}
        return {"route__env__kwargs": {"reward": {"shaping": shaping}, "size": size}}

    said = refusal(kwargs(2.0, 3), of_base=kwargs(1.0, 3))
    assert "env.kwargs  reward.shaping.scale: 1.0 in BASE, 2.0 in NEW\n" in said
    said = refusal(kwargs(2.0, 4), of_base=kwargs(1.0, 3))
    assert "env.kwargs  reward.shaping.scale: 1.0 in BASE, 2.0 in NEW, and 1 more\n" in said
    said = refusal({"success_rule": f"{'x' * 90} > 2"}, of_base={"success_rule": f"{'x' * 90} > 1"})
    assert "success_rule  ...xxxxxxxxx > 1 in BASE, ...xxxxxxxxx > 2 in NEW\n" in said


def test_wrapper_by_name_is_the_same_as_one_without_arguments():
    ours, theirs = {"route__env__wrappers": ["A"]}, {"route__env__wrappers": [{"name": "A"}]}
    assert agree(stored(ROWS, **ours), stored(ROWS, **theirs), ()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"versions__numpy": "1.0"},
        {"versions__torch": "9.9"},
        {"versions__python": "3.99"},
        {"versions__only_here": "1"},
        {"versions__rlmesh_policy_x_0": "2"},
        {"route__num_envs": 8},
        {"route__policy__source": "other.py"},
        {"versions__mine": "2", "route__policy__source": "mine.nets:Big"},
        {"env__files": []},
        {"env__files": [{"path": "/here/other.py", "bytes": 9, "sha256": "b" * 64}]},
        {
            "env__files": [{"path": "/here/shop.py", "bytes": 9, "sha256": "b" * 64}],
            "policy__file": {"path": "/here/shop.py", "bytes": 9, "sha256": "b" * 64},
        },
    ],
)
def test_what_is_no_part_of_the_protocol_may_differ(changes):
    base = stored(
        ROWS,
        versions__rlmesh_policy_x_0="1",
        versions__mine="1",
        route__policy__source="mine.nets:Big",
        env__files=SHOP,
    )
    assert agree(base, stored(ROWS, **changes), ()) == []


def test_version_of_the_package_of_the_environment_counts():
    said = refusal({"versions__gym_pusht": "0.2"}, of_base={"versions__gym_pusht": "0.1"})
    assert "env.version  gym_pusht: 0.1 in BASE, gym_pusht: 0.2 in NEW" in said


def test_files_of_one_name_in_two_folders_hide_nothing_from_one_another():
    def files(*hashes: str) -> list[dict[str, object]]:
        return [{"path": f"/p{place}/env.py", "bytes": 1, "sha256": one * 64} for place, one in enumerate(hashes)]

    said = refusal({"env__files": files("b", "c")}, of_base={"env__files": files("a", "c")})
    assert (
        "env.files  env.py: aaaaaaaaaaaa.., cccccccccccc.. in BASE, env.py: bbbbbbbbbbbb.., cccccccccccc.. in"
        in said
    )


def test_unknown_field_is_refused_with_the_known_ones():
    with pytest.raises(ProtocolError) as caught:
        agree(stored(ROWS), stored(ROWS), ("horizons",))
    assert "`horizons` is no field of the protocol; did you mean horizon?" in mended(caught.value).cause
    assert all(field in caught.value.mend for field in FIELDS)


def test_text_of_users_is_shortened():
    said = refusal({"route__env__kwargs": {"text": "x" * 500}})
    assert max(map(len, said.splitlines())) < 200
