"""EnvRequest: which environment a route asks for, as plain data that crosses process borders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .filming import FilmRequest


class WrapperRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One wrapper that a route adds.

    name: `package.module:Class`, or the bare name of one of gymnasium's own wrappers.
    kwargs: its arguments beside the environment.
    """

    name: str
    kwargs: Mapping[str, Any] = msgspec.field(default_factory=dict)


class EnvRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One environment, as often as there are lanes.

    id: registered id, `module:id`, or `module:name` of a class or function that makes the environment.
    kwargs: arguments of its constructor.
    imports: modules to import first, because they register it.
    wrappers: innermost first.
    num_envs: N lanes.
    vectorization: `sync` (this process), `async` (worker processes), `native` (its own vector entry point).
    autoreset: None for lanes that we reset; `next_step`, `same_step` or `disabled` for gymnasium's own vector
        environment of that mode.
    start_method: `fork`, `forkserver` or `spawn` for worker processes; None is the platform's default.
    workers: W worker processes, at most one a lane; None is one a core.
    max_episode_steps: replaces the registered limit; None keeps it.
    step_timeout: seconds after which one step or reset is an error; None waits.
    prepare: called first in every worker process, such as to load the file that registers the environment.
    spec: the registered spec, pickled, for worker processes whose registry does not know the id.
    film: which episodes are rendered inside their lane, see rlmesh_envs.filming; None is none.
    """

    id: str
    kwargs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    imports: tuple[str, ...] = ()
    wrappers: tuple[WrapperRequest, ...] = ()
    num_envs: int = 1
    vectorization: str = "sync"
    autoreset: str | None = None
    start_method: str | None = None
    workers: int | None = None
    max_episode_steps: int | None = None
    step_timeout: float | None = None
    prepare: Callable[[], object] | None = None
    spec: bytes | None = None
    film: FilmRequest | None = None


class EnvInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a built environment turned out to be, for the record.

    id: full id with version.
    layers: class names from the outermost wrapper to the environment itself.
    max_episode_steps: its own limit in steps, None if it has none.
    autoreset: `disabled` for lanes that we reset, else the vector environment's mode.
    is_seeded: whether single episodes start from their own seed.
    is_lockstep: whether all its lanes step together, so that none can wait for the others.
    skips_pixels: whether it offers to leave out frames that nobody reads; see rlmesh_envs.pixels.
    pixels_hidden_by: class of the wrapper that hides such an offer, empty if none does.
    metadata: what it says of itself under keys that begin with `rlmesh.`.
    workers: worker processes of ours that it lives in, None for none.
    files: source files of its layers that come with no installed package.
    render_fps: frames a second that it says it is rendered at, None if it does not.
    notes: code -> a sentence of what else a reader should know of how it was built.
    cautions: code -> a sentence of why the number cannot be taken at face value.
    """

    id: str
    layers: tuple[str, ...]
    max_episode_steps: int | None
    autoreset: str
    is_seeded: bool
    is_lockstep: bool = False
    skips_pixels: bool = False
    pixels_hidden_by: str = ""
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
    workers: int | None = None
    files: tuple[str, ...] = ()
    render_fps: float | None = None
    notes: Mapping[str, str] = msgspec.field(default_factory=dict)
    cautions: Mapping[str, str] = msgspec.field(default_factory=dict)
