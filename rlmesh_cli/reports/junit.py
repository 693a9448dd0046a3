"""JUnit: a run as the XML that CI services show beside tests; green where the exit code is 0, and only there."""

from __future__ import annotations

from xml.etree import ElementTree

from rlmesh_adapters.errors import shortened
from rlmesh_cli.documents import printable
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.exits import Exit

from .report import MEANINGS, Report, bars, ending, seeds_text

_LONGEST = 4000
_TAGS = {"missed": "failure", "undecided": "skipped"}


def junit_xml(report: Report) -> bytes:
    """Return a document with one suite: a case a bar, and a case an episode that errored.

    An errored episode that a gate on `errors` allows is `skipped`, and so is a gate of a run that is not whole.
    """
    run = report.evaluation
    seconds = f"{run.seconds if run is not None else 0.0:.3f}"
    suite = ElementTree.Element("testsuite", {"name": _text(_name(report)), "time": seconds})
    _add_origin(suite, report)
    _add_properties(suite, report)
    for bar in bars(report):
        case = _add_case(suite, report, bar.name)
        if bar.state in _TAGS:
            _add_outcome(case, _TAGS[bar.state], bar.text, kind=bar.state)
    is_allowed = run is not None and run.errors_are_allowed
    for row in report.errored:
        _add_errored(suite, report, row, is_allowed=is_allowed)
    _add_end(suite, report, seconds)
    counts = {"tests": str(len(suite.findall("testcase")))}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[name] = str(len(suite.findall(f"testcase/{tag}")))
    suite.attrib.update(counts)
    del counts["skipped"]  # Jenkins' schema has it for a suite only
    root = ElementTree.Element("testsuites", {"name": "rlmesh eval", **counts, "time": seconds})
    root.append(suite)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_origin(suite: ElementTree.Element, report: Report) -> None:
    started = report.record.get("started_at")
    if started:  # readers know no time zone here; ours is UTC
        suite.set("timestamp", _text(str(started)[:19]))
    host = report.record.get("host", {}).get("name")
    if host:
        suite.set("hostname", _text(str(host)))


def _add_properties(suite: ElementTree.Element, report: Report) -> None:
    run, record = report.evaluation, report.record
    facts = {
        "env": report.env,
        "policy": report.policy,
        "seeds": seeds_text(record["seeds"]) if record.get("seeds") else None,
        "run": str(run.folder) if run is not None else None,
        "status": run.status if run is not None else None,
        "episodes": f"{run.summary.episodes} of {run.summary.planned}" if run is not None else None,
        "exit_code": str(int(report.code)),
        "command": report.command,
        **{f"version.{name}": version for name, version in record.get("versions", {}).items()},
    }
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in facts.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", {"name": _text(name), "value": _text(str(value))})


def _add_errored(suite: ElementTree.Element, report: Report, row: EpisodeResult, *, is_allowed: bool) -> None:
    error = row.error
    if error is None:
        return
    seed = "" if row.seed is None else f" (seed {row.seed})"
    case = _add_case(suite, report, f"episode {row.index}{seed}", seconds=row.seconds.total)
    step = "" if error.step is None else f" at step {error.step}"
    text = f"{error.phase}{step}: {error.message}"
    if is_allowed:
        _add_outcome(case, "skipped", f"errored, which a gate allows: {text}", kind=error.phase, place=error.place)
    else:
        _add_outcome(case, "error", text, kind=error.phase, place=error.place)


def _add_end(suite: ElementTree.Element, report: Report, seconds: str) -> None:
    """Add a case for the run itself: if it is not whole, if nothing else is there, or if all is green in vain."""
    cause = ending(report)
    is_red = any(suite.find(f"testcase/{tag}") is not None for tag in ("failure", "error"))
    if not cause and report.code != Exit.DONE and not is_red:
        cause = MEANINGS[report.code]
    if cause:
        case = _add_case(suite, report, "finished")
        _add_outcome(case, "error", cause, kind=report.code.name.lower())
    elif suite.find("testcase") is None:
        _add_case(suite, report, "finished").set("time", seconds)


def _add_case(
    suite: ElementTree.Element, report: Report, name: str, *, seconds: float = 0.0
) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", {"classname": _classname(report), "name": _text(name), "time": f"{seconds:.3f}"}
    )


def _add_outcome(case: ElementTree.Element, tag: str, text: str, *, kind: str, place: str | None = None) -> None:
    text = _text(text)
    outcome = ElementTree.SubElement(case, tag, {"message": text.partition("\n")[0]})
    if tag != "skipped":
        outcome.set("type", _text(kind))
    outcome.text = text if place is None else f"{text}\nat {_text(place)}"


def _name(report: Report) -> str:
    if report.env is None and report.policy is None:
        return "rlmesh eval"
    return f"rlmesh eval: {report.policy or 'a policy'} on {report.env or 'an environment'}"


def _classname(report: Report) -> str:
    """Return `rlmesh.<policy>.<environment>`: readers take what stands before the last dot for a package."""
    parts = [part.replace(".", "_") for part in (report.policy, report.env) if part]
    return _text(".".join(["rlmesh", *parts]))


def _text(text: str) -> str:
    """Return text without the characters that XML has no way to write; a message has its end cut off."""
    return printable(shortened(text, _LONGEST))
