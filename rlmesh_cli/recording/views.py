"""Views: the images among a policy's inputs, as pictures that a person can look at.

Axes: M rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.paths import NodePath, show_path, walk
from rlmesh_adapters.plans import ImagePlan
from rlmesh_adapters.spaces import SpaceView

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# Smaller ones are codes of a grid rather than pictures.
_LEAST_SIDE = 8
# Letters of a name.
_LONGEST = 48


class View(msgspec.Struct, frozen=True):
    """One image of a policy's input.

    name: fit for a file's name. path: where it stands in the input. plan: how it was made, None if it is the
    environment's own.
    """

    name: str
    path: NodePath
    plan: ImagePlan | None = None

    def picture(self, inputs: Batch, row: int) -> npt.NDArray[np.uint8]:
        """Return what the policy is shown in one row, as a new (height, width, 3) array of bytes.

        The newest of stacked frames is taken; what was normalised is brought back to 0..255. Channels stay in the
        order in which the policy gets them.
        """
        image = np.asarray(walk(inputs, self.path)[row])
        image = image.reshape(-1, *image.shape[-3:])[-1]
        plan = self.plan
        if plan is not None:
            if plan.dst_layout == "chw":
                image = image.transpose(1, 2, 0)
            if image.dtype.kind == "f":
                image = _as_levels(image.astype(np.float64), plan)
        picture = image
        if image.dtype != np.uint8:
            picture = np.clip(np.rint(np.nan_to_num(image)), 0, 255).astype(np.uint8)
        return np.array(picture[:, :, :3] if picture.shape[2] >= 3 else np.repeat(picture[:, :, :1], 3, axis=2))


def _as_levels(image: npt.NDArray[np.float64], plan: ImagePlan) -> npt.NDArray[np.float64]:
    """Undo what made numbers of levels from 0 to 255."""
    if plan.mean:
        image = image * np.asarray(plan.std) + np.asarray(plan.mean)
    if plan.normalize is None:
        return image
    low, high = plan.normalize
    return np.asarray((image - low) / (high - low) * 255.0)


def views_of(engine: AdapterEngine, route: str, observation: SpaceView) -> list[View]:
    """Return the images of what a configured route hands to its policy.

    observation: space of what the environment gives, which a route without conversion hands on.
    """
    adapter = engine.route(route).adapter
    if adapter is None:
        found = [View(_safe(path), path) for path in _image_leaves(observation, ())]
    else:
        plans = [plan for plan in adapter.resolved.plans if isinstance(plan, ImagePlan)]
        found = [View(_safe(plan.placement), plan.placement, plan) for plan in plans]
    views: dict[str, View] = {}
    for view in found:
        name, number = view.name, 1
        while name.lower() in views:  # some file systems take capitals for the same
            number += 1
            name = f"{view.name}-{number}"
        views[name.lower()] = msgspec.structs.replace(view, name=name)
    return list(views.values())


def _image_leaves(view: SpaceView, path: NodePath) -> Iterator[NodePath]:
    """Yield where bytes stand that have a picture's shape."""
    for name, child in view.children:
        yield from _image_leaves(child, (*path, name))
    is_picture = view.is_array and view.dtype == np.uint8 and len(view.shape) == 3 and view.shape[2] in (1, 3, 4)
    if is_picture and min(view.shape[:2]) >= _LEAST_SIDE:
        yield path


def _safe(path: NodePath) -> str:
    """Return a name that every file system takes; never an empty one, which is that of the render."""
    return _UNSAFE.sub("-", show_path(path))[:_LONGEST].strip("-") or "image" if path else "observation"
