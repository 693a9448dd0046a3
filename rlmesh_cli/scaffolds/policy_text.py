"""The text of a scaffold's policy: it says what it is given, acts at random, and marks where a model goes."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from typing import Any

from .acting import drawing
from .findings import Found, Leaf, leaves
from .tagging import Tagging
from .words import bounds, kind, one_line, place, quoted, sample

_WIDTH = 100
_MOST_LEAVES = 60


def policy_text(found: Found, tagging: Tagging | None, route: str) -> str:
    """Return a policy file that runs as it stands.

    tagging: None for a policy that sees what the environment gives. route: name of the route's file.
    """
    is_batched = _is_batched(found, tagging)
    parts = [
        _head(found, route),
        "import numpy as np\n",
        "\n".join(_layout(found, tagging, is_batched=is_batched)) + "\n\n",
        _class(found, tagging, is_batched=is_batched),
    ]
    return "\n".join(parts)


def _is_batched(found: Found, tagging: Tagging | None) -> bool:
    """Tell whether the policy should see all lanes at once: networks do, where there are images to look at."""
    has_images = any(leaf.view.is_array and len(leaf.view.shape) >= 3 for leaf in leaves(found.observation))
    stacks = all(leaf.view.is_array for leaf in leaves(found.observation)) or tagging is not None
    return has_images and stacks and (found.action.is_array or tagging is not None)


def _head(found: Found, route: str) -> str:
    name = one_line(found.id, 80)
    # A raw text would end, or be read otherwise, where a name holds quotes or backslashes.
    name = name.replace("\\", "/").replace('"', "'")
    route = shlex.quote(route)
    return f'''"""A policy for {name}, as `rlmesh init` wrote it: it acts at random. Put your model in its place.

    rlmesh eval --route {route}       plays episodes with it
    rlmesh probe --route {route}      tests whether several lanes may share it
    rlmesh explain --route {route}    says what it is given, and what becomes of its actions
"""
'''


def _layout(found: Found, tagging: Tagging | None, *, is_batched: bool) -> Iterator[str]:
    """Yield comments on what the environment gives and takes."""
    rows = "M" if is_batched else ""
    own = list(leaves(found.observation, found.first))
    name = "predict_batch" if is_batched else "predict"
    if tagging is not None:
        yield "# What the environment gives, with the values of the first step of seed 0, and what it takes:"
        yield "#"
        yield from _rows([*own, *leaves(found.action)], "observation", "")
        yield "#"
        yield f"# By its tags and `spec` below, {name} is handed{', of the M lanes that ask' if rows else ''}:"
        yield "#"
        yield from _input_rows(found, tagging, rows)
        return
    if rows:
        yield f"# What {name} is handed: M rows, one for each lane that asks. The values are those of one"
        yield "# lane at the first step of seed 0."
    else:
        yield f"# What {name} is handed; the values are those of the first step of seed 0."
    yield "#"
    yield from _rows(own, "obs", rows)
    yield "#"
    yield "# What it returns:"
    yield "#"
    yield from _rows(list(leaves(found.action)), "actions" if rows else "action", rows)


def _rows(listed: list[Leaf], name: str, rows: str) -> Iterator[str]:
    lines = []
    for leaf in listed[:_MOST_LEAVES]:
        words = [
            place(leaf.path, name if leaf.value is not None or name != "observation" else "action"),
            kind(leaf.view, rows),
            bounds(leaf.view),
        ]
        if leaf.value is not None:
            words.append(f"here {sample(leaf.view, leaf.value)}")
        lines.append(words)
    widths = [min(40, max((len(words[column]) for words in lines), default=0)) for column in (0, 1)]
    for words in lines:
        first, second, *rest = words
        line = f"{first:{widths[0]}}  {second:{widths[1]}}  " + ", ".join(part for part in rest if part)
        yield from textwrap.wrap(
            line.rstrip(),
            _WIDTH,
            initial_indent="#   ",
            subsequent_indent="#       ",
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
    if len(listed) > _MOST_LEAVES:
        yield f"#   ... and {len(listed) - _MOST_LEAVES} more parts: rlmesh explain lists them"


def _class(found: Found, tagging: Tagging | None, *, is_batched: bool) -> str:
    method = _batched(found, tagging) if is_batched else _single(found, tagging)
    spec = "" if tagging is None else _spec(tagging)
    return f'''class Policy:
    """Acts at random within the action space."""
{spec}
    def __init__(self, checkpoint=None):
        # checkpoint: what the route says under policy.params, or --policy-arg checkpoint=PATH.
        self.checkpoint = checkpoint
        # YOUR MODEL: load it here, such as
        #     self.model = torch.load(checkpoint).eval()

{method}'''


def _spec(tagging: Tagging) -> str:
    inputs = [f"            {quoted(name)}: {_flow(leaf)}," for name, leaf in tagging.spec["input"].items()]
    outputs = [f"                {_flow(part)}," for part in tagging.spec["output"]["components"]]
    lines = [
        "    # What your model wants to see and what it puts out, matched with the env_tags by role. An image",
        "    # may ask for another size (height, width), layout chw, dtype float32, normalize true;",
        "    # docs/adapters.md lists every field.",
        "    spec = {",
        '        "input": {',
        *inputs,
        "        },",
        '        "output": {',
        '            "components": [',
        *outputs,
        "            ],",
        "        },",
        "    }",
    ]
    return "\n" + "\n".join(lines) + "\n"


def _flow(plain: Any) -> str:
    """Return plain values as Python in one line."""
    if isinstance(plain, dict):
        return "{" + ", ".join(f"{quoted(name)}: {_flow(part)}" for name, part in plain.items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(map(_flow, plain)) + "]"
    return quoted(plain) if isinstance(plain, str) else repr(plain)


def _input_rows(found: Found, tagging: Tagging, rows: str) -> Iterator[str]:
    """Yield comments on what the model is handed by its spec."""
    lead = f"{rows}, " if rows else ""
    lines = []
    for name, given in tagging.inputs.items():
        sizes = f"({lead}{', '.join(map(str, given.shape))}{',' if len(given.shape) == 1 and not lead else ''})"
        lines.append((f"obs[{quoted(name)}]", f"{given.dtype} {sizes}" if given.dtype else "text"))
    width = max((len(name) for name, _ in lines), default=0)
    yield from (f"#   {name:{width}}  {words}" for name, words in lines)


def _single(found: Found, tagging: Tagging | None) -> str:
    gives = f"({_outputs(tagging)},) numbers as `spec` says" if tagging is not None else "one action"
    return f'''    def predict(self, obs, context):
        """Return {gives}.

        obs: see above. context: of the episode; context.rng draws numbers that are its own, so that it
        can be played again, and context.step counts from 0.
        """
        rng = context.rng
        # YOUR MODEL: work the action out from `obs`, in place of the next line.
        return {_drawing(found, tagging)}
'''


def _batched(found: Found, tagging: Tagging | None) -> str:
    gives = f"(M, {_outputs(tagging)}) numbers as `spec` says" if tagging is not None else "M actions"
    return f'''    def predict_batch(self, obs, context):
        """Return {gives}, a row for each lane that asks.

        obs: see above. context: a list of M; context[row].rng draws numbers that are that episode's own,
        so that it can be played again, and context[row].step counts from 0.
        """
        # YOUR MODEL: work the actions out from `obs`, in place of the next line.
        return np.stack([self.draw(one.rng) for one in context])

    def draw(self, rng):
        """Return one random action."""
        return {_drawing(found, tagging)}
'''


def _outputs(tagging: Tagging) -> int:
    return sum(part["dim"] for part in tagging.spec["output"]["components"])


def _drawing(found: Found, tagging: Tagging | None) -> str:
    if tagging is None:
        return drawing(found.action)
    if len(tagging.draws) == 1:
        return tagging.draws[0]
    return f"np.concatenate([{', '.join(tagging.draws)}])"
