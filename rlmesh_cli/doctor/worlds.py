"""Worlds: which environments are here, and whether what they draw can be seen without a screen."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rlmesh_envs.packages import PACKAGES, is_installed

from .checks import Check
from .children import Children
from .software import installed_version

_GROUP, _GL = "environments", "rendering"
#: (module, distribution, what is asked of pip, what it gives), of those that gymnasium itself brings.
_OWN = (
    ("mujoco", "mujoco", "gymnasium[mujoco]", "MuJoCo environments, such as Ant-v5"),
    ("pygame", "pygame", "gymnasium[classic-control]", "pictures of classic control, such as CartPole-v1"),
    ("Box2D", "box2d", "gymnasium[box2d]", "LunarLander-v3 and others"),
)
#: Ways to draw without a screen, as MUJOCO_GL names them.
BACKENDS = ("egl", "osmesa")


def check_worlds(children: Children) -> Iterator[Check]:
    """Look at gymnasium's own environments, and for packages that register others, without importing those."""
    outcome = children.outcome("cartpole")
    yield Check(
        group=_GROUP,
        name="CartPole-v1",
        state="ok" if outcome.is_done else "broken",
        found=outcome.text,
        mend="" if outcome.is_done else "pip install --force-reinstall gymnasium",
        is_core=True,
    )
    for module, distribution, package, gives in _OWN:
        yield _package(module, distribution, package, gives)
    ids: dict[tuple[str, str], list[str]] = {}
    for start, module, package in PACKAGES:
        ids.setdefault((module, package), []).append(f"{start}*")
    for (module, package), starts in ids.items():
        yield _package(module, package, package, ", ".join(starts))


def _package(module: str, distribution: str, package: str, gives: str) -> Check:
    if not is_installed(module):
        mend = f"pip install '{package}'" if "[" in package else f"pip install {package}"
        return Check(group=_GROUP, name=module, state="missing", found=gives, mend=mend)
    version = installed_version(distribution) or installed_version(module)
    return Check(group=_GROUP, name=module, state="ok", found=f"{version}: {gives}" if version else gives)


def check_rendering(children: Children) -> Iterator[Check]:
    """Look at what MuJoCo draws with, if it is there: with the settings as they are, and with others."""
    settings = [
        f"{name}={os.environ[name]}"
        for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY")
        if name in os.environ
    ]
    yield Check(
        group=_GL,
        name="settings",
        state="note",
        found=", ".join(settings) or "neither MUJOCO_GL nor DISPLAY is set",
    )
    if not is_installed("mujoco"):
        yield Check(group=_GL, name="offscreen", state="missing", found="not tried, for MuJoCo is not installed")
        return
    as_it_is = children.outcome("gl")
    works = [backend for backend in BACKENDS if children.outcome(f"gl-{backend}").is_done]
    if as_it_is.is_done:
        yield Check(group=_GL, name="offscreen", state="ok", found=f"MuJoCo draws {as_it_is.text}")
    elif works:
        yield Check(
            group=_GL,
            name="offscreen",
            state="broken",
            found=f"MuJoCo does not draw with these settings ({as_it_is.text}), but with {' and '.join(works)}",
            mend=f"export MUJOCO_GL={works[0]}",
        )
    else:
        yield Check(
            group=_GL,
            name="offscreen",
            state="broken",
            found=f"MuJoCo cannot draw without a screen: {as_it_is.text}",
            mend="apt install libosmesa6, and MUJOCO_GL=osmesa; with a GPU libegl1, and MUJOCO_GL=egl",
        )
