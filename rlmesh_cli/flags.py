"""From flags as typed to the route values that they replace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import RouteError, shortened

from .documents import KeyPath
from .schema import Flags

_RETURN_RULE = re.compile(r"\s*return\s*>=\s*(\S+)\s*")
_KEY_RULE = re.compile(r"\s*([^<>=:\s](?:[^<>=:]*?[^<>=:\s])?)\s*(?::\s*(\w+)\s*(?::\s*(\d{1,9})\s*)?)?")
# Nobody means a seed of more digits, and Python refuses to read very many.
_SEED = re.compile(r"[0-9]{1,100}")
_RANGE = re.compile(r"([0-9]{1,100})\.\.([0-9]{1,100})")
_MOST_SEEDS = 10_000_000


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that change a route, as typed; None is a flag that was not given."""

    policy: str | None = None
    route: Path | None = None
    env: str | None = None
    env_args: tuple[str, ...] = ()
    policy_args: tuple[str, ...] = ()
    episodes: int | None = None
    num_envs: int | None = None
    workers: int | None = None
    cluster: str | None = None
    ray_resources: str | None = None
    seed: int | None = None
    seeds: str | None = None
    horizon: int | None = None
    schedule: str | None = None
    pixels: str | None = None
    max_episode_steps: int | None = None
    max_episode_seconds: float | None = None
    step_timeout: float | None = None
    call_timeout: float | None = None
    max_errors: int | None = None
    confidence: float | None = None
    gate_on: str | None = None
    interval: str | None = None
    until: str | None = None
    baseline: str | None = None
    margins: tuple[str, ...] = ()
    alpha: float | None = None
    allowed: tuple[str, ...] = ()
    controls: str | None = None
    vectorization: str | None = None
    start_method: str | None = None
    env_workers: int | None = None
    autoreset: str | None = None
    instances: str | None = None
    batch_rows: int | None = None
    success: str | None = None
    metrics: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    record: str | None = None
    video: str | None = None


#: Flag's attribute -> the value in the route that it replaces.
_SIMPLE: dict[str, KeyPath] = {
    "env": ("env", "id"),
    "episodes": ("episodes",),
    "num_envs": ("num_envs",),
    "workers": ("workers",),
    "cluster": ("cluster",),
    "seed": ("seed",),
    "horizon": ("horizon",),
    "schedule": ("schedule",),
    "pixels": ("env", "pixels"),
    "max_episode_steps": ("env", "max_episode_steps"),
    "max_episode_seconds": ("env", "max_episode_seconds"),
    "step_timeout": ("env", "step_timeout"),
    "call_timeout": ("policy", "call_timeout"),
    "max_errors": ("max_errors",),
    "confidence": ("confidence",),
    "gate_on": ("gate_on",),
    "interval": ("interval",),
    "until": ("until",),
    "baseline": ("baseline", "run"),
    "alpha": ("baseline", "alpha"),
    "vectorization": ("env", "vectorization"),
    "start_method": ("env", "start_method"),
    "env_workers": ("env", "workers"),
    "autoreset": ("env", "autoreset"),
    "instances": ("instances",),
    "batch_rows": ("batch_rows",),
    "video": ("video",),
}


def read_flags(typed: RouteRequest) -> Flags:
    """Return what the given flags say.

    Raises RouteError, naming the flag, for values that cannot be read.
    """
    values: dict[KeyPath, Any] = {}
    names: dict[KeyPath, str] = {}

    def put(path: KeyPath, value: Any, name: str) -> None:
        values[path], names[path] = value, name

    if typed.policy is not None:
        put(("policy", "source"), typed.policy, "policy")
    for attribute, path in _SIMPLE.items():
        value = getattr(typed, attribute)
        if value is not None:
            put(path, value, "--" + attribute.replace("_", "-"))
    for section, flag, pairs in (
        ("env", "--env-arg", typed.env_args),
        ("policy", "--policy-arg", typed.policy_args),
    ):
        for name, value in (_pair(pair, flag) for pair in pairs):
            put((section, "kwargs" if section == "env" else "params", name), value, f"{flag} {name}")
    if typed.seeds is not None:
        put(("seeds",), parse_seeds(typed.seeds), "--seeds")
    if typed.success is not None:
        put(("success",), parse_success(typed.success), "--success")
    if typed.margins:
        put(("baseline", "margin"), list(typed.margins), "--margin")
    if typed.allowed:
        put(("baseline", "allow"), list(typed.allowed), "--allow")
    if typed.controls is not None:
        put(("controls",), parse_words(typed.controls), "--controls")
    if typed.record is not None:
        put(("record",), parse_words(typed.record), "--record")
    if typed.ray_resources is not None:
        put(("ray_resources",), _resources(typed.ray_resources), "--ray-resources")
    if typed.metrics:
        put(("metrics",), list(typed.metrics), "--metric")
    if typed.gates:
        put(("gates",), list(typed.gates), "--gate")
    return Flags(values=values, names=names)


def _pair(text: str, flag: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise RouteError(
            f"`{shortened(text)}` is not NAME=VALUE", where=flag, mend=f"write {flag} {name or 'name'}=value"
        )
    return name.strip(), _scalar(value, f"{flag} {name.strip()}")


def _resources(text: str) -> dict[str, Any]:
    return dict(_pair(part.strip(), "--ray-resources") for part in text.split(","))


def _scalar(text: str, where: str) -> Any:
    from .yamls import parse_scalar  # noqa: PLC0415 - a run without such flags does not need YAML

    return parse_scalar(text, where)


def parse_words(text: str) -> list[str]:
    """Read words such as `random,zero`."""
    return [word.strip() for word in text.split(",")]


def parse_seeds(text: str) -> list[int]:
    """Read seeds such as `3,1,4`, `11..15` (both ends included) or a mix of the two."""
    seeds: list[int] = []
    for part in text.split(","):
        word = part.strip()
        match = _RANGE.fullmatch(word)
        if match is not None and int(match[1]) <= int(match[2]) < int(match[1]) + _MOST_SEEDS:
            seeds.extend(range(int(match[1]), int(match[2]) + 1))
        elif _SEED.fullmatch(word):
            seeds.append(int(word))
        else:
            raise RouteError(
                f"`{shortened(word)}` is not a seed",
                where="--seeds",
                mend="write numbers from 0 on, such as 3,1,4 or 11..15",
            )
    return seeds


def parse_success(text: str) -> dict[str, Any]:
    """Read a rule such as `won`, `won:any`, `won:held:10` or `return >= 475`."""
    bound = _RETURN_RULE.fullmatch(text)
    if bound is not None:
        return {"return_at_least": _scalar(bound[1], "--success")}
    rule = _KEY_RULE.fullmatch(text)
    if rule is None:
        # What follows a colon and cannot be read must not become part of a key that nobody reports.
        in_file = (
            "; a key that holds a colon stands in a route file, as success: {key: ...}" if ":" in text else ""
        )
        raise RouteError(
            f"`{shortened(text)}` is not a success rule",
            where="--success",
            mend="write KEY, KEY:any, KEY:held:10 or 'return >= X', such as is_success or 'return >= 475'"
            + in_file,
        )
    return {
        "key": rule[1],
        **({} if rule[2] is None else {"when": rule[2]}),
        **({} if rule[3] is None else {"steps": int(rule[3])}),
    }
