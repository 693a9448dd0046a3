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
                              `observation.camera` or `observation.0`; a name that is taken gets `-2` and so on
    action...                 what the environment was given
    reward                    float64, as the environment gave it
    terminated, truncated     bool, true in the last row of an episode that ended so
    info                      JSON of the info that came with the observation, null if that was empty; what is not
                              finite is null, an array of more than 4,096 numbers is only described, and so is what
                              JSON cannot hold

An array is a list of fixed size, in C order; its `shape` and `dtype` stand in the metadata of its field. float16
is written as float32, longdouble as float64. A text is a string; what is neither (Graph, Sequence, OneOf) is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.spaces import SpaceView

from .episodes import EpisodeResult
from .records import readable_json, to_plain

if TYPE_CHECKING:
    from .recording.tapes import Tape

STEP_SCHEMA = "rlmesh.steps.v1"
_EXTRA = "pip install 'rlmesh-cli[steps]'"
#: Columns that have no value in the last row.
_ACTED = ("action", "reward")
# Numbers of a row group; while one is made, each takes eight bytes and more, also where it is one byte itself.
_NUMBERS_TOGETHER = 2**22
#: Character of a dtype that Parquet does not have -> the one that it is written as.
_KEPT = {"e": np.float32, "g": np.float64}


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

    observation, action: spaces of one observation and one action. largest_seed: of the run.
    """

    def __init__(self, observation: SpaceView, action: SpaceView, largest_seed: int = 0) -> None:
        self._has_texts = largest_seed >= 2**63
        self._observation = _distinct(named_spaces(observation, "observation"))
        self._action = _distinct(named_spaces(action, "action"))
        numbers = sum(view.size for _, view in (*self._observation, *self._action) if view.is_array)
        self._rows_together = max(1, _NUMBERS_TOGETHER // max(numbers, 1))

    def __call__(self, row: EpisodeResult, tape: Tape) -> bytes:
        """Return the file of one episode; the format is described above."""
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        import pyarrow.parquet as pq  # noqa: PLC0415

        length, rows = row.length, row.length + 1
        observations, actions, rewards = tape.columns(length)
        last = np.arange(rows) == length
        infos = tape.infos
        texts = [infos.get(number) for number in range(rows)] if infos else None
        arrays: dict[str, Any] = {
            "index": pa.repeat(pa.scalar(row.index, pa.int64()), rows),
            "seed": pa.repeat(self._seed(pa, row.seed), rows),
            "episode_id": pa.repeat(pa.scalar(row.episode_id), rows),
            "t": pa.array(np.arange(rows, dtype=np.int32)),
        }
        for (name, view), values in zip(self._observation, observations, strict=True):
            arrays[name] = _padded(pa, _column(pa, view, values), rows)
        for number, (name, view) in enumerate(self._action):
            arrays[name] = _padded(pa, _column(pa, view, actions[number] if actions else []), rows)
        arrays["reward"] = _padded(pa, pa.array(rewards), rows)
        arrays["terminated"] = pa.array(last & row.terminated)
        arrays["truncated"] = pa.array(last & row.truncated)
        arrays["info"] = pa.nulls(rows, pa.string()) if texts is None else pa.array(texts, pa.string())
        facts = {"schema": STEP_SCHEMA, "return": row.return_, "end": row.end}
        leaves = dict([*self._observation, *self._action])
        schema = pa.schema(
            [pa.field(name, array.type, metadata=_metadata(leaves.get(name))) for name, array in arrays.items()],
            metadata={"rlmesh": _json(to_plain(facts)[0])},
        )
        sink = pa.BufferOutputStream()
        table = pa.Table.from_arrays(list(arrays.values()), schema=schema)
        # What makes the smallest file takes twice as long, and a reader of whole episodes needs no statistics.
        pq.write_table(
            table,
            sink,
            compression="lz4",
            use_dictionary=["episode_id", "info"],
            write_statistics=False,
            row_group_size=self._rows_together,
        )
        return bytes(sink.getvalue())

    def _seed(self, pa: Any, seed: int | None) -> Any:
        # One type in all files of a run, so that they can be read as one table.
        if self._has_texts:
            return pa.scalar(None if seed is None else str(seed), pa.string())
        return pa.scalar(seed, pa.int64())


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


def _distinct(named: Iterable[tuple[str, SpaceView]]) -> list[tuple[str, SpaceView]]:
    """Return leaves of which no two have one name: keys may hold dots, and 1 and "1" are written alike."""
    found: dict[str, SpaceView] = {}
    for name, view in named:
        column, number = str(to_plain(name)[0]), 1
        while column in found:
            number += 1
            column = f"{name}-{number}"
        found[column] = view
    return list(found.items())


def _metadata(view: SpaceView | None) -> dict[str, str] | None:
    """Return what a reader must know of a leaf to make arrays of it."""
    if view is None:
        return None
    return {"shape": _json(list(view.shape)), "dtype": str(view.dtype)} if view.is_array else {"kind": view.kind}


def _column(pa: Any, view: SpaceView, values: Sequence[Any]) -> Any:
    """Return one leaf as an Arrow array."""
    if not view.is_array or view.dtype is None:
        return pa.array([_text(value) for value in values], pa.string())
    dtype = np.dtype(view.dtype)
    kept: np.dtype[Any] = np.dtype(_KEPT.get(dtype.char, dtype)).newbyteorder("=")
    array = np.ascontiguousarray(np.asarray(values, dtype).reshape(len(values), *view.shape), kept)
    if not view.shape:
        return pa.array(array)
    if view.size == 0:
        return pa.array([[]] * len(array), pa.list_(pa.from_numpy_dtype(kept)))
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), view.size)


def _padded(pa: Any, array: Any, rows: int) -> Any:
    """Return an array with nulls at its end."""
    missing = rows - len(array)
    return pa.concat_arrays([array, pa.nulls(missing, array.type)]) if missing else array


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
    return str(to_plain(value)[0]) if isinstance(value, str) else None if value is None else readable_json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
