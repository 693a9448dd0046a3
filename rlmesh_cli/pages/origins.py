"""Origins: where a run comes from - plan, probe, versions, hashes, commands - as its record tells."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rlmesh_cli.records import strict_json
from rlmesh_cli.run_reader import StoredRun
from rlmesh_cli.wording import counted

from .facts import Block, Cell, Column, Facts, Line, Row, Sentence, Sentences, Table, Text

_OUTCOMES = {"pass": "good", "fail": "bad", "noted": "caution", "not checked": "note"}


def plan_blocks(run: StoredRun) -> tuple[Block, ...]:
    """Return how observations and actions were converted."""
    lines = run.record.get("adapter")
    if not lines:
        return (Sentences((Sentence("Nothing was converted: the policy acts in the environment's own spaces."),)),)
    return (Text("", "\n".join(map(str, lines))),)


def probe_blocks(run: StoredRun, *, prefix: str) -> tuple[Block, ...]:
    """Return what was found out about the policy before the run."""
    probe = run.record.get("probe")
    if not probe:
        return (Sentences((Sentence("The policy was not probed."),)),)
    name = str(probe.get("verdict", "")).replace("_", "-")
    forced = " It was run by --force." if probe.get("forced") else ""
    said = Sentence(f"{probe.get('meaning', '')}{forced}", "info", name)
    rows = [
        Row(
            (
                Cell(str(test.get("name", ""))),
                Cell(str(test.get("outcome", ""))),
                Cell(str(test.get("sentence", ""))),
            )
        )
        for test in probe.get("tests") or ()
        if isinstance(test, Mapping)
    ]
    table = Table(
        id=f"{prefix}probe-tests",
        caption="Tests of the policy",
        columns=(Column("test"), Column("outcome"), Column("what it found", "text")),
        rows=tuple(rows),
    )
    return (Sentences((said,)), table) if rows else (Sentences((said,)),)


def origin_blocks(run: StoredRun) -> tuple[Block, ...]:
    """Return versions, host, git state, hashes, commands and the route."""
    return (
        Facts(tuple(_lines(run))),
        Text("Route as resolved", _pretty(run.record["route"]), is_folded=True),
        Text("run.json without route and seeds", _pretty(_rest(run.record)), is_folded=True),
    )


def _lines(run: StoredRun) -> Iterable[Line]:
    record = run.record
    yield Line("run", str(run.folder))
    yield Line("started", str(record.get("started_at", "")))
    yield Line("ended", str(record.get("finished_at") or "not recorded"))
    for name, section in (("environment", "env"), ("policy", "policy")):
        facts = record.get(section) or {}
        shown = facts.get("id") or facts.get("label")
        if shown:
            yield Line(name, str(shown))
    env = record.get("env") or {}
    for name in ("observation_space", "action_space"):
        if env.get(name):
            yield Line(name.replace("_", " "), str(env[name]))
    yield from _policy_lines(record.get("policy") or {})
    versions = record.get("versions") or {}
    if versions:
        yield Line("versions", ", ".join(f"{name} {version}" for name, version in versions.items()))
    host = record.get("host") or {}
    if host:
        yield Line("host", ", ".join(f"{name} {value}" for name, value in host.items()))
    git = record.get("git") or {}
    if git:
        state = ", with uncommitted changes" if git.get("dirty") else ""
        yield Line("git", f"{git.get('commit') or 'no commit'} on {git.get('branch') or 'no branch'}{state}")
    yield from _command_lines(record)


def _policy_lines(policy: Mapping[str, Any]) -> Iterable[Line]:
    files = [("policy file", policy.get("file")), *(("weights", known) for known in policy.get("weights") or ())]
    for name, known in files:
        if isinstance(known, Mapping):
            yield Line(name, ", ".join(f"{key} {value}" for key, value in known.items()))
    if policy.get("corner"):
        yield Line("asked through", f"{policy['corner']}, {policy.get('instances', 'shared')} instances")


def _command_lines(record: Mapping[str, Any]) -> Iterable[Line]:
    sessions = [known for known in record.get("sessions") or () if isinstance(known, Mapping)]
    for at, known in enumerate(sessions or [record]):
        argv = known.get("argv")
        if argv:
            played = f" (played {counted(known['played'], 'episode')})" if known.get("played") is not None else ""
            name = "command" if len(sessions) < 2 else f"sitting {at + 1}"
            yield Line(name, shlex.join(["rlmesh", *map(str, argv)]) + played)
    if record.get("route_file"):
        yield Line("route file", f"{record['route_file']} sha256 {record.get('route_file_sha256')}")


def _rest(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("route", "seeds")}


def _pretty(value: Any) -> str:
    return msgspec.json.format(strict_json(value), indent=2).decode()
