from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import ACTION_SPACES, contexts, seam_of
from gymnasium import spaces

from rlmesh_adapters.baselines import BASELINES, RandomPolicy, ZeroPolicy
from rlmesh_adapters.errors import LoadError
from rlmesh_envs.spaces import view_of

every_space = pytest.mark.parametrize("space", ACTION_SPACES.values(), ids=ACTION_SPACES.keys())


@every_space
def test_both_act_inside_every_space_of_arrays(space: spaces.Space[Any]) -> None:
    view, seam, context = view_of(space), seam_of(space), contexts(0)[0]
    for action in (RandomPolicy(view).predict(None, context), ZeroPolicy(view).predict(None)):
        checked = seam.check(seam.convert([action], (1,), "here"))
        assert not checked.failures
        assert checked.clipped is None or not checked.clipped.any()


def test_random_draws_from_the_generator_of_the_episode() -> None:
    policy = RandomPolicy(view_of(ACTION_SPACES["box"]))
    first, second = contexts(0, 1)
    together = [[policy.predict(None, context).tolist() for context in (first, second)] for _ in range(3)]
    alone = [[policy.predict(None, context).tolist() for _ in range(3)] for context in contexts(0, 1)]
    assert [list(actions) for actions in zip(*together, strict=True)] == alone
    assert alone[0] != alone[1]


@pytest.mark.parametrize(
    ("space", "zero"),
    [
        (ACTION_SPACES["box"], np.float32([0, 0])),
        (spaces.Discrete(3, start=4), np.int64(4)),
        (spaces.Box(np.float32([-3]), np.float32([-2])), np.float32([-2])),
    ],
)
def test_zero_is_clipped_into_the_bounds(space: spaces.Space[Any], zero: Any) -> None:
    np.testing.assert_array_equal(ZeroPolicy(view_of(space)).predict(None), zero)


@pytest.mark.parametrize("name", ["random", "zero"])
@pytest.mark.parametrize("inside", [spaces.Text(3), spaces.Sequence(spaces.Discrete(2))], ids=type)
def test_spaces_without_numbers_are_refused_when_the_policy_is_built(name: str, inside: Any) -> None:
    space = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Tuple((inside,))})
    with pytest.raises(LoadError) as raised:
        BASELINES[name](view_of(space))
    assert raised.value.cause == f"the built-in policy `{name}` cannot act in {inside!r}"
    assert raised.value.mend == "give a policy file of your own"
