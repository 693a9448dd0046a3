"""Software: Python, ourselves, what we depend on, and the extras, as the installed distributions tell it."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rlmesh_cli import __version__

from .checks import Check
from .children import Children

_GROUP, _EXTRAS = "software", "extras"
DISTRIBUTION = "rlmesh-cli"
_LEAST_PYTHON = (3, 11)
#: Extra -> what it is for. Extras that are not here are shown without a purpose.
PURPOSES = {
    "images": "camera images of another size, or compressed",
    "video": "videos of episodes",
    "steps": "observations and actions of every step, as Parquet",
    "report": "a run as a page",
    "ray": "playing on a Ray cluster",
}
#: Extras for those who work on rlmesh.
_OWN = frozenset({"test", "dev", "real", "docs"})
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*(?:\(?([^;)]*)\)?)")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


class Requirement(msgspec.Struct, frozen=True):
    """A distribution that is needed. extras: of it. least: its lowest version. extra: of ours that needs it."""

    name: str
    extras: tuple[str, ...]
    least: str
    extra: str


def check_software(children: Children) -> Iterator[Check]:
    """Look at Python, at ourselves, and at what we cannot do without."""
    version = sys.version.split()[0]
    is_new = sys.version_info[:2] >= _LEAST_PYTHON
    yield Check(
        group=_GROUP,
        name="python",
        state="ok" if is_new else "broken",
        found=f"{version}, {sys.executable}",
        mend="" if is_new else "use Python 3.11 or newer",
        is_core=True,
    )
    yield Check(group=_GROUP, name="rlmesh", state="ok", found=f"{__version__}, {Path(__file__).parents[1]}")
    yield from _core(children)
    yield _command()


def _core(children: Children) -> Iterator[Check]:
    """Look at what we depend on: can it be imported, and is it new enough?"""
    least = {needed.name.lower(): needed.least for needed in requirements(DISTRIBUTION) if not needed.extra}
    outcome = children.outcome("core")
    told = {words[0]: words for words in outcome.said if len(words) == 3}
    for module in ("gymnasium", "numpy", "msgspec", "yaml", "rich", "typer"):
        name = "pyyaml" if module == "yaml" else module
        _, state, text = told.get(module, (module, "broken", outcome.text))
        installed = installed_version(name) or text
        mend = f"pip install --force-reinstall {name}"
        if state != "ok":
            found = f"{installed_version(name) or 'no version'}, cannot be imported: {text}"
            yield Check(group=_GROUP, name=name, state="broken", found=found, mend=mend, is_core=True)
        elif is_older(installed, least.get(name, "")):
            found = f"{installed}, but {least[name]} is needed"
            mend = f"pip install --upgrade '{name}>={least[name]}'"
            yield Check(group=_GROUP, name=name, state="broken", found=found, mend=mend, is_core=True)
        else:
            yield Check(group=_GROUP, name=name, state="ok", found=installed, is_core=True)


def _command() -> Check:
    """Look at which program the word `rlmesh` starts: another distribution has a command of that name too."""
    path = shutil.which("rlmesh")
    owners = {
        entry.dist.name
        for entry in importlib.metadata.entry_points(group="console_scripts", name="rlmesh")
        if entry.dist is not None and entry.dist.name != DISTRIBUTION
    }
    if path is None:
        return Check(
            group=_GROUP,
            name="command",
            state="note",
            found="no command `rlmesh` is on the PATH",
            mend="put the folder of this Python's scripts on it, or use python -m rlmesh_cli",
        )
    try:
        is_ours = b"rlmesh_cli" in Path(path).read_bytes()[:4096]
    except OSError:
        is_ours = False
    if is_ours:
        others = f"; {', '.join(sorted(owners))} has a command of that name too" if owners else ""
        return Check(group=_GROUP, name="command", state="ok", found=f"{path}{others}")
    whose = f" of {', '.join(sorted(owners))}" if owners else ""
    return Check(
        group=_GROUP,
        name="command",
        state="note",
        found=f"`rlmesh` is another program{whose}: {path}",
        mend="use `rlmesh-cli`, which is the same command under a name of our own",
    )


def check_extras(children: Children) -> Iterator[Check]:
    """Look at the extras that our own distribution names."""
    needed = requirements(DISTRIBUTION)
    extras = sorted({one.extra for one in needed if one.extra} - _OWN)
    if not extras:
        yield Check(
            group=_EXTRAS,
            name="extras",
            state="note",
            found="the installed rlmesh-cli names none"
            if needed
            else "rlmesh-cli is not installed as a distribution",
            mend="pip install --force-reinstall rlmesh-cli" if needed else "pip install rlmesh-cli",
        )
    for extra in extras:
        wanted = [one for one in needed if one.extra == extra]
        lacking = [lack for one in wanted for lack in _lacking(one)]
        there = ", ".join(f"{one.name} {installed_version(one.name)}" for one in wanted)
        purpose = PURPOSES.get(extra, "")
        found = f"needs {', '.join(lacking)}" if lacking else there
        yield Check(
            group=_EXTRAS,
            name=extra,
            state="missing" if lacking else "ok",
            found=f"{purpose}: {found}" if purpose else found,
            mend=f"pip install '{DISTRIBUTION}[{extra}]'" if lacking else "",
        )
        if extra == "video" and not lacking:
            outcome = children.outcome("encoder")
            yield Check(
                group=_EXTRAS,
                name="encoder",
                state="ok" if outcome.is_done else "broken",
                found=f"H.264: {outcome.text}",
                mend="" if outcome.is_done else f"pip install --force-reinstall '{DISTRIBUTION}[video]'",
            )


def _lacking(needed: Requirement) -> list[str]:
    """Return what of a requirement is not installed or too old, the extras that it asks for included."""
    installed = installed_version(needed.name)
    if installed is None:
        return [needed.name]
    lacking = [f"{needed.name}>={needed.least}"] if is_older(installed, needed.least) else []
    inner = [one for one in requirements(needed.name) if one.extra in needed.extras] if needed.extras else []
    return lacking + [one.name for one in inner if installed_version(one.name) is None]


def requirements(distribution: str) -> list[Requirement]:
    """Return what an installed distribution needs, extras included; nothing if it is not installed."""
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [found for line in lines if (found := _requirement(line)) is not None]


def _requirement(line: str) -> Requirement | None:
    match = _REQUIREMENT.match(line.strip())
    if match is None:
        return None
    least = re.search(r">=\s*([0-9][0-9A-Za-z.]*)", match[3] or "")
    extra = _EXTRA.search(line)
    extras = tuple(part.strip() for part in (match[2] or "").split(",") if part.strip())
    return Requirement(match[1], extras, least[1] if least else "", extra[1] if extra else "")


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def is_older(version: str, least: str) -> bool:
    """Tell whether a version comes before another, by their numbers."""
    return bool(least) and _numbers(version) < _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:4])
