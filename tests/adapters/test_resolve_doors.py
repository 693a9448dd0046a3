"""The doors that both documents pass, texts and customs, and what is noted in which order."""

from __future__ import annotations

import os
from typing import Any

import pytest
from adapter_routes import (
    NUMBER,
    NUMBER_TAG,
    camera,
    free,
    image,
    lines,
    notes_of,
    refused,
    resolved,
    state,
    tag,
)
from gymnasium import spaces

from rlmesh_adapters.resolve.errors import ResolveError

TEXT = {"type": "text", "role": "text/instruction"}


@pytest.mark.parametrize(
    ("leaf", "name"),
    [(image("x/r", wat=1), 'feature "a.b"'), ({**tag("x/s"), "wat": 1}, 'feature "a.b"')],
)
def test_unknown_fields_of_tags_are_refused_when_they_are_used(leaf: Any, name: str) -> None:
    error = refused(spaces.Dict({"a": spaces.Dict({"b": NUMBER})}), {"a": {"b": leaf}}, {})
    assert (error.code, error.cause) == ("UnsupportedKind", f'{name} declares unrecognized field "wat"')
    assert "x-" in error.mend


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drives": [{"role": "x/drive", "dim": 1, "wat": 1}]}, 'action component[0] (role "x/drive")'),
        ({"output": [{"dim": 1}, {"role": "x/g", "dim": 1, "wat": 1}]}, 'action component[1] (role "x/g")'),
        ({"wanted": [state("x/number", wat=1)]}, 'model input "[0]"'),
        ({"wanted": {"type": "text", "role": "r", "wat": 1}}, 'model input "<root>"'),
    ],
)
def test_unknown_fields_elsewhere_are_refused_when_they_are_used(options: Any, words: str) -> None:
    error = refused(**options)
    assert (error.code, error.cause) == ("UnsupportedKind", f'{words} declares unrecognized field "wat"')


def test_fields_for_others_are_passed_over() -> None:
    extra = {"x-note": 1, "ext.vendor": [2]}
    drive = {"role": "x/drive", "dim": 1, **extra}
    route = resolved(NUMBER, {**NUMBER_TAG, **extra}, state("x/number", **extra), drives=[drive], output=[drive])
    assert notes_of(route) == []


def test_unknown_fields_come_before_anything_else() -> None:
    """Section 4: the read door comes first, the environment's side before the model's."""
    tags = {**image("x/r"), "wat": 1}
    assert refused(NUMBER, tags, state("missing", wrong=1)).code == "UnsupportedKind"
    assert '"wat"' in refused(NUMBER, tags, state("missing", wrong=1)).cause


MIC = {"type": "audio", "role": "audio/mic"}


def test_an_unknown_kind_of_the_environment_is_ignored_with_a_note() -> None:
    route = resolved(spaces.Dict({"n": NUMBER, "mic": free(9)}), {"n": NUMBER_TAG, "mic": MIC}, state("x/number"))
    message = (
        'env feature "mic" (role "audio/mic"): unrecognized kind "audio"; ignored (no model input requires it)'
    )
    assert [(note.code, note.severity, note.message) for note in route.notes] == [
        ("feature-ignored", "info", message)
    ]
    assert lines(route)[-2:] == ["dropped:", f"  {message}"]


@pytest.mark.parametrize(
    "wanted",
    [state({"role": "audio/mic", "optional": True, "dim": 1}), {"type": "text", "role": "audio/mic", "fill": "x"}],
)
def test_an_unknown_kind_that_a_model_needs_is_refused_before_any_fallback(wanted: Any) -> None:
    error = refused(spaces.Dict({"mic": free(9)}), {"mic": MIC}, wanted)
    assert error.code == "UnsupportedKind"
    assert 'the env offers role "audio/mic" only as unrecognized kind "audio"' in error.cause


def test_an_unknown_kind_of_the_model_is_refused() -> None:
    error = refused(NUMBER, NUMBER_TAG, {"a": {"type": "imagee", "role": "r"}})
    assert (error.code, error.cause) == (
        "UnsupportedKind",
        'model input "a" is of unrecognized kind "imagee"',
    )
    assert '["custom", "image", "state", "text"]' in error.mend


def test_texts_name_what_there_is() -> None:
    space = spaces.Dict({"say": spaces.Text(9)})
    error = refused(space, {"say": TEXT}, {"goal": {"type": "text", "role": "text/instructon"}})
    assert (error.code, error.cause) == (
        "MissingRole",
        'model input "goal" needs text role "text/instructon" but the env only has ["text/instruction"]',
    )
    assert error.mend == 'did you mean "text/instruction"?'
    route = resolved(space, {"say": TEXT}, {"goal": {"type": "text", "role": "x/goal", "fill": "go"}})
    assert lines(route)[1] == '  "goal" <- text fill "go"'
    assert route.unused == ("text/instruction",)


def test_customs_that_are_only_named_are_not_run() -> None:
    for transform in ("os:getcwd", "host:goal"):
        error = refused(NUMBER, NUMBER_TAG, {"a": {"type": "custom", "transform": transform}})
        assert (error.code, transform in error.cause) == ("UntrustedEntrypoint", True)
    trusting: dict[str, Any] = {"import_function": lambda name: {"os:getcwd": os.getcwd}[name]}
    route = resolved(NUMBER, NUMBER_TAG, {"a": {"type": "custom", "transform": "os:getcwd"}}, **trusting)
    assert lines(route)[1] == '  "a" <- custom transform'
    with pytest.raises(ResolveError, match="host:goal"):
        resolved(NUMBER, NUMBER_TAG, {"type": "custom", "transform": "host:goal"}, **trusting)
    assert lines(resolved(NUMBER, NUMBER_TAG, {"type": "custom", "transform": len}))[1].endswith(
        "custom transform"
    )


def test_names_that_nobody_registered_are_an_info_each() -> None:
    space = spaces.Dict({"b": NUMBER, "a": NUMBER})
    route = resolved(
        space,
        {"b": tag("y/b"), "a": tag("x/a")},
        state("y/b"),
        drives=[{"role": "y/c", "dim": 1}],
        output=[{"role": "y/c", "dim": 1}],
    )
    assert [(note.code, note.severity) for note in route.notes] == [("role-unregistered", "info")] * 2
    assert [note.message.split('"')[1] for note in route.notes] == ["y/b", "y/c"]


def test_notes_of_what_is_dropped_come_first_by_their_text_then_those_of_the_tags() -> None:
    """Section 9.1: resolving's notes sorted, then layout hints and roles, then those of the plans."""
    space = spaces.Dict({"cam": camera(3, 224, 224), "mic": free(1), "n": free(1)})
    route = resolved(
        space,
        {"cam": image(layout="hwc"), "mic": MIC, "n": tag("y/n")},
        {"a": image("image/wrist"), "b": state({"role": "y/n", "range": [0, 1]})},
    )
    assert notes_of(route) == [
        ("info", "feature-ignored"),
        ("caution", "camera-rebound"),
        ("info", "state-range-unused"),
        ("info", "image-layout"),
        ("info", "role-unregistered"),
    ]
    assert lines(route)[-4:] == ["dropped:", *(f"  {note.message}" for note in route.notes[:3])]
