"""What an image costs: ratios of times against what a user would write by hand, for eight frames.

    python tests/benchmarks/bench_images.py [--repeats 15]

Each round runs every case in turn, in this process; a ratio is the median over the rounds of (ours / theirs in the
same round). Lower is better. Ours is all of `ImageStage.apply`, with checks and new memory for the result.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import cv2
import numpy as np
import PIL
from PIL import Image

from rlmesh_adapters.apply.images import ImageStage
from rlmesh_adapters.plans import ImagePlan

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 256, 256, 3), dtype=np.uint8)
SMALL = np.ascontiguousarray(PIXELS[:, :224, :224])
CALLS = 10
FRAMES = len(PIXELS)
#: Microseconds that the peer was measured to take for one such frame.
PEER_FRAME = 1110


def naive_normalise() -> np.ndarray:
    values = (SMALL / np.float32(255) - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def opencv_alone() -> list[np.ndarray]:
    return [cv2.resize(image, (224, 224), interpolation=cv2.INTER_LINEAR) for image in PIXELS]


def pillow_alone() -> list[np.ndarray]:
    bilinear = Image.Resampling.BILINEAR
    return [np.asarray(Image.fromarray(image).resize((224, 224), bilinear)) for image in PIXELS]


def ours(pixels: np.ndarray, **options: object) -> Callable[[], np.ndarray]:
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


# name, our case, their case, what is aimed at
RATIOS = [
    ("normalise and CHW, 224x224 / naive numpy", "ours normalise", "naive normalise", 0.25),
    ("bilinear, 256 to 224 / cv2.resize alone", "ours bilinear", "opencv", 1.15),
    ("bilinear_aa, 256 to 224 / Image.resize alone", "ours bilinear_aa", "pillow", 1.15),
    ("turn, bilinear / cv2.resize alone", "ours turned", "opencv", 1.5),
    ("bilinear_aa, normalise, CHW / Image.resize alone", "ours all", "pillow", 1.5),
]


def cases() -> dict[str, Callable[[], object]]:
    """Return what is measured, each for eight frames."""
    values = {"dtype": "float32", "normalize": (0.0, 1.0), "mean": MEAN, "std": STD, "dst_layout": "chw"}
    size = {"size": (224, 224), "fit": "stretch"}
    return {
        "ours normalise": ours(SMALL, **values),
        "naive normalise": naive_normalise,
        "ours bilinear": ours(PIXELS, **size),
        "opencv": opencv_alone,
        "ours bilinear_aa": ours(PIXELS, resample="bilinear_aa", **size),
        "pillow": pillow_alone,
        "ours turned": ours(PIXELS, flip_rows=True, flip_columns=True, **size),
        "ours all": ours(PIXELS, resample="bilinear_aa", **size, **values),
    }


def measure(repeats: int) -> dict[str, list[float]]:
    """Return seconds a call of every case; a first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {}
    running = cases()
    names = list(running)
    for turn in range(repeats + 1):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            began = time.perf_counter()
            for _ in range(CALLS):
                running[name]()
            if turn:
                seconds.setdefault(name, []).append((time.perf_counter() - began) / CALLS)
    return seconds


def report(repeats: int) -> int:
    """Print the table; return how many ratios are above what is aimed at."""
    seconds = measure(repeats)
    versions = f"numpy {np.__version__}, opencv {cv2.__version__}, pillow {PIL.__version__}"
    print(f"python {sys.version.split()[0]}, {versions}, {repeats} rounds")
    for name, values in seconds.items():
        low, middle, high = (1e6 * value for value in (min(values), statistics.median(values), max(values)))
        print(f"  {name:18s} {middle:8,.0f} us  ({low:,.0f} - {high:,.0f})")
    missed = 0
    for name, mine, theirs, aim in RATIOS:
        ratios = [a / b for a, b in zip(seconds[mine], seconds[theirs], strict=True)]
        middle = statistics.median(ratios)
        missed += middle > aim
        print(f"{name:50s} x{middle:.2f}  ({min(ratios):.2f} - {max(ratios):.2f})  aim {aim:.2f}")
    frame = 1e6 * statistics.median(seconds["ours all"]) / FRAMES
    share = frame / PEER_FRAME
    print(f"bilinear_aa, normalise, CHW: {frame:,.0f} us a frame, x{share:.2f} of the peer's {PEER_FRAME:,} us")
    return missed


def main() -> int:
    """Print the table; return 1 if a ratio is above what is aimed at."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    return int(report(parser.parse_args().repeats) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
