"""Route: one policy paired with one environment, read from a YAML file and command-line flags."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import RouteError

from .conversion import convert, kind_of, lookup
from .documents import Document, KeyPath, show_path
from .flags import parse_seeds, parse_success, parse_words
from .mistaken import refuse_mistaken
from .route_keys import refuse_unknown
from .schema import Flags, Route
from .sources import at_file, split_source

#: Numbers that are finite where they are given.
_FINITE: tuple[KeyPath, ...] = (
    ("success", "return_at_least"),
    ("env", "max_episode_seconds"),
    ("env", "step_timeout"),
    ("policy", "call_timeout"),
)


def read_route(path: Path | None, flags: Flags, base: Document | None = None) -> tuple[Route, str | None]:
    """Return the route of a file, with the flags in place of what it says, and the file's SHA-256.

    base: the route of an earlier run, for what neither of them says.

    Raises RouteError with file and line, or the flag, for unknown keys (naming the nearest), wrong types, counts
    below one, seeds that do not match the episodes, and a missing environment or policy; LoadError for what is
    named as a policy and is something else.
    """
    own = base or Document("route", {}, {})
    document = _checked(own) if path is None else _filled(_checked(_read(path)), own)
    merged = _merge(document.value, flags)
    route = convert(merged, lambda path: _place(path, document, flags))
    if path is not None:
        route = _with_local_policy(route, path, flags)
    _check(route, merged, document, flags)
    return route, document.sha256 or None


def _checked(document: Document) -> Document:
    """Return a document of known keys, with those read that stand there as a flag takes them."""
    if not isinstance(document.value, dict):
        raise RouteError(
            f"a route is a mapping of keys, got {kind_of(document.value)}",
            where=document.name,
            mend="begin with `version: 1`",
        )
    refuse_unknown(document)
    return msgspec.structs.replace(document, value=_with_texts_read(document))


def _read(path: Path) -> Document:
    from .yamls import read_document  # noqa: PLC0415 - a run without a route file does not need YAML

    return read_document(path)


#: Keys whose value a file may give as the flag takes it.
_TEXTS: dict[str, Callable[[str], Any]] = {
    "record": parse_words,
    "controls": parse_words,
    "seeds": parse_seeds,
    "success": parse_success,
}
#: Who writes one of these means no name of anything.
_SWITCHES = frozenset(("yes", "no", "on", "off", "true", "false"))


def _with_texts_read(document: Document) -> dict[str, Any]:
    """Return a document's keys with those read that stand there as a flag takes them, such as `seeds: 11..15`."""
    value = dict(document.value)
    for key, parse in _TEXTS.items():
        if isinstance(value.get(key), str) and value[key].lower() not in _SWITCHES:
            try:
                value[key] = parse(value[key])
            except RouteError as error:
                raise RouteError(error.cause, where=document.place((key,)), mend=error.mend) from None
    return value


#: Sections of which a file may say a part.
_FILLED = ("env", "policy")
#: What says which episodes are played; a file that lists seeds says all of it.
_PLAN = ("seed", "seeds", "episodes")


def _filled(document: Document, base: Document) -> Document:
    """Return a route file with what it does not say taken from the route of an earlier run."""
    said, left = document.value, dict(_checked(base).value)
    for key in _PLAN if "seeds" in said else ("seeds",) if "seed" in said else ():
        left.pop(key, None)
    filled = {key: _united(left[key], said[key]) for key in _FILLED if key in left and key in said}
    return msgspec.structs.replace(document, value={**left, **said, **filled}, below=base)


def _united(below: Any, said: Any) -> Any:
    """Return a mapping with the keys of both, also in the mappings inside; of all else what is said."""
    if not (isinstance(below, dict) and isinstance(said, dict)):
        return said
    return {**below, **{key: _united(below.get(key), part) for key, part in said.items()}}


def _merge(value: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    merged: dict[str, Any] = _copy(value)
    for path, replacement in flags.values.items():
        _put(merged, path, replacement)
    # What the command line says of seeds or success stands alone.
    if ("seeds",) in flags.values and ("episodes",) not in flags.values:
        merged.pop("episodes", None)
    if ("seed",) in flags.values and ("seeds",) not in flags.values:
        merged.pop("seeds", None)
    seeds = merged.get("seeds")
    if isinstance(seeds, list) and seeds and "episodes" not in merged:
        merged["episodes"] = len(seeds)
    return merged


def _copy(value: Any) -> Any:
    return {key: _copy(part) for key, part in value.items()} if isinstance(value, dict) else value


def _put(merged: dict[str, Any], path: KeyPath, replacement: Any) -> None:
    """Put a value in its place; a section that is no mapping stays, to be refused by its type."""
    target: Any = merged
    for part in path[:-1]:
        if target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            return
    target[path[-1]] = replacement


def _place(path: KeyPath, document: Document, flags: Flags) -> str:
    for known, name in flags.names.items():
        if path[: len(known)] == known:
            return name
    return document.place(path)


def _with_local_policy(route: Route, file: Path, flags: Flags) -> Route:
    """Read a policy's path that stands in a route file from that file's folder."""
    target, _ = split_source(route.policy.source)
    if ("policy", "source") in flags.values or not target.endswith(".py"):
        return route
    local = str((file.parent / target).resolve())
    policy = msgspec.structs.replace(route.policy, source=at_file(route.policy.source, local))
    return msgspec.structs.replace(route, policy=policy)


def _check(route: Route, merged: Mapping[str, Any], document: Document, flags: Flags) -> None:
    refuse_mistaken(route.policy.source, _place(("policy", "source"), document, flags))
    if not route.env.id:
        raise RouteError("no environment is named", where="env.id", mend="give --env, such as --env CartPole-v1")
    if not route.policy.source:
        raise RouteError(
            "no policy is named", where="policy.source", mend="give a policy file, or `random` or `zero`"
        )
    for path in _FINITE:
        number = lookup(merged, path)
        if isinstance(number, float) and not math.isfinite(number):
            raise RouteError(
                f"{show_path(path)} must be a finite number, got {number}",
                where=_place(path, document, flags),
                mend="drop it, or give a number",
            )
    if route.baseline is not None and not route.baseline.run:
        raise RouteError(
            "no baseline is named", where=_place(("baseline",), document, flags), mend="add --baseline RUN"
        )
    _check_seeds(route, document, flags)
    _check_success(route, document, flags)
    _check_combination(route, document, flags)
    if route.video is not None:
        from .recording.selection import parse_selection  # noqa: PLC0415 - few runs are filmed

        parse_selection(route.video, _place(("video",), document, flags))
    if route.env_tags is not None or route.model_spec is not None:
        from .adapting import check_documents  # noqa: PLC0415 - a route without conversion starts sooner

        check_documents(route, lambda path: _place(path, document, flags))


def _check_seeds(route: Route, document: Document, flags: Flags) -> None:
    given = [key for key in ("seed", "seeds") if (key,) in flags.values]
    if not given:
        given = [key for key in ("seed", "seeds") if document.value.get(key) is not None]
    if len(given) == 2:
        raise RouteError(
            f"one seed to count from ({route.seed}) and a list of seeds contradict one another",
            where=_place(("seeds",), document, flags),
            mend="give seed or seeds",
        )
    if route.seeds is None or len(route.seeds) == route.episodes:
        return
    if not route.seeds:
        cause, mend = "seeds lists no seed", "list one seed an episode, or drop it"
    else:
        fewer = "fewer" if len(route.seeds) < route.episodes else "more"
        cause = f"{len(route.seeds)} seeds are {fewer} than {route.episodes} episodes"
        mend = "give one seed an episode, or drop one of the two"
    raise RouteError(cause, where=_place(("seeds",), document, flags), mend=mend)


def _check_success(route: Route, document: Document, flags: Flags) -> None:
    success = route.success
    if success is None:
        return
    if (success.key is None) == (success.return_at_least is None):
        cause = "success needs either `key` or `return_at_least`"
    elif success.key is None and success.when != "final":
        cause = f"`when: {success.when}` is of no use with `return_at_least`: a return is known at the end"
    elif success.steps is not None and success.when != "held":
        cause = f"`steps: {success.steps}` is of no use with `when: {success.when}`"
    elif success.key is not None and not success.key.strip():
        cause = "the `key` of success is empty"
    else:
        return
    raise RouteError(
        cause,
        where=_place(("success",), document, flags),
        mend="such as {key: is_success, when: final} or {return_at_least: 475}",
    )


def _check_combination(route: Route, document: Document, flags: Flags) -> None:
    env = route.env
    if env.autoreset is not None and env.vectorization == "native":
        raise RouteError(
            "a native vector environment has an autoreset mode of its own",
            where=_place(("env", "autoreset"), document, flags),
            mend="drop autoreset, or use --vectorization sync or async",
        )
    if env.workers is not None and (env.vectorization != "async" or env.autoreset is not None):
        is_gymnasium = env.vectorization == "async"
        raise RouteError(
            f"{env.workers} environment workers: gymnasium's own vector environment has a process a lane"
            if is_gymnasium
            else f"{env.workers} environment workers need environments in worker processes",
            where=_place(("env", "workers"), document, flags),
            mend="drop autoreset, or the number" if is_gymnasium else "add --vectorization async, or drop it",
        )
    if route.ray_resources and route.cluster is None:
        raise RouteError(
            "resources of workers need a cluster",
            where=_place(("ray_resources",), document, flags),
            mend="add --cluster, or drop them",
        )
    if route.cluster is not None and not route.cluster.strip():
        raise RouteError(
            "the cluster's address is empty",
            where=_place(("cluster",), document, flags),
            mend="give ray, host:port or ray://host:port",
        )
    if env.start_method is not None and env.vectorization != "async" and route.workers == 1:
        raise RouteError(
            f"start method {env.start_method} needs worker processes",
            where=_place(("env", "start_method"), document, flags),
            mend="add --vectorization async or --workers, or drop it",
        )
