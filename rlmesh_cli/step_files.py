"""Step files: one episode, step by step, as Parquet that pandas and polars read; and how to get arrays back.

    from rlmesh_cli.step_files import read_steps

    steps = read_steps("runs/<run>/steps/ep-000001.parquet")
    steps["observation"]  # (T + 1, ...) in the environment's own shape and dtype
    steps["reward"]  # (T,) float64

An episode of T steps has T + 1 rows. Row t holds observation t, and what was done and paid for it; the last row
holds what the episode ended with (null where a vector environment does not hand it out), and no action and reward
(null).

    index, seed, episode_id   of the episode, in every row
    t                         int32, 0 to T
    observation...            what the environment gave; a leaf of a Dict or Tuple has a column of its own, such as
                              `observation.camera` or `observation.0`
    action...                 what the environment was given
    reward                    float64, as the environment gave it
    terminated, truncated     bool, true in the last row of an episode that ended so
    info                      JSON of the info that came with the observation, null if that was empty; what is not
                              finite is null, an array of more than 4,096 numbers is only described

An array is a list of fixed size, in C order; its `shape` and `dtype` stand in the metadata of its field. float16
is written as float32. A text is a string; what is neither (Graph, Sequence, OneOf) is JSON.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.spaces import SpaceView

from .episodes import EpisodeResult
from .records import to_plain

if TYPE_CHECKING:
    from .recording.tapes import Tape

STEP_SCHEMA = "rlmesh.steps.v1"
_EXTRA = "pip install 'rlmesh-cli[steps]'"
#: Columns that have no value in the last row.
_ACTED = ("action", "reward")


def check_steps(where: str) -> None:
    """Raise HarnessError if step files cannot be written here."""
    if find_spec("pyarrow") is None:
        raise HarnessError(
            "steps are written by pyarrow, which is not installed",
            where=where,
            mend=f"install the extra: {_EXTRA}",
        )


class StepFiles:
    """Makes the files of a run's episodes.

    observation, action: spaces of one observation and one action.
    """

    def __init__(self, observation: SpaceView, action: SpaceView) -> None:
        self._observation = list(named_spaces(observation, "observation"))
        self._action = list(named_spaces(action, "action"))

    def __call__(self, row: EpisodeResult, tape: Tape) -> bytes:
        """Return the file of one episode; the format is described above."""
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        import pyarrow.parquet as pq  # noqa: PLC0415

        length = row.length
        observations, actions, rewards = tape.columns(length)
        last = np.arange(length + 1) == length
        fields: list[Any] = []
        arrays: list[Any] = []

        def put(name: str, array: Any, metadata: dict[str, str] | None = None) -> None:
            fields.append(pa.field(name, array.type, metadata=metadata))
            arrays.append(array)

        put("index", pa.array(np.full(length + 1, row.index, np.int64)))
        put("seed", pa.array([row.seed] * (length + 1), pa.int64() if _fits(row.seed) else pa.string()))
        put("episode_id", pa.array([row.episode_id] * (length + 1)))
        put("t", pa.array(np.arange(length + 1, dtype=np.int32)))
        for (name, view), values in zip(self._observation, observations, strict=True):
            array, metadata = _column(pa, view, values)
            missing = pa.nulls(length + 1 - len(array), array.type)
            put(name, pa.concat_arrays([array, missing]) if len(missing) else array, metadata)
        for number, (name, view) in enumerate(self._action):
            array, metadata = _column(pa, view, actions[number] if actions else [])
            put(name, pa.concat_arrays([array, pa.nulls(1, array.type)]), metadata)
        put("reward", pa.array([*rewards.tolist(), None], pa.float64()))
        put("terminated", pa.array(last & row.terminated))
        put("truncated", pa.array(last & row.truncated))
        infos = [tape.infos.get(number) for number in range(length + 1)]
        put("info", pa.array([None if info is None else _json(info) for info in infos], pa.string()))
        facts = {"schema": STEP_SCHEMA, "return": row.return_, "end": row.end}
        schema = pa.schema(fields, metadata={"rlmesh": _json(to_plain(facts)[0])})
        sink = io.BytesIO()
        pq.write_table(
            pa.table(arrays, schema=schema), sink, compression="zstd", use_dictionary=["episode_id", "info"]
        )
        return sink.getvalue()


def read_steps(path: str | Path) -> dict[str, Any]:
    """Read one episode's file.

    Return column's name -> numpy array: observations (T + 1, ...), or (T, ...) where the last one is null, in the
    environment's shape and dtype; actions (T, ...), `reward` (T,) float64; `t`, `terminated`, `truncated` (T + 1,)
    each. Texts and infos are lists, an info as the dict it was or None.

    Raises HarnessError where pyarrow is missing, or the file is none of ours.
    """
    check_steps(str(path))
    import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise HarnessError(
            f"{path} cannot be read as Parquet: {error}", where=str(path), mend="record the run again"
        ) from error
    if b"rlmesh" not in (table.schema.metadata or {}):
        raise HarnessError(
            f"{path} is not a file of an episode's steps",
            where=str(path),
            mend="name a file of a run, such as steps/ep-000001.parquet",
        )
    steps: dict[str, Any] = {}
    for field in table.schema:
        column = table.column(field.name).combine_chunks()
        name = field.name.split(".")[0]
        if name in _ACTED or (name == "observation" and not column[-1].is_valid):
            column = column.slice(0, len(column) - 1)
        steps[field.name] = _restored(column, field)
    steps["info"] = [None if text is None else msgspec.json.decode(text) for text in steps["info"]]
    return steps


def named_spaces(view: SpaceView, name: str) -> Iterator[tuple[str, SpaceView]]:
    """Yield the leaves of a space, depth first, named by what leads to them."""
    if not view.children:
        if view.kind not in ("dict", "tuple"):
            yield name, view
        return
    for key, child in view.children:
        yield from named_spaces(child, f"{name}.{key}")


def _column(pa: Any, view: SpaceView, values: Sequence[Any]) -> tuple[Any, dict[str, str] | None]:
    """Return one leaf as an Arrow array, and the metadata of its field."""
    if not view.is_array or view.dtype is None:
        texts = [_text(value) for value in values]
        return pa.array(texts, pa.string()), {"kind": view.kind}
    dtype = np.dtype(view.dtype)
    kept = np.dtype(np.float32) if dtype == np.float16 else dtype
    metadata = {"shape": _json(list(view.shape)), "dtype": str(dtype)}
    array = np.ascontiguousarray(np.asarray(values, dtype).reshape(-1, *view.shape), kept)
    if not view.shape:
        return pa.array(array), metadata
    if view.size == 0:
        return pa.array([[]] * len(array), pa.list_(pa.from_numpy_dtype(kept))), metadata
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), view.size), metadata


def _restored(column: Any, field: Any) -> Any:
    metadata = field.metadata or {}
    if b"shape" not in metadata:
        is_text = str(field.type) in ("string", "large_string")
        return column.to_pylist() if is_text else np.asarray(column.to_numpy(zero_copy_only=False))
    shape = msgspec.json.decode(metadata[b"shape"])
    dtype = np.dtype(metadata[b"dtype"].decode())
    flat: npt.NDArray[Any] = np.asarray(
        (column.flatten() if shape else column).to_numpy(zero_copy_only=False), dtype
    )
    return flat.reshape(len(column), *shape)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) or value is None else _json(to_plain(value)[0])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _fits(seed: int | None) -> bool:
    return seed is None or seed < 2**63
