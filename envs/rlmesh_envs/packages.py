"""Packages that are known to register environments, without importing any of them."""

from __future__ import annotations

import importlib.util

#: Ids whose package does not say its name: (start of the id, module to import, package to install).
PACKAGES = (
    ("MiniGrid-", "minigrid", "minigrid"),
    ("BabyAI-", "minigrid", "minigrid"),
    ("PointMaze_", "gymnasium_robotics", "gymnasium-robotics"),
    ("AntMaze_", "gymnasium_robotics", "gymnasium-robotics"),
    ("Adroit", "gymnasium_robotics", "gymnasium-robotics"),
    ("Fetch", "gymnasium_robotics", "gymnasium-robotics"),
    ("HandManipulate", "gymnasium_robotics", "gymnasium-robotics"),
    ("HandReach", "gymnasium_robotics", "gymnasium-robotics"),
    ("FrankaKitchen", "gymnasium_robotics", "gymnasium-robotics"),
    ("ALE/", "ale_py", "ale-py"),
    ("gym_pusht/", "gym_pusht", "gym-pusht"),
    ("gym_aloha/", "gym_aloha", "gym-aloha"),
    ("gym_xarm/", "gym_xarm", "gym-xarm"),
    ("highway", "highway_env", "highway-env"),
)


def module_of_id(name: str) -> str | None:
    """Return the installed module that should register an id, by its form; None if there is none.

    name: id without a module in front, such as `MiniGrid-Empty-5x5-v0` or `gym_pusht/PushT-v0`.
    """
    candidates = [module for start, module, _ in PACKAGES if name.startswith(start)]
    if "/" in name:
        candidates.append(name.split("/", 1)[0])
    return next((candidate for candidate in candidates if is_installed(candidate)), None)


def is_installed(module: str) -> bool:
    """Tell whether a module could be imported, as far as can be seen without doing so."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
