"""Document: values know their line."""

from __future__ import annotations

import pytest

from rlmesh_cli.documents import Document, show_path

DOCUMENT = Document("route.yaml", {}, {("env",): 2, ("env", "wrappers"): 4, ("env", "wrappers", 0): 5})


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), ""),
        (("seed",), "seed"),
        (("env", "wrappers", 0, "name"), "env.wrappers[0].name"),
        (("seeds", 3), "seeds[3]"),
        (("env", "kwargs", "a.b"), "env.kwargs.a.b"),
    ],
)
def test_paths_are_shown_with_dots_and_brackets(path, shown):
    assert show_path(path) == shown


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("env", "wrappers", 0), "route.yaml:5: env.wrappers[0]"),
        (("env", "wrappers", 0, "name"), "route.yaml:5: env.wrappers[0].name"),
        (("env", "wrappers", 1), "route.yaml:4: env.wrappers[1]"),
        (("env", "id"), "route.yaml:2: env.id"),
        (("policy",), "route.yaml:1: policy"),
        ((), "route.yaml:1"),
    ],
)
def test_place_is_the_line_of_the_value_or_of_what_is_nearest_around_it(path, place):
    assert DOCUMENT.place(path) == place
