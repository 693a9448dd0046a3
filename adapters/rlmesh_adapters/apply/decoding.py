"""Decoding: camera images that come as the bytes of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError

Array = npt.NDArray[Any]

# Of PNG and of JPEG.
_SIGNATURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")


def decode(data: bytes) -> Array:
    """Return an encoded PNG or JPEG image as (H, W, C) uint8; C is 1, 2, 3 or 4 as in the file.

    Palettes become colours, 16 bits a channel become the upper 8.
    Raises ValueError for what is no such image, HarnessError where Pillow is missing.
    """
    try:
        from PIL import ImageFile  # noqa: PLC0415 - optional
    except ImportError as error:
        raise HarnessError(
            "decoding camera images needs Pillow, which is not installed",
            mend="pip install 'rlmesh-cli[images]'",
        ) from error
    if not isinstance(data, bytes):
        raise ValueError(f"expected the bytes of an encoded image, got {type(data).__name__}")
    if not data.startswith(_SIGNATURES):
        raise ValueError(f"expected a PNG or JPEG image, got {len(data)} bytes that start with {data[:8]!r}")
    parser = ImageFile.Parser()
    try:
        parser.feed(data)
        image = parser.close()
    except (OSError, SyntaxError) as error:
        raise ValueError(f"a PNG or JPEG image of {len(data)} bytes cannot be decoded: {error}") from error
    if image.mode.startswith("I"):
        return (np.asarray(image)[..., None] >> 8).astype(np.uint8)
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        kept = {"1": "L", "P": "RGBA" if "transparency" in image.info else "RGB"}
        image = image.convert(kept.get(image.mode, "RGB"))
    pixels = np.array(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels
