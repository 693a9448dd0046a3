"""The text of a scaffold's route: every field that a newcomer needs, with what it is for."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

from rlmesh_cli.yamls import flow_text

from .findings import Found
from .guesses import Guess, GuessTree, LeftOut
from .tagging import Tagging
from .words import number, one_line

_WIDTH = 100
_EPISODES, _LANES = 10, 4
#: A limit for environments that state none.
_STEPS = 1000


def route_text(found: Found, tagging: Tagging | str | None, policy: str, route: str, search: str = "") -> str:
    """Return a route file that runs as it stands.

    tagging: tags, the reason why there are none, or None if none were asked for.
    policy, route: names of the files. search: the folder that must be on PYTHONPATH, seen from that of the files.
    """
    file = shlex.quote(route)
    lines = [
        f"# {one_line(found.id, 80)} and the policy {policy}, as `rlmesh init` wrote it.",
        "#",
        f"#   rlmesh eval --route {file}       plays the episodes and writes a run",
        f"#   rlmesh probe --route {file}      tests whether several lanes may share the policy",
        f"#   rlmesh explain --route {file}    says what becomes of every number",
        "#",
        f"# Flags take the place of what stands here: rlmesh eval --route {file} --episodes 50",
        *_search(search),
        "version: 1",
        "",
        *_env(found),
        "",
        "policy:",
        f"  source: {flow_text(policy)}",
        "  # What Policy(...) is called with, such as {checkpoint: weights.pt}; a path in it is seen from the",
        "  # folder that you run in.",
        "  params: {}",
        "",
        *_tags(found, tagging),
        "",
        f"# Few, so that the first run is quick; a rate from {_EPISODES} episodes is a rough one. 50 is usual.",
        f"episodes: {_EPISODES}",
        "# Episode i is reset with seed + i, so that the same episodes can be played again.",
        "seed: 0",
        *_lanes(found),
        "# How many actions of a call are executed, for a policy that plans chunks (predict_chunk).",
        "horizon: 1",
        "",
        *_success(found),
        *_metrics(found),
        "# Bars: a run that misses one leaves with exit code 1."
        + (f" A random episode returned {_bound(found)}." if found.end else ""),
        *(f"#   gates: [{bar}]" for bar in _bars(found)),
        "gates: []",
    ]
    return "\n".join(lines) + "\n"


def _search(folder: str) -> Iterator[str]:
    if folder:
        yield "#"
        yield "# The environment's module is not beside this file: these commands find it with"
        yield f"# PYTHONPATH={shlex.quote(one_line(folder))} in front of them."


def _env(found: Found) -> Iterator[str]:
    yield "env:"
    yield f"  id: {flow_text(found.id)}"
    yield "  # Modules that are imported first, because they register the environment."
    yield f"  imports: {flow_text(list(found.imports))}"
    yield "  # What its constructor is called with."
    yield f"  kwargs: {flow_text(dict(found.kwargs))}"
    if found.max_episode_steps is not None:
        yield f"  # An episode ends after {found.max_episode_steps:,} steps; a number here replaces that."
        yield "  max_episode_steps: null"
    elif found.is_lane:
        yield "  # The environment states no limit of its own; this one is a guess."
        yield f"  max_episode_steps: {_STEPS}"
    yield "  # `async` steps the environments in processes, which pays where a step takes long."
    yield "  vectorization: sync"


def _lanes(found: Found) -> Iterator[str]:
    if found.is_lane:
        yield "# Episodes that are played side by side; the rows are the same for any number of them."
        yield f"num_envs: {_LANES}"
    else:
        yield "# Lanes of the environment's own vector implementation."
        yield "num_envs: 1"


def _success(found: Found) -> Iterator[str]:
    key = found.success_key
    if key:
        yield f"# An episode is a success by what the environment reports as `{key}` at its last step; `when: any`"
        yield "# takes one report at any step."
        yield f"success: {{key: {flow_text(key)}, when: final}}"
        return
    yield f"# Neither `is_success` nor `success` was reported in {found.steps} random steps. If one comes later in"
    yield "# an episode, it is found without a rule. Where success has another name, give that; else a bound"
    yield "# on the return can say it."
    yield "#   success: {key: NAME, when: final}"
    yield f"#   success: {{return_at_least: {_bound(found)}}}"


def _bound(found: Found) -> str:
    total = sum(found.rewards)
    return number(float(f"{total:.3g}")) if found.rewards else "100"


def _bars(found: Found) -> list[str]:
    returns = f'"mean_return >= {_bound(found)}"'
    return [f'"success_rate >= 0.9", {returns}' if found.success_key else returns]


def _metrics(found: Found) -> Iterator[str]:
    known = [key for key in found.numbers if key != found.success_key]
    if known:
        yield "# Numbers of its infos to keep by episode. It reports:"
        yield from _wrapped(", ".join(flow_text(key) for key in known[:40]), "#   ")
    else:
        yield "# Numbers of its infos to keep by episode; it reports none."
    yield "metrics: []"


def _tags(found: Found, tagging: Tagging | str | None) -> Iterator[str]:
    if tagging is None:
        yield "# No conversion: the policy sees what the environment gives; its actions are sent as they are."
        if found.tags is not None:
            yield "# The environment is tagged, so a policy with a `spec` gets what it asks for."
        yield "# `rlmesh init --tags` proposes env_tags; docs/adapters.md says what they are for."
    elif isinstance(tagging, str):
        yield from _wrapped(f"No env_tags could be proposed: {tagging}.", "# ")
        yield "# The policy sees what the environment gives; its actions are sent as they are."
    elif tagging.observation is None:
        yield "# env_tags: the environment brings its own, which the policy's `spec` is matched with."
    else:
        yield "# What the environment gives and what drives it, by role; see `spec` in the policy."
        yield "# Every tag is a guess by shape, name and bounds; correct it where you know better. Whether images"
        yield "# are upside down or mirrored cannot be told by these. docs/adapters.md lists the fields."
        yield "env_tags:"
        yield "  observation:"
        yield from _tree(tagging.observation, "    ")
        yield "  action:"
        yield "    components:"
        for part in tagging.action or ():
            yield from _guess(part, "      ", "- ")


def _tree(tree: GuessTree, indent: str, before: str = "") -> Iterator[str]:
    if isinstance(tree, (Guess, LeftOut)):
        yield from _guess(tree, indent, before)
    elif isinstance(tree, dict):
        for name, part in tree.items():
            if isinstance(part, (Guess, LeftOut)):
                yield from _guess(part, indent, f"{flow_text(name)}: ")
            else:
                yield f"{indent}{flow_text(name)}:"
                yield from _tree(part, indent + "  ")
    else:
        for part in tree:
            if isinstance(part, Guess):
                yield from _guess(part, indent, "- ")
            else:
                yield f"{indent}-"
                yield from _tree(part, indent + "  ")


def _guess(part: Guess | LeftOut, indent: str, before: str) -> Iterator[str]:
    if isinstance(part, LeftOut):
        yield from _wrapped(f"no guess: {part.reason}", f"{indent}# ")
        return
    yield from _wrapped(f"guess: {part.reason}", f"{indent}# ")
    yield f"{indent}{before}{flow_text(dict(part.tag))}"


def _wrapped(text: str, before: str) -> list[str]:
    return textwrap.wrap(
        one_line(text, 2000),
        max(_WIDTH, len(before) + 40),
        initial_indent=before,
        subsequent_indent=before,
        break_on_hyphens=False,
        break_long_words=False,
    )
