"""Schema: what a route holds, and what the command line puts in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from .documents import KeyPath
from .outcomes import HELD_STEPS, SuccessRule

Count = Annotated[int, msgspec.Meta(ge=1)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class WrapperRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A wrapper the route puts around the environment; see rlmesh_envs.request."""

    name: str
    kwargs: dict[str, Any] = {}


class EnvRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The environment; see rlmesh_envs.request.

    max_episode_seconds: wall-clock seconds, from its first observation on, after which we end an episode; null is
        no limit.
    step_timeout: seconds after which one step or reset is an error; null waits.
    pixels: `wanted` leaves out frames that nobody reads, where the environment offers it; `always` renders all.
    workers: worker processes of `vectorization: async`, at most one a lane; null is one a core.
    """

    id: str = ""
    kwargs: dict[str, Any] = {}
    imports: tuple[str, ...] = ()
    wrappers: tuple[WrapperRoute | str, ...] = ()
    vectorization: Literal["sync", "async", "native"] = "sync"
    autoreset: Literal["next_step", "same_step", "disabled"] | None = None
    start_method: Literal["fork", "forkserver", "spawn"] | None = None
    workers: Count | None = None
    max_episode_steps: Count | None = None
    max_episode_seconds: Positive | None = None
    step_timeout: Positive | None = None
    pixels: Literal["always", "wanted"] = "wanted"


class PolicyRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The policy: `policy.py`, `policy.py:Name`, `package.module:Name`, `random`, `zero` or `hold`.

    call_timeout: seconds after which a call is an error; null waits.
    """

    source: str = ""
    params: dict[str, Any] = {}
    call_timeout: Positive | None = None


class SuccessRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When an episode counts as a success: an info key, or a bound on the return.

    when: `final` (last report), `any` (some report) or `held` (`steps` reports in a row, 10 if not said).
    """

    key: str | None = None
    when: Literal["final", "any", "held"] = "final"
    steps: Count | None = None
    return_at_least: float | None = None

    @property
    def rule(self) -> SuccessRule:
        """What an episode is held against."""
        if self.key is None:
            return SuccessRule(return_at_least=self.return_at_least)
        return SuccessRule(keys=(self.key,), when=self.when, steps=self.steps or HELD_STEPS)


class EnsembleRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Temporal ensembling; see rlmesh_adapters.contract.Ensemble."""

    decay: Annotated[float, msgspec.Meta(ge=0)]
    linear: tuple[str, ...] = ()


class BaselineRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run to be judged against; see rlmesh_cli.comparing.

    run: folder of the run. margin: how much worse is as good, such as 5%. alpha: error rate of the judgement.
    """

    run: str = ""
    margin: str | float | tuple[str, ...] = "5%"
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=0.5)] = 0.05
    metrics: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a run is made of.

    env_tags, model_spec: v1 documents; without them those of the environment and of the policy are taken.
    num_envs: lanes. workers: processes that play the episodes, each with a policy and so many lanes of its own.
    cluster: where workers live: `ray` on this machine, or the address of a Ray head.
    ray_resources: of each worker there, such as `cpu: 2`.
    horizon: actions executed a policy call. ensemble: average overlapping chunks instead.
    instances: `shared`, `lane` (one policy object a lane), `episode` (a new one an episode) or `auto`.
    schedule: `aligned` starts episodes where a chunk of the running lanes ends, so that all ask in one call,
        `eager` starts them at once; null is aligned.
    batch_rows: rows that every batched policy call is padded to; null takes the policy's own `batch_rows`.
    seed: episode i resets with seed + i; seeds: or one seed an episode, as listed.
    metrics: info keys of numbers to keep by episode. gates: bars such as `success_rate >= 0.9`; gate_on: what they
        are held against, the `value` or the end of its interval that is worse (`lower`).
    confidence: of intervals; interval: how that of a rate is made. until: stop early, by `width<0.1` or `decided`.
    max_errors: errored episodes after which the run stops.
    baseline: a run that this one must not be worse than. controls: built-in policies to play beside it.
    record: `steps` keeps what passed in each episode, `video` what it looked like. video: of which episodes that
        is kept: `all`, `failures`, `first:N`, `worst:N` or `flips:RUN`; null is all.
    """

    version: Literal[1] = 1
    env: EnvRoute = EnvRoute()
    policy: PolicyRoute = PolicyRoute()
    env_tags: dict[str, Any] | None = None
    model_spec: dict[str, Any] | None = None
    horizon: Count = 1
    ensemble: EnsembleRoute | None = None
    schedule: Literal["aligned", "eager"] | None = None
    num_envs: Count = 1
    workers: Count = 1
    cluster: str | None = None
    ray_resources: dict[str, Positive] = {}
    batch_rows: Count | None = None
    episodes: Count = 50
    seed: NonNegative = 0
    seeds: tuple[NonNegative, ...] | None = None
    instances: Literal["auto", "shared", "lane", "episode"] = "auto"
    success: SuccessRoute | None = None
    metrics: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    gate_on: Literal["value", "lower"] = "value"
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    interval: Literal["exact", "wilson", "blaker"] = "exact"
    until: str | None = None
    max_errors: NonNegative | None = None
    baseline: BaselineRoute | None = None
    controls: tuple[Literal["random", "zero", "hold"], ...] = ()
    record: tuple[Literal["steps", "video"], ...] = ()
    video: str | None = None

    @property
    def is_filmed(self) -> bool:
        """Whether videos are wanted."""
        return "video" in self.record or self.video is not None

    @property
    def episode_seeds(self) -> tuple[int, ...]:
        """One seed an episode."""
        if self.seeds is not None:
            return self.seeds
        return tuple(range(self.seed, self.seed + self.episodes))

    @property
    def success_rule(self) -> SuccessRule:
        """The declared rule, or the usual info keys at the last step."""
        return SuccessRule() if self.success is None else self.success.rule


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; a flag that was not given is not in `values`.

    values: path of a route's value -> what replaces it. names: the same path -> the flag, for messages.
    """

    values: dict[KeyPath, Any] = {}
    names: dict[KeyPath, str] = {}


#: Sections of a route -> what they hold.
SECTIONS: dict[KeyPath, type[msgspec.Struct]] = {
    ("env",): EnvRoute,
    ("policy",): PolicyRoute,
    ("success",): SuccessRoute,
    ("ensemble",): EnsembleRoute,
    ("baseline",): BaselineRoute,
}


def recorded_rule(route: Mapping[str, Any]) -> SuccessRule:
    """Return the success rule of a route as `run.json` holds it."""
    declared = route.get("success")
    return SuccessRule() if declared is None else msgspec.convert(declared, SuccessRoute).rule
