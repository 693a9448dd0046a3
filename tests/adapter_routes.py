"""What the tests of documents share: tags and specs written short, resolved and run on batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from gymnasium import spaces

from rlmesh_adapters.adapter import Adapter
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.describe import describe
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.predictions import Prediction
from rlmesh_adapters.resolve.errors import ResolveError
from rlmesh_adapters.resolve.resolving import Resolved, resolve
from rlmesh_envs.spaces import view_of

NUMBER = spaces.Box(-1, 1, (1,))
NUMBER_TAG = {"type": "state", "role": "x/number"}
NUMBER_STATE = {"type": "state", "components": ["x/number"]}
DRIVE = {"role": "x/drive", "dim": 1}


def box(low: Any, high: Any, *shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


def free(*shape: int) -> spaces.Box:
    """Return a Box of float32 without bounds."""
    return spaces.Box(-np.inf, np.inf, shape)


def camera(height: int, width: int, channels: int = 3) -> spaces.Box:
    return spaces.Box(0, 255, (height, width, channels), np.uint8)


def image(role: str = "image/primary", **fields: Any) -> dict[str, Any]:
    return {"type": "image", "role": role, **fields}


def state(*components: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "state", "components": list(components), **fields}


def tag(role: str, **fields: Any) -> dict[str, Any]:
    return {"type": "state", "role": role, **fields}


def resolved(
    observation: spaces.Space[Any] = NUMBER,
    tags: Any = NUMBER_TAG,
    wanted: Any = NUMBER_STATE,
    *,
    action: spaces.Space[Any] = NUMBER,
    drives: Sequence[Any] = (DRIVE,),
    output: Sequence[Any] = (DRIVE,),
    clip: Any = None,
    output_clip: Any = None,
    import_function: Callable[[str], Any] | None = None,
) -> Resolved:
    """Resolve a route.

    tags, drives, clip: of the environment. wanted, output, output_clip: of the model.
    """
    env = read_tags({"observation": tags, "action": {"components": list(drives), "clip": clip}})
    model = read_spec({"input": wanted, "output": {"components": list(output), "clip": output_clip}})
    return resolve(env, view_of(observation), view_of(action), model, import_function=import_function)


def refused(*route: Any, **options: Any) -> ResolveError:
    """Return the error that resolving a route gives."""
    with pytest.raises(ResolveError) as caught:
        resolved(*route, **options)
    return caught.value


def lines(route: Resolved) -> list[str]:
    """Return the lines of a route's description; the first is `observation:`."""
    return describe(route).splitlines()


def adapter_of(*route: Any, action: spaces.Space[Any] = NUMBER, **options: Any) -> Adapter:
    return Adapter(resolved(*route, action=action, **options), view_of(action))


def ids(rows: int) -> list[str]:
    return [f"ep-{row}" for row in range(rows)]


def assembled(batch: Any, *route: Any, rows: int = 1, **options: Any) -> Any:
    """Return what the model sees of a batch of so many rows."""
    return adapter_of(*route, **options).observations.apply(batch, ids(rows))


def predicted(adapter: Adapter, outputs: Any, batch: Any = None) -> Prediction:
    """Return what becomes of outputs (M, D) or (M, H, D) of the model, asked for a batch (M, ...)."""
    given = np.asarray(outputs, np.float64)
    flat = adapter.seam.convert(given, given.shape[:-1], "predict_batch")
    checked = adapter.seam.check(flat)
    return adapter.adapt(Prediction(checked.actions, None, checked.clipped, checked.failures), batch)


def acted(outputs: Any, action: spaces.Space[Any], drives: Any, output: Any, **options: Any) -> Any:
    """Return the actions that outputs (M, D) of the model come to; every row must have one."""
    adapter = adapter_of(action=action, drives=drives, output=output, **options)
    prediction = predicted(adapter, outputs)
    assert not prediction.failures
    return prediction.actions


def notes_of(route: Resolved) -> list[tuple[str, str]]:
    """Return (severity, code) of every note."""
    return [(note.severity, note.code) for note in route.notes]


def drive(role: str = "x/a", dim: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a component of an action, of either side."""
    return {"role": role, "dim": dim, **fields}


def paired(env: Any, model: Any, action: spaces.Space[Any] = NUMBER, **options: Any) -> Resolved:
    """Resolve one component of each side, or a list of them."""
    drives, output = (side if isinstance(side, list) else [side] for side in (env, model))
    return resolved(action=action, drives=drives, output=output, **options)


def unpaired(env: Any, model: Any, action: spaces.Space[Any] = NUMBER, **options: Any) -> ResolveError:
    """Return the error that `paired` gives."""
    with pytest.raises(ResolveError) as caught:
        paired(env, model, action, **options)
    return caught.value


def said_of(env: Any, model: Any, action: spaces.Space[Any] = NUMBER, **options: Any) -> str:
    """Return what is said of the action of `paired`."""
    said = lines(paired(env, model, action, **options))
    return "\n".join(line.strip() for line in said[said.index("action:") + 1 :])


class Asked:
    """A policy with a spec that answers every call with the same numbers, and writes down what it sees."""

    def __init__(self, spec: Any, answer: Any) -> None:
        self.spec, self.seen, self._answer = spec, list[Any](), answer

    def predict_batch(self, observations: Any) -> Any:
        self.seen.append(observations)
        return self._answer(observations) if callable(self._answer) else np.array(self._answer, np.float64)


def route_of(
    policy: Any,
    observation: spaces.Space[Any] = NUMBER,
    tags: Any = NUMBER_TAG,
    *,
    action: spaces.Space[Any] = NUMBER,
    drives: Sequence[Any] = (DRIVE,),
    clip: Any = None,
    **contract: Any,
) -> AdapterEngine:
    """Return an engine in which `route` is configured for a policy that carries its own spec."""
    engine = AdapterEngine()
    env = read_tags({"observation": tags, "action": {"components": list(drives), "clip": clip}})
    promised = RouteContract(observation=view_of(observation), action=view_of(action), tags=env, **contract)
    engine.configure("route", lambda: policy, promised)
    return engine


def spec_of(wanted: Any, *output: Any) -> dict[str, Any]:
    """Return a model spec as a document."""
    return {"input": wanted, "output": {"components": list(output)}}


def vector(values: Any, tags: Any, *parts: Any, space: spaces.Space[Any] | None = None, **fields: Any) -> Any:
    """Return what a model sees of one vector of float32."""
    given = np.asarray([values], np.float32)
    return assembled(given, free(len(values)) if space is None else space, tags, state(*parts, **fields))[0]


def shown(rows: Any, observation: spaces.Space[Any], tags: Any, wanted: Any, **contract: Any) -> Any:
    """Return what a policy sees of a batch."""
    lanes = len(rows if isinstance(rows, np.ndarray) else next(iter(rows.values())))
    policy = Asked(spec_of(wanted, DRIVE), np.zeros((lanes, 1)))
    route_of(policy, observation, tags, num_lanes=lanes, **contract).predict(
        "route", rows, contexts(*range(lanes))
    )
    return policy.seen[0]


def numbers(values: Any, tags: Any, part: Any, **fields: Any) -> Any:
    """Return what a policy sees of one vector, in float64."""
    rows = np.asarray([values], np.float64)
    space = spaces.Box(-np.inf, np.inf, rows.shape[1:], np.float64)
    return shown(rows, space, tags, state(part, **{"dtype": "float64", **fields}))[0]
