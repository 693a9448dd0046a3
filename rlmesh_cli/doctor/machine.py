"""Machine: cores, processes, memory that they share, and where runs are written."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rlmesh_cli.shards.threads import THREAD_SETTINGS, core_count

from .checks import Check

_GROUP = "machine"
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_SHARED = Path("/dev/shm")
_LEAST_ROOM = 100 * 2**20


def check_machine(out: Path) -> Iterator[Check]:
    """Look at what runs are played on, and where they are written to.

    out: folder of the runs.
    """
    system = os.uname()
    yield Check(
        group=_GROUP, name="system", state="note", found=f"{system.sysname} {system.release}, {system.machine}"
    )
    yield _cores()
    yield _threads()
    methods = multiprocessing.get_all_start_methods()
    yield Check(
        group=_GROUP,
        name="processes",
        state="ok" if methods else "broken",
        found=f"start methods {', '.join(methods)}",
        mend="" if methods else "use --vectorization sync and one worker",
    )
    yield _memory()
    yield _writing(out)


def _cores() -> Check:
    usable, all_cores = core_count(), os.cpu_count() or 1
    found = f"{usable} of {all_cores}" if usable != all_cores else f"{usable}"
    quota = _quota()
    if quota is not None and quota < usable:
        found += f", of which this container may use {quota:.3g}"
    return Check(group=_GROUP, name="cores", state="note", found=found)


def _quota() -> float | None:
    """Return how many cores' time a container is given, None if it is not limited."""
    try:
        most, period = _QUOTA.read_text(encoding="ascii").split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        return None


def _threads() -> Check:
    known = [f"{name}={os.environ[name]}" for name in THREAD_SETTINGS if name in os.environ]
    return Check(
        group=_GROUP,
        name="threads",
        state="note",
        found=", ".join(known) or "not set: numerical libraries take every core, those of --workers their share",
    )


def _memory() -> Check:
    has_own = hasattr(os, "memfd_create")
    try:
        size = os.statvfs(_SHARED)
        room = f"{_SHARED} has {_shown(size.f_bavail * size.f_frsize)} left"
    except OSError:
        room = f"there is no {_SHARED}"
    return Check(
        group=_GROUP,
        name="shared memory",
        state="ok" if has_own else "note",
        found=f"{room}; environments in processes take none of it" if has_own else room,
    )


def _writing(out: Path) -> Check:
    try:
        folder = out.absolute()
        there = next(parent for parent in (folder, *folder.parents) if parent.exists() or parent.is_symlink())
        is_there = there.exists()
    except OSError as error:
        return Check(
            group=_GROUP,
            name="runs",
            state="broken",
            found=f"{out} cannot be looked at: {error.strerror}",
            mend="give another folder with --out",
            is_core=True,
        )
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is a link that leads nowhere"
        if is_there:
            what = "cannot be written to" if there.is_dir() else "is a file"
        return Check(
            group=_GROUP,
            name="runs",
            state="broken",
            found=f"{there} {what}",
            mend="give another folder with --out",
            is_core=True,
        )
    free = shutil.disk_usage(there).free
    is_full = free < _LEAST_ROOM
    return Check(
        group=_GROUP,
        name="runs",
        state="broken" if is_full else "ok",
        found=f"{folder} {'can be written to' if there == folder else 'can be made'}, {_shown(free)} left",
        mend="make room, or give another folder with --out" if is_full else "",
        is_core=True,
    )


def _shown(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
