"""What an image costs: times against what a user would write by hand, for eight frames.

    python -m tests.benchmarks.bench_images

Ours is all of `ImageStage.apply`, with checks and new memory for the result. Theirs is a loop in one thread; what
OpenCV does in threads of its own it does for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rlmesh_adapters.apply.images import ImageStage
from rlmesh_adapters.plans import ImagePlan

from .measuring import Case, Skip, microseconds

try:
    import cv2
    from PIL import Image
except ImportError:
    cv2 = None

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
VALUES = {"dtype": "float32", "normalize": (0.0, 1.0), "mean": MEAN, "std": STD, "dst_layout": "chw"}
LINEAR = {"size": (224, 224), "fit": "stretch"}
TRIANGLE = {**LINEAR, "resample": "bilinear_aa"}
TURN = {"flip_rows": True, "flip_columns": True}


def frames(height: int, width: int) -> np.ndarray:
    """Return eight frames of noise."""
    return np.random.default_rng(0).integers(0, 256, (8, height, width, 3), dtype=np.uint8)


def ours(pixels: np.ndarray, options: dict[str, object]) -> Callable[[], np.ndarray]:
    """Return what makes eight images by a plan."""
    plan = ImagePlan(
        placement=("image",),
        source=("camera",),
        role="image/primary",
        bound_role="image/primary",
        src_shape=pixels.shape[1:],
        **options,
    )
    stage = ImageStage(plan)
    return lambda: stage.apply(pixels, len(pixels))


def opencv(pixels: np.ndarray) -> Sequence[np.ndarray]:
    """Resize as a user would."""
    return [cv2.resize(image, (224, 224), interpolation=cv2.INTER_LINEAR) for image in pixels]


def pillow(pixels: np.ndarray) -> Sequence[np.ndarray]:
    """Resize as most checkpoints were trained with."""
    bilinear = Image.Resampling.BILINEAR
    return [np.asarray(Image.fromarray(image).resize((224, 224), bilinear)) for image in pixels]


def normalised(pixels: np.ndarray) -> np.ndarray:
    """Normalise as the formula reads."""
    values = (pixels / np.float32(255) - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def turned(pixels: np.ndarray) -> np.ndarray:
    """Turn by 180 degrees."""
    return pixels[:, ::-1, ::-1].copy()


def planes(pixels: np.ndarray) -> np.ndarray:
    """Put the channels first."""
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    if cv2 is None:
        return [Skip("images", "images", "OpenCV and Pillow are not installed")]
    small, medium, large = frames(224, 224), frames(256, 256), frames(480, 640)
    rows = [
        ("bilinear-256", "bilinear, 256 to 224 / cv2.resize alone", medium, LINEAR, opencv, 1.15, 1.0),
        ("bilinear-480", "bilinear, 480x640 to 224 / cv2.resize alone", large, LINEAR, opencv, 1.15, 0.7),
        ("bilinear_aa-256", "bilinear_aa, 256 to 224 / Image.resize alone", medium, TRIANGLE, pillow, 1.15, 0.7),
        (
            "bilinear_aa-480",
            "bilinear_aa, 480x640 to 224 / Image.resize alone",
            large,
            TRIANGLE,
            pillow,
            1.15,
            0.7,
        ),
        ("turned", "turn, bilinear, 256 to 224 / cv2.resize alone", medium, {**LINEAR, **TURN}, opencv, 1.5, 1.2),
        (
            "all",
            "bilinear_aa, normalise, CHW / Image.resize alone",
            medium,
            {**TRIANGLE, **VALUES},
            pillow,
            1.5,
            1.0,
        ),
        ("normalise", "normalise and CHW, 224x224 / naive numpy", small, VALUES, normalised, 0.25, 0.2),
        ("turn", "turn, 224x224 / numpy", small, TURN, turned, 0.25, 0.1),
        ("chw", "CHW, 224x224 / numpy", small, {"dst_layout": "chw"}, planes, 1.0, 0.4),
    ]
    return [
        Case(f"images-{name}", what, "time", "us", *_readers(pixels, plan, theirs), bar=bar, aim=aim)
        for name, what, pixels, plan, theirs, bar, aim in rows
    ]


def _readers(
    pixels: np.ndarray, plan: dict[str, object], theirs: Callable[[np.ndarray], object]
) -> tuple[Callable[[], float], Callable[[], float]]:
    calls = 10 if pixels.shape[1] < 480 else 4
    return microseconds(ours(pixels, plan), calls), microseconds(lambda: theirs(pixels), calls)


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_images"]))
