"""Route: one policy paired with one environment, from a YAML file and command-line flags."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rlmesh_adapters.errors import RouteError, nearest

from .documents import Document, KeyPath, show_path
from .outcomes import SuccessRule

Count = Annotated[int, msgspec.Meta(ge=1)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class WrapperRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A wrapper the route puts around the environment; see rlmesh_envs.request."""

    name: str
    kwargs: dict[str, Any] = {}


class EnvRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The environment; see rlmesh_envs.request.

    max_episode_seconds: wall-clock seconds after which we end an episode; null is no limit.
    """

    id: str = ""
    kwargs: dict[str, Any] = {}
    imports: tuple[str, ...] = ()
    wrappers: tuple[WrapperRoute | str, ...] = ()
    vectorization: Literal["sync", "async", "native"] = "sync"
    autoreset: Literal["next_step", "same_step", "disabled"] | None = None
    start_method: Literal["fork", "forkserver", "spawn"] | None = None
    max_episode_steps: Count | None = None
    max_episode_seconds: Positive | None = None


class PolicyRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The policy: `policy.py`, `policy.py:Name`, `package.module:Name`, `random` or `zero`."""

    source: str = ""
    params: dict[str, Any] = {}


class SuccessRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When an episode counts as a success: an info key, or a bound on the return."""

    key: str | None = None
    when: Literal["final", "any"] = "final"
    return_at_least: float | None = None


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a run is made of.

    horizon: actions executed a policy call. instances: `shared`, `lane` (one policy object a lane) or `auto`.
    seed: episode i resets with seed + i; seeds: or one seed an episode, as listed.
    metrics: info keys of numbers to keep by episode. gates: bars such as `success_rate >= 0.9`.
    """

    version: Literal[1] = 1
    env: EnvRoute = EnvRoute()
    policy: PolicyRoute = PolicyRoute()
    horizon: Count = 1
    num_envs: Count = 1
    episodes: Count = 50
    seed: NonNegative = 0
    seeds: tuple[NonNegative, ...] | None = None
    instances: Literal["auto", "shared", "lane"] = "auto"
    success: SuccessRoute | None = None
    metrics: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()

    @property
    def episode_seeds(self) -> tuple[int, ...]:
        """One seed an episode."""
        if self.seeds is not None:
            return self.seeds[: self.episodes]
        return tuple(range(self.seed, self.seed + self.episodes))

    @property
    def success_rule(self) -> SuccessRule:
        """The declared rule, or the usual info keys at the last step."""
        declared = self.success
        if declared is None:
            return SuccessRule()
        if declared.return_at_least is not None:
            return SuccessRule(return_at_least=declared.return_at_least)
        keys = SuccessRule().keys if declared.key is None else (declared.key,)
        return SuccessRule(keys=keys, when=declared.when)


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; a flag that was not given is not in `values`.

    values: path of a route's value -> what replaces it. names: the same path -> the flag, for messages.
    """

    values: dict[KeyPath, Any] = {}
    names: dict[KeyPath, str] = {}


def read_route(path: Path | None, flags: Flags) -> Route:
    """Return the route of a file, with the flags in place of what it says.

    Raises RouteError with file and line, or the flag, for unknown keys (naming the nearest), wrong types, counts
    below one, seeds that do not match the episodes, and a missing environment or policy.
    """
    document = Document("route", {}, {}) if path is None else _read(path)
    if not isinstance(document.value, dict):
        raise RouteError(
            f"a route is a mapping of keys, got {_kind(document.value)}",
            where=document.name,
            mend="begin with `version: 1`",
        )
    _refuse_unknown(document.value, Route, (), document)
    merged = _merge(document.value, flags)
    route = _convert(merged, document, flags)
    if path is not None:
        route = _with_local_policy(route, path, flags)
    _check(route, merged, document, flags)
    return route


def _read(path: Path) -> Document:
    from .yamls import read_document  # noqa: PLC0415 - a run without a route file does not need YAML

    return read_document(path)


def _merge(value: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    merged: dict[str, Any] = _copy(value)
    for path, replacement in flags.values.items():
        target = merged
        for part in path[:-1]:
            if not isinstance(target.get(str(part)), dict):
                target[str(part)] = {}
            target = target[str(part)]
        target[str(path[-1])] = replacement
    # What the command line says of seeds or success stands alone.
    if ("seeds",) in flags.values and ("episodes",) not in flags.values:
        merged.pop("episodes", None)
    if ("seed",) in flags.values and ("seeds",) not in flags.values:
        merged.pop("seeds", None)
    if merged.get("seeds") is not None and "episodes" not in merged and isinstance(merged["seeds"], list):
        merged["episodes"] = len(merged["seeds"])
    return merged


def _copy(value: Any) -> Any:
    return {key: _copy(part) for key, part in value.items()} if isinstance(value, dict) else value


_STRUCTS: dict[KeyPath, type[msgspec.Struct]] = {
    ("env",): EnvRoute,
    ("policy",): PolicyRoute,
    ("success",): SuccessRoute,
}


def _refuse_unknown(value: Any, struct: type[msgspec.Struct], path: KeyPath, document: Document) -> None:
    known = struct.__struct_fields__
    for key, part in value.items():
        here = (*path, key)
        if key not in known:
            near = nearest(key, known, limit=1)
            mend = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
            raise RouteError(f"unknown key `{show_path(here)}`", where=document.place(here), mend=mend)
        inner = _STRUCTS.get(here)
        if inner is not None and isinstance(part, dict):
            _refuse_unknown(part, inner, here, document)
        if here == ("env", "wrappers") and isinstance(part, list):
            for position, wrapper in enumerate(part):
                if isinstance(wrapper, dict):
                    _refuse_unknown(wrapper, WrapperRoute, (*here, position), document)


_PATH = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")


def _convert(merged: dict[str, Any], document: Document, flags: Flags) -> Route:
    try:
        return msgspec.convert(merged, Route)
    except msgspec.ValidationError as error:
        text, _, tail = str(error).partition(" - at `$")
        path: KeyPath = tuple(
            int(position) if position.isdigit() else position or key
            for key, position in _PATH.findall(tail.rstrip("`"))
        )
        given = _lookup(merged, path)
        choices = _choices(path)
        expected = text.replace("Expected ", "").replace("`", "").split(", got")[0]
        if choices:
            expected = "one of " + ", ".join(choices)
        near = nearest(given, choices) if isinstance(given, str) else []
        raise RouteError(
            f"{show_path(path)} must be {expected}, got {_kind(given)}",
            where=_place(path, document, flags),
            mend=f"did you mean {near[0]}?" if near else _type_mend(given, choices),
        ) from error


def _choices(path: KeyPath) -> list[str]:
    """Return the words that may stand at a path, empty where it is not a choice of words."""
    struct: Any = Route
    for part in path[:-1]:
        struct = _STRUCTS.get((*path[: path.index(part)], part))
    hint = get_type_hints(struct).get(str(path[-1])) if struct is not None and path else None
    return [word for word in _literals(hint) if isinstance(word, str)]


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in _literals(part)]


def _lookup(value: Any, path: KeyPath) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return f"{type(value).__name__} {value!r}"


def _type_mend(given: Any, choices: list[str]) -> str:
    if isinstance(given, str) and not choices:
        return "write it without quotes if a number is meant"
    return "see `rlmesh eval --help` for what it takes"


def _place(path: KeyPath, document: Document, flags: Flags) -> str:
    for known, name in flags.names.items():
        if path[: len(known)] == known:
            return name
    return document.place(path)


def _with_local_policy(route: Route, file: Path, flags: Flags) -> Route:
    """Read a policy's path that stands in a route file from that file's folder."""
    source = route.policy.source
    name, colon, attribute = source.partition(".py:")
    is_file = source.endswith(".py") or bool(colon)
    if ("policy", "source") in flags.values or not is_file:
        return route
    path = f"{name}.py" if colon else source
    local = str((file.parent / path).resolve())
    policy = msgspec.structs.replace(route.policy, source=f"{local}:{attribute}" if colon else local)
    return msgspec.structs.replace(route, policy=policy)


def _check(route: Route, merged: Mapping[str, Any], document: Document, flags: Flags) -> None:
    if not route.env.id:
        raise RouteError("no environment is named", where="env.id", mend="give --env, such as --env CartPole-v1")
    if not route.policy.source:
        raise RouteError(
            "no policy is named", where="policy.source", mend="give a policy file, or `random` or `zero`"
        )
    if route.seeds is not None and len(route.seeds) != route.episodes:
        fewer = "fewer" if len(route.seeds) < route.episodes else "more"
        raise RouteError(
            f"{len(route.seeds)} seeds are {fewer} than {route.episodes} episodes",
            where=_place(("seeds",), document, flags),
            mend="give one seed an episode, or drop one of the two",
        )
    for path in (("success", "return_at_least"), ("env", "max_episode_seconds")):
        number = _lookup(merged, path)
        if isinstance(number, float) and not math.isfinite(number):
            raise RouteError(
                f"{show_path(path)} must be a finite number, got {number}",
                where=_place(path, document, flags),
                mend="drop it, or give a number",
            )
    success = route.success
    if success is not None and (success.key is None) == (success.return_at_least is None):
        raise RouteError(
            "success needs either `key` or `return_at_least`",
            where=_place(("success",), document, flags),
            mend="such as {key: is_success, when: final} or {return_at_least: 475}",
        )
    _check_combination(route, document, flags)


def _check_combination(route: Route, document: Document, flags: Flags) -> None:
    env = route.env
    if env.autoreset is not None and env.vectorization == "native":
        raise RouteError(
            "a native vector environment has an autoreset mode of its own",
            where=_place(("env", "autoreset"), document, flags),
            mend="drop autoreset, or use --vectorization sync or async",
        )
    if env.start_method is not None and env.vectorization != "async":
        raise RouteError(
            f"start method {env.start_method} needs worker processes",
            where=_place(("env", "start_method"), document, flags),
            mend="add --vectorization async, or drop it",
        )
