"""Several tests at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmesh_cli.judgement.multiple import holm

p_values = st.lists(st.floats(0, 1), max_size=12)


def test_adjusted_values_are_those_worked_out_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


@given(p_values)
def test_order_stays_and_nothing_falls(values):
    adjusted = holm(values)
    assert all(value <= higher <= 1 for value, higher in zip(values, adjusted, strict=True))
    ranked = sorted(range(len(values)), key=values.__getitem__)
    assert [adjusted[index] for index in ranked] == sorted(adjusted)


@given(p_values, st.floats(0.001, 0.5))
def test_found_is_what_stepping_down_finds(values, bar):
    found = []
    for rank, value in enumerate(sorted(values)):
        if (len(values) - rank) * value > bar:
            break
        found.append(value)
    assert sum(value <= bar for value in holm(values)) == len(found)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_no_p_value_is_refused(value):
    with pytest.raises(ValueError, match=rf"^a p-value must be in \[0, 1\], not {value}$"):
        holm([0.5, value])
