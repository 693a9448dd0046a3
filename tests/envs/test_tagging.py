"""Tagging: what an environment says of itself must be sound, and belongs to it alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from rlmesh_adapters.documents.actions import Action, Actuator
from rlmesh_adapters.documents.publishing import published
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.tags import EnvTags, Field, Split
from rlmesh_adapters.resolve.errors import ResolveError
from rlmesh_envs.tagging import tag

TAGS = EnvTags(
    observation=Split(Field("x/cart", 2), Field("x/pole", 2)),
    action=Action(Actuator("x/push", 1)),
)
KEY = "rlmesh.adapters.v1.env_tags"


def test_tags_stand_in_the_metadata_of_one_environment():
    env, other = gym.make("CartPole-v1"), gym.make("CartPole-v1")
    assert tag(env, TAGS) is env
    assert env.metadata[KEY]["observation"]["fields"][1]["role"] == "x/pole"
    assert read_tags(env.metadata[KEY]) == TAGS
    assert KEY not in other.metadata


def test_tags_that_do_not_fit_the_spaces_are_refused():
    narrow = {"observation": {"type": "state", "role": "x/s", "encoding": "rot6d"}, "action": {"components": []}}
    with pytest.raises(ResolveError, match=r"rot6d \(6 dims\) but the space width is 4"):
        tag(gym.make("CartPole-v1"), narrow)


# side, a node of the document, what is put into it, the path that the error names
UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("env", {"observation": {"a": {"type": "state", "role": "x/s", "wat": 1}}}, "observation.a.wat"),
    ("env", {"observation": {"a": {"type": "sonar", "role": "x/s"}}}, "observation.a.type"),
    ("env", {"action": {"components": [{"role": "x/a", "dim": 1, "wat": 1}]}}, "action.components[0].wat"),
    ("model", {"input": {"type": "text", "role": "x/t", "wat": 1}}, "input.wat"),
    ("model", {"output": {"components": [{"role": "x/a", "dim": 1, "wat": 1}]}}, "output.components[0].wat"),
]


@pytest.mark.parametrize(("side", "part", "path"), UNKNOWN, ids=[path for *_, path in UNKNOWN])
def test_what_nobody_knows_is_kept_when_read_and_refused_when_published(side, part, path):
    whole: dict[str, Any] = {"observation": {}, "action": {"components": []}}
    if side == "model":
        whole = {"input": {}, "output": {"components": []}}
    document = (read_tags if side == "env" else read_spec)({**whole, **part})
    assert "wat" in str(document.to_dict()) or "sonar" in str(document.to_dict())
    with pytest.raises(DocumentError) as caught:
        published(document)
    assert caught.value.where == path


def test_fields_that_are_for_others_are_published():
    tags = read_tags(
        {
            "observation": {"type": "state", "role": "x/s", "x-note": 1, "ext.maker.v": [2]},
            "action": {"components": []},
        }
    )
    assert published(tags)["observation"]["x-note"] == 1
