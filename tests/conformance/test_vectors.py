"""The peer's conformance vectors, read and run as its reference says.

The folder is named by RLMESH_CONFORMANCE, else looked for beside the checkout; without one these are skipped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlmesh_adapters.adapter import Adapter
from rlmesh_adapters.describe import describe
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.paths import ROOT_KEY
from rlmesh_adapters.resolve.resolving import resolve
from rlmesh_adapters.spaces import SpaceView, frozen_array

FOLDER = Path(os.environ.get("RLMESH_CONFORMANCE", Path(__file__).parents[2] / ".." / "shared" / "conformance"))
CASES = sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else []

pytestmark = pytest.mark.skipif(not CASES, reason="no conformance vectors here")

KINDS = {"box", "discrete", "multi_binary", "multi_discrete"}


def view(space: dict[str, Any]) -> SpaceView:
    """Return the view of a space as a vector writes it."""
    kind = space["kind"]
    if kind == "dict":
        children = zip(space["keys"], space["children"], strict=True)
        return SpaceView(kind="dict", children=tuple((key, view(child)) for key, child in children))
    if kind == "tuple":
        return SpaceView(
            kind="tuple", children=tuple((n, view(child)) for n, child in enumerate(space["children"]))
        )
    if kind not in KINDS:
        return SpaceView(kind="text" if kind == "text" else "opaque", contains=lambda value: True)
    shape, dtype = tuple(space.get("shape", ())), np.dtype(space["dtype"])
    is_float = dtype.kind == "f"
    low = space.get("low") or [-np.inf if is_float else np.iinfo(dtype).min]
    high = space.get("high") or [np.inf if is_float else np.iinfo(dtype).max]
    low, high = (np.reshape(ends, shape) if len(ends) > 1 else ends[0] for ends in (low, high))
    return SpaceView(
        kind=kind,
        shape=shape,
        dtype=dtype,
        low=frozen_array(low, shape=shape, dtype=dtype),
        high=frozen_array(high, shape=shape, dtype=dtype),
    )


def decoded(value: dict[str, Any]) -> Any:
    kind, data = value["kind"], value["data"]
    if kind == "array":
        return np.array(data, value["dtype"]).reshape(value["shape"])
    return {key: decoded(part) for key, part in data.items()} if kind == "map" else data


def as_batch(value: Any, space: SpaceView) -> Any:
    """Return a batch of one row."""
    if space.kind == "dict":
        return {key: as_batch(value[key], child) for key, child in space.children if key in value}
    if space.kind == "tuple":
        return tuple(as_batch(value[number], child) for number, child in space.children)
    return np.asarray(value)[None] if space.is_array else [value]


def first_row(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: first_row(part) for key, part in batch.items()}
    return tuple(first_row(part) for part in batch) if isinstance(batch, tuple) else batch[0]


def assert_same(found: Any, wanted: dict[str, Any], atol: float) -> None:
    kind, data = wanted["kind"], wanted["data"]
    if kind == "array":
        assert isinstance(found, np.ndarray)
        assert found.dtype.name == wanted["dtype"]
        assert list(found.shape) == wanted["shape"]
        difference = np.abs(found.ravel().astype(float) - np.array(data, float))
        assert (difference <= atol).all()
    elif kind == "map":
        assert set(found) == set(data)
        for key, part in data.items():
            assert_same(found[key], part, atol)
    elif kind == "list":
        assert isinstance(found, list)
        assert found == pytest.approx(data, abs=atol) if data and not isinstance(data[0], str) else found == data
    else:
        assert found == data


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_vector(path):
    case = json.loads(path.read_text(encoding="utf-8"))
    if case["kind"] == "serialization":
        read = read_tags if case["side"] == "env" else read_spec
        assert read(case["doc"]).to_dict() == case["doc"]
        return
    tags, spec = read_tags(case["env_tags"]), read_spec(case["model_spec"])
    observation, action = view(case["observation_space"]), view(case["action_space"])
    expect = case["expect"]
    if "error_contains" in expect:
        with pytest.raises(HarnessError) as caught:
            resolve(tags, observation, action, spec)
        assert expect["error_contains"] in str(caught.value)
        return
    resolved = resolve(tags, observation, action, spec)
    if case["kind"] == "resolve":
        assert describe(resolved) == expect["describe"]
        return
    adapter = Adapter(resolved, action)
    raw = decoded(case["observation"])
    batch = as_batch(raw if observation.kind == "dict" else raw[ROOT_KEY], observation)
    payload = adapter.observations.apply(batch, ["episode"])
    assert_same(first_row(payload), expect["payload"], expect["atol"])
    output = decoded(case["model_output"])
    checked = adapter.seam.convert(output[None], (1,), "predict_batch")
    actions, _ = adapter.actions.apply(checked, batch)
    assert_same(actions[0], expect["action"], expect["atol"])


def test_all_vectors_are_there():
    assert len(CASES) >= 22
