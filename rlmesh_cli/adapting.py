"""Adapting: the documents of a route, from its file, the environment's metadata and the policy."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.contract import SPEC_KEY, TAGS_KEY, Ensemble, RouteContract
from rlmesh_adapters.documents.reading import parse_json, read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError, Record
from rlmesh_adapters.errors import LoadError, RouteError, describe_error, is_fault, nearest

from .documents import KeyPath
from .guests import append_folder, as_guest
from .schema import Route

_MOST_BYTES = 64 * 2**20


def check_documents(route: Route, place: Callable[[KeyPath], str]) -> None:
    """Read the documents of a route file once, so that a mistake is told with its line.

    place: returns where the value at a path was given.

    Raises RouteError for documents that cannot be meant.
    """
    for name, value, read in (
        ("env_tags", route.env_tags, read_tags),
        ("model_spec", route.model_spec, read_spec),
    ):
        if value is None:
            continue
        try:
            read(value)
        except DocumentError as error:
            raise RouteError(error.cause, where=place((name, *error.path)), mend=error.mend) from error


def with_documents(
    contract: RouteContract,
    route: Route,
    metadata: Mapping[str, Any],
    *,
    folders: tuple[Path, ...],
    trusts_entrypoints: bool,
) -> RouteContract:
    """Return a contract with the documents that are known before the policy is built.

    metadata: of the environment. folders: where statistics files are looked for.
    trusts_entrypoints: whether functions that documents only name are imported.

    Raises DocumentError for documents of the environment that cannot be meant.
    """
    tags = route.env_tags if route.env_tags is not None else metadata.get(TAGS_KEY)
    env_spec = metadata.get(SPEC_KEY)
    ensemble = route.ensemble
    return msgspec.structs.replace(
        contract,
        tags=None if tags is None else _named(tags, read_tags, "env_tags"),
        are_required=route.env_tags is not None,
        spec=None if route.model_spec is None else _named(route.model_spec, read_spec, "model_spec"),
        env_spec=None if env_spec is None else _named(env_spec, read_spec, "model_spec"),
        ensemble=None if ensemble is None else Ensemble(decay=ensemble.decay, linear=ensemble.linear),
        import_function=_import_function if trusts_entrypoints else None,
        read_statistics=StatisticsReader(folders),
    )


def _named(value: Any, read: Callable[[Any], Any], name: str) -> Any:
    try:
        record: Record = read(value)
    except DocumentError as error:
        raise error.within(name) from None
    return record


class StatisticsReader:
    """Reads JSON files of statistics, each once.

    folders: where a path that is not absolute is looked for, in order.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._known: dict[str, Any] = {}

    def __call__(self, name: str) -> Any:
        """Return the plain values of a file; raises RouteError where it is not there or cannot be read."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Any:
        tried = [folder / name for folder in self._folders] or [Path(name)]
        path = next((path for path in tried if path.is_file()), None)
        if path is None:
            near = nearest(
                Path(name).name, [file.name for folder in self._folders for file in folder.glob("*.json")]
            )
            mend = f"did you mean {near[0]}?" if near else "name it relative to the route file or the policy file"
            raise RouteError(f"no such statistics file: {name}", where="normalize.file", mend=mend)
        if path.stat().st_size > _MOST_BYTES:
            raise RouteError(f"{path} is larger than {_MOST_BYTES:,} bytes", where="normalize.file")
        try:
            return parse_json(path.read_bytes(), most_bytes=_MOST_BYTES)
        except DocumentError as error:
            raise RouteError(f"{name}: {error.cause}", where=str(path), mend="write it as JSON") from error


def _import_function(name: str) -> Callable[[Any], Any]:
    """Return the function that `module:name` names."""
    module, _, attribute = name.partition(":")
    append_folder(Path.cwd())
    try:
        with as_guest():
            found = getattr(importlib.import_module(module), attribute)
    except BaseException as error:
        if not is_fault(error):
            raise
        raise LoadError(
            f"custom transform `{name}` cannot be imported: {describe_error(error)}",
            where="model_spec",
            mend="check module and name",
        ) from error
    if not callable(found):
        raise LoadError(f"custom transform `{name}` is {type(found).__name__}, no function", where="model_spec")
    return found  # type: ignore[no-any-return]
