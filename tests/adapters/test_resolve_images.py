"""Cameras matched with what a model wants to see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_routes import camera, image, lines, notes_of, refused, resolved
from gymnasium import spaces

PRIMARY = image()


def of_camera(space: spaces.Space[Any] | None = None, tags: Any = PRIMARY, **fields: Any) -> Any:
    """Resolve one camera, 8 high and 8 wide unless said otherwise."""
    return resolved(camera(8, 8) if space is None else space, tags, image(**fields))


def error_of(space: spaces.Space[Any] | None = None, tags: Any = PRIMARY, **fields: Any) -> Any:
    return refused(camera(8, 8) if space is None else space, tags, image(**fields))


def line_of(*args: Any, **fields: Any) -> str:
    """Return what is said of the camera's steps."""
    return lines(of_camera(*args, **fields))[1].removeprefix('  "<root>" <- ')


@pytest.mark.parametrize(
    ("space", "layout", "hint"),
    [
        ((3, 224, 224), "hwc", "chw"),
        ((224, 224, 3), "chw", "hwc"),
        ((224, 224, 6), "hwc", None),
        ((3, 4, 3), "hwc", None),
        ((6, 224, 224), "hwc", None),
    ],
)
def test_a_layout_that_looks_wrong_is_an_info(space: tuple[int, int, int], layout: str, hint: str | None) -> None:
    """Section 16; a shape of threes says nothing (K26)."""
    route = resolved(camera(*space), image(layout=layout), {})
    assert notes_of(route) == ([("info", "image-layout")] if hint else [])
    if hint:
        said = f'image "image/primary": shape implies 224 channels under layout={layout}; this looks like {hint}'
        assert said in route.notes[0].message


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"resample": "bicubic"}, "Unsupported", 'unsupported resample "bicubic"'),
        ({"dtype": "float"}, "Unsupported", 'unknown dtype "float"'),
        ({"dtype": "Uint8"}, "Unsupported", 'unknown dtype "Uint8"'),
        ({"dtype": "unspecified"}, "Unsupported", 'unknown dtype "unspecified"'),
        ({"channels": 4}, "Unsupported", 'wants 4 channels but camera "image/primary" has 3'),
        ({"fill": 0}, "Unsupported", "has a fill of 0, but is not optional"),
        ({"normalize": True}, "Unsupported", "normalized numbers do not fit into dtype uint8"),
        ({"normalize": [-1, 1], "dtype": "int32"}, "Unsupported", "do not fit into dtype int32"),
        ({"normalize": True, "dtype": "bool"}, "Unsupported", "do not fit into dtype bool"),
        ({"mean": [1, 2, 3], "std": [1, 1, 1]}, "Unsupported", "mean and std need a float dtype, got uint8"),
        (
            {"mean": [1, 2], "std": [1, 1], "dtype": "float32"},
            "DimMismatch",
            "mean has 2 numbers for 3 channels",
        ),
        ({"height": 0}, "Unsupported", "height is 0"),
        ({"width": 0}, "Unsupported", "width is 0"),
        ({"channels": 0}, "Unsupported", "channels is 0"),
        (
            {"channel_order": "bgr"},
            "Unsupported",
            'wants channel order bgr, but camera "image/primary" does not say',
        ),
        ({"height": 16}, "Unsupported", "the aspect ratio changes from 8x8 to 16x8 and no fit is declared"),
        ({"height": 3, "width": 4}, "Unsupported", "the aspect ratio changes from 8x8 to 3x4 and no fit"),
        ({"height": 3, "width": 4, "fit": ["zoom"]}, "Unsupported", 'no fit of ["zoom"] is known'),
        ({"height": 4, "width": 4, "fit": "zoom"}, "Unsupported", 'no fit of ["zoom"] is known'),
        ({"height": 16, "width": 16}, "Unsupported", "would upscale the camera from 8x8 to 16x16"),
        (
            {"height": 16, "width": 4, "fit": ["stretch", "crop"]},
            "Unsupported",
            "from 8x8 to 16x4 and every declared fit would upscale",
        ),
        ({"height": 9, "width": 10, "fit": "pad"}, "Unsupported", "every declared fit would upscale"),
    ],
)
def test_what_cannot_be_done_with_a_camera(fields: dict[str, Any], code: str, words: str) -> None:
    """W16: all of it is decided before the first step."""
    error = error_of(**fields)
    assert (error.code, error.where) == (code, "model_spec.input")
    assert error.cause.startswith('model input "<root>"')
    assert words in error.cause


def test_size_in_a_document_is_told_to_be_height_and_width() -> None:
    error = error_of(size=96)
    assert (error.code, error.cause) == (
        "UnsupportedKind",
        'model input "<root>" declares unrecognized field "size"',
    )
    assert error.mend == "write `height` and `width`; `size` is short for them in Python only"


@pytest.mark.parametrize(
    ("fields", "mend"),
    [
        ({"dtype": "float23"}, "float32"),
        ({"resample": "nearest"}, '["bilinear", "bilinear_aa"]'),
        ({"height": 16, "width": 16}, "allow_upscale"),
        ({"height": 3, "width": 4}, '["stretch", "crop", "pad"]'),
        ({"normalize": True}, "dtype: float32"),
    ],
)
def test_the_mend_names_what_would_do(fields: dict[str, Any], mend: str) -> None:
    assert mend in error_of(**fields).mend


@pytest.mark.parametrize(
    ("env", "target", "options", "fit"),
    [
        ((200, 150), (100, 100), {"fit": ["crop", "pad"]}, "crop"),
        ((50, 150), (100, 100), {"fit": ["crop", "pad"]}, "pad"),
        ((50, 150), (100, 100), {"fit": ["crop", "pad"], "allow_upscale": True}, "crop"),
        ((200, 150), (100, 100), {"fit": ["zoom", "pad", "crop"]}, "pad"),
        ((8, 8), (4, 4), {}, "stretch"),
        ((8, 8), (4, 4), {"fit": "pad"}, "pad"),
        ((8, 8), (16, 16), {"allow_upscale": True}, "stretch"),
        ((8, 8), (8, 4), {"fit": "stretch"}, "stretch"),
        ((8, 8), (8, 8), {}, "stretch"),
    ],
)
def test_the_first_declared_fit_that_does_not_enlarge_is_taken(
    env: tuple[int, int], target: tuple[int, int], options: dict[str, Any], fit: str
) -> None:
    plan = of_camera(camera(*env), height=target[0], width=target[1], **options).plans[0]
    assert (plan.fit, plan.size) == (fit, target)


def test_one_side_of_a_size_leaves_the_other_as_the_environment_has_it() -> None:
    assert of_camera(camera(8, 12), height=4, fit="crop").plans[0].size == (4, 12)
    assert of_camera(camera(8, 12), width=6, fit="pad").plans[0].size == (8, 6)
    assert of_camera(camera(8, 12)).plans[0].size is None


@pytest.mark.parametrize(
    ("env", "target", "fit", "codes"),
    [
        ((8, 16), (4, 4), "crop", [("info", "camera-cropped")]),
        ((8, 16), (4, 4), "pad", [("info", "camera-padded")]),
        ((8, 16), (4, 4), "stretch", []),
        ((8, 8), (4, 4), "crop", []),
        ((8, 8), (4, 4), "pad", []),
        ((4, 4), (4, 4), "pad", []),
    ],
)
def test_crop_and_pad_are_noted_only_where_aspects_differ(
    env: tuple[int, int], target: tuple[int, int], fit: str, codes: list[tuple[str, str]]
) -> None:
    """W25: the reference notes them with equal aspects as well, where no pixel is lost or made up."""
    route = of_camera(camera(*env), height=target[0], width=target[1], fit=fit)
    assert notes_of(route) == codes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, 'image "<root>" (uint8)'),
        ({"height": 4, "width": 4}, 'image "<root>" (resize 4x4 (bilinear), uint8)'),
        ({"height": 4, "width": 4, "resample": "bilinear_aa"}, 'image "<root>" (resize 4x4 (bilinear_aa), uint8)'),
        ({"height": 8, "width": 8}, 'image "<root>" (uint8)'),
        ({"dtype": "float32", "normalize": True}, 'image "<root>" (normalize /255, float32)'),
        ({"dtype": "float16", "normalize": [0, 1]}, 'image "<root>" (normalize /255, float16)'),
        ({"dtype": "float64", "normalize": [-1, 1]}, 'image "<root>" (normalize [-1, 1], float64)'),
        ({"dtype": "float32", "normalize": [-0.5, 0.25]}, 'image "<root>" (normalize [-0.5, 0.25], float32)'),
        ({"upside_down": True, "layout": "chw"}, 'image "<root>" (flip 180, uint8, hwc->chw)'),
        ({"flip": "vertical"}, 'image "<root>" (flip vertical, uint8)'),
        ({"flip": "horizontal"}, 'image "<root>" (flip horizontal, uint8)'),
        ({"flip": "vertical", "upside_down": True}, 'image "<root>" (flip horizontal, uint8)'),
        ({"lead_dims": 2, "stack": 3}, 'image "<root>" (uint8, +2 lead dims)'),
        (
            {"mean": [1, 2, 3], "std": [1, 1, 1], "dtype": "float32"},
            'image "<root>" (minus mean / std, float32)',
        ),
        (
            {"height": 4, "width": 4, "layout": "chw", "dtype": "float32", "normalize": True, "lead_dims": 1},
            'image "<root>" (resize 4x4 (bilinear), normalize /255, float32, hwc->chw, +1 lead dims)',
        ),
    ],
)
def test_the_steps_are_described_in_their_order(fields: dict[str, Any], said: str) -> None:
    assert line_of(**fields) == said


@pytest.mark.parametrize(
    ("tags", "wanted", "said"),
    [
        ({"layout": "chw"}, {}, "(chw->hwc, uint8)"),
        ({"layout": "chw"}, {"layout": "chw"}, "(chw->hwc, uint8, hwc->chw)"),
        ({"upside_down": True}, {}, "(flip 180, uint8)"),
        ({"upside_down": True}, {"upside_down": True}, "(uint8)"),
        ({"flip": "vertical"}, {"flip": "vertical"}, "(uint8)"),
        ({"flip": "vertical"}, {"flip": "horizontal"}, "(flip 180, uint8)"),
        ({"channel_order": "bgr"}, {}, "(uint8)"),
        ({"channel_order": "bgr"}, {"channel_order": "bgr"}, "(uint8)"),
        ({"channel_order": "bgr"}, {"channel_order": "rgb"}, "(swap channels, uint8)"),
        (
            {"channel_order": "rgb", "flip": "vertical"},
            {"channel_order": "bgr"},
            "(flip vertical, swap channels, uint8)",
        ),
    ],
)
def test_what_both_sides_declare_is_undone_once(tags: dict[str, Any], wanted: dict[str, Any], said: str) -> None:
    assert line_of(camera(3, 3), image(**tags), **wanted) == f'image "<root>" {said}'


@pytest.mark.parametrize(
    ("space", "given", "wanted", "is_told"),
    [
        (camera(8, 8), "bgr", None, True),
        (camera(8, 8, 6), "bgr", None, True),
        (camera(8, 8), "bgr", "bgr", False),
        (camera(8, 8), "bgr", "rgb", False),
        (camera(8, 8), "rgb", None, False),
        (camera(8, 8), None, None, False),
        (camera(8, 8, 1), "bgr", None, False),
    ],
)
def test_bgr_for_a_model_that_does_not_say_its_order_is_a_caution(
    space: spaces.Box, given: str | None, wanted: str | None, is_told: bool
) -> None:
    """Frames are handed on as they are."""
    route = of_camera(space, image(channel_order=given), channel_order=wanted)
    assert notes_of(route) == ([("caution", "camera-order-assumed")] if is_told else [])
    if is_told:
        assert not route.plans[0].swap_channels
        assert route.notes[0].message == (
            'model input "<root>": camera "image/primary" is bgr, and the model\'s channel order is unknown; '
            "frames are handed on as bgr: declare `channel_order` in the model's input"
        )


def test_a_channel_order_that_the_camera_does_not_say_is_to_be_declared_in_its_tag() -> None:
    error = error_of(channel_order="rgb")
    assert error.cause == (
        'model input "<root>" wants channel order rgb, but camera "image/primary" does not say its own'
    )
    assert error.mend == "declare `channel_order: rgb` or `channel_order: bgr` in the camera's tag"


@pytest.mark.parametrize("channels", [1, 4])
def test_channels_that_are_no_threes_have_no_colour_order(channels: int) -> None:
    error = error_of(camera(8, 8, channels), image(channel_order="rgb"), channel_order="bgr")
    assert (error.code, error.cause) == (
        "Unsupported",
        f'model input "<root>": {channels} channels have no order bgr',
    )
    assert error.mend == "drop `channel_order` in the model's input"


def test_the_only_camera_stands_in_for_a_registered_role_with_a_caution() -> None:
    route = of_camera(role="image/wrist")
    assert notes_of(route) == [("caution", "camera-rebound")]
    message = route.notes[0].message
    assert message.startswith('model input "<root>": no env camera has role "image/wrist"; bound to the env')
    assert '("image/primary")' in message
    assert "  " not in message
    assert lines(route)[-2:] == ["dropped:", f"  {message}"]
    assert route.plans[0].source == ()
    assert notes_of(of_camera(role="x/mine")) == [("caution", "camera-rebound")]


def test_no_camera_stands_in_for_a_role_that_looks_misspelt() -> None:
    error = error_of(role="image/priamry")
    assert (error.code, error.cause) == (
        "MissingRole",
        'model input "<root>" needs image role "image/priamry" but the env only has ["image/primary"]',
    )
    assert error.mend == 'did you mean "image/primary"?'


def test_no_camera_stands_in_where_there_are_two_or_none() -> None:
    space = spaces.Dict({"a": camera(2, 2), "b": camera(2, 2)})
    tags = {"a": image("image/secondary"), "b": image("image/primary")}
    error = refused(space, tags, image("image/wrist"))
    assert (error.code, '["image/secondary", "image/primary"]' in error.cause) == ("MissingRole", True)
    assert "the env only has []" in refused(wanted=image("image/wrist")).cause


def test_an_optional_camera_that_is_absent_is_blank_with_a_caution() -> None:
    """The only camera does not stand in for it."""
    wanted = {"role": "image/wrist", "optional": True, "height": 2, "width": 4, "channels": 3, "fill": 7}
    route = of_camera(**wanted, layout="chw", upside_down=True, stack=2)
    assert lines(route)[1] == '  "<root>" <- zeros(2x4x3)'
    assert notes_of(route) == [("caution", "camera-zero-filled")]
    assert (
        'image "<root>": the env provides no source camera; using a blank (zero) frame' in route.notes[0].message
    )
    assert (route.stacks, route.unused) == ({"<root>": 2}, ("image/primary",))


@pytest.mark.parametrize("missing", ["height", "width", "channels"])
def test_a_blank_camera_needs_all_its_sides(missing: str) -> None:
    sides = {"height": 2, "width": 4, "channels": 3}
    del sides[missing]
    error = error_of(role="image/wrist", optional=True, **sides)
    assert (error.code, "zero fill needs height, width and channels" in error.cause) == ("MissingWidth", True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"dtype": "float23"}, "unknown dtype"), ({"resample": "box"}, "unsupported resample")],
)
def test_a_blank_camera_is_checked_like_any_other(fields: dict[str, Any], words: str) -> None:
    """W16: the reference finds these at the first step only."""
    error = error_of(role="image/wrist", optional=True, height=2, width=2, channels=3, **fields)
    assert (error.code, words in error.cause) == ("Unsupported", True)


def test_an_optional_camera_that_is_there_is_used() -> None:
    assert line_of(optional=True, fill=3, height=4, width=4, channels=3).startswith('image "<root>"')


FLOATS = spaces.Box(-np.inf, np.inf, (2, 2, 3), np.float32)
UNIT = spaces.Box(0, 1, (2, 2, 3), np.float32)
UNEVEN = spaces.Box(np.zeros((1, 1, 2), np.float32), np.array([[[1, 2]]], np.float32))
WIDE = spaces.Box(0, 65535, (2, 2, 1), np.uint16)


@pytest.mark.parametrize(
    ("space", "tags", "wanted", "notes"),
    [
        (UNIT, {}, {}, []),
        (FLOATS, {"range": [0, 255]}, {}, []),
        (FLOATS, {}, {}, [("caution", "camera-range-assumed")]),
        (UNEVEN, {}, {}, [("caution", "camera-range-assumed")]),
        (UNIT, {}, {"dtype": "float32"}, [("info", "camera-rounded")]),
        (UNIT, {}, {"dtype": "float32", "precision": "float"}, []),
        (WIDE, {}, {}, [("caution", "camera-saturates")]),
        (camera(2, 2), {}, {"dtype": "float32"}, []),
    ],
)
def test_what_is_assumed_or_lost_of_a_camera_s_numbers_is_noted(
    space: spaces.Space[Any], tags: Any, wanted: Any, notes: list[tuple[str, str]]
) -> None:
    """W10: the reference says nothing of it."""
    route = of_camera(space, image(**tags), **wanted)
    assert notes_of(route) == notes
    assert all('"image/primary"' in note.message for note in route.notes)
