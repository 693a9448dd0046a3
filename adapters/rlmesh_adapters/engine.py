"""AdapterEngine: the door between environments and policies, one route at a time.

Every row that passes carries the id of its episode, and whatever is kept between calls is keyed by it.
Axes: N lanes, M asking rows, H actions of a chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .actions import ActionSeam
from .advisories import AdvisoryBook
from .batches import Batch
from .calls import PolicyCaller
from .context import EpisodeContext
from .contract import SHARINGS, RouteContract, RoutePlan
from .corners import Corner, choose_corner, corner_names
from .errors import EnvironmentBuildError, HarnessError, LoadError
from .instances import Instances, close_quietly, episode_hooks
from .padding import with_rows
from .predictions import Prediction
from .roster import check_episode_ids
from .routes import ConfiguredRoute
from .weights import LARGE_BYTES, held_bytes

if TYPE_CHECKING:
    from .converting import Conversion


class AdapterEngine:
    """Runs routes: configure, then predict / observe / end_episodes, then release.

    Thread-safe by route: configuring one never blocks predicting on another.

    clock: returns seconds; without one the policy's time is not measured.
    advisories: where what is degraded is noted.
    """

    def __init__(
        self, *, clock: Callable[[], float] = lambda: 0.0, advisories: AdvisoryBook | None = None
    ) -> None:
        self._clock = clock
        self._routes: dict[str, ConfiguredRoute] = {}
        self._lock = threading.Lock()
        self.advisories = advisories if advisories is not None else AdvisoryBook()

    def configure(self, route: str, build_policy: Callable[[], Any], contract: RouteContract) -> RoutePlan:
        """Make a route ready, and say how it will run.

        build_policy: returns a policy; called once, or once a lane where each needs an instance of its own.

        Raises EnvironmentBuildError for an action space that cannot be checked, LoadError for a policy that
        has no corner or cannot be built again, DocumentError, ResolveError and RouteError for tags and model spec
        that do not go together, ValueError for a contract that cannot be meant. What was built
        by then is closed.
        """
        if contract.horizon < 1 or contract.num_lanes < 1 or contract.sharing not in SHARINGS:
            raise ValueError(f"horizon and num_lanes are at least 1, sharing is one of {SHARINGS}: {contract}")
        try:
            seam = ActionSeam(contract.action)
        except TypeError as error:
            raise EnvironmentBuildError(
                f"{error}", where="action space", mend="use an environment with array actions"
            ) from error

        built: list[Any] = []

        is_ready = False

        def build() -> Any:
            policy = build_policy()
            if not is_ready:  # later ones are closed when their episode ends
                built.append(policy)
            return policy

        try:
            configured = self._configured(build, contract, seam)
        except BaseException:
            _close_unused(built)
            raise
        is_ready = True
        with self._lock:
            before = self._routes.get(route)
            self._routes[route] = configured
        if before is not None:
            before.close()
        return configured.plan

    def _configured(
        self, build_policy: Callable[[], Any], contract: RouteContract, seam: ActionSeam
    ) -> ConfiguredRoute:
        first = build_policy()
        corner = _corner_of(first, contract)
        conversion = _conversion(first, corner, contract, self.advisories)
        adapter = None if conversion is None else conversion.adapter
        if adapter is not None:
            seam = adapter.seam

        def caller_of(policy: Any) -> PolicyCaller:
            known = corner if policy is first else _corner_of(policy, contract)
            return PolicyCaller(known, seam, horizon=contract.horizon, clock=self._clock)

        self._note_corner(corner, contract)
        sharing = _sharing(first, corner, contract)
        is_doubtful = _keeps_state(first, corner) and not contract.is_cleared
        if sharing == "shared" and is_doubtful and contract.num_lanes > 1:
            self.advisories.add(
                "shared-state",
                "caution",
                f"{contract.num_lanes} lanes share one policy that has {episode_hooks(first)[0]}(): "
                "what it keeps may be mixed up",
            )
        plan = RoutePlan(
            corner=corner.name,
            corners=corner_names(first),
            horizon=contract.horizon,
            wants_context=corner.wants_context,
            sharing=sharing,
            passes_state=corner.wants_state,
            is_ensembled=contract.ensemble is not None,
            wants_every_step=adapter is not None and adapter.observations.has_windows,
            description="" if conversion is None else conversion.description,
            conversion={} if conversion is None else conversion.record,
        )
        if sharing != "shared":
            self._note_memory(first, contract.num_lanes)
        policies = [first] if sharing == "shared" else _build_each(first, build_policy, contract.num_lanes)
        instances = Instances(policies, caller_of, sharing=sharing, build=build_policy)
        return ConfiguredRoute(
            plan,
            instances,
            contract.observation,
            self.advisories,
            adapter=adapter,
            ensembler=None if conversion is None else conversion.ensembler,
            has_answered=contract.has_answered,
        )

    def _note_memory(self, policy: object, count: int) -> None:
        held = held_bytes(policy)
        if held * count >= LARGE_BYTES:
            self.advisories.add(
                "instances-memory",
                "info",
                f"{count} instances hold {held / 1e9:.2f} GB of weights each, {held * count / 1e9:.2f} GB "
                "together; a policy that passes `state` would need them once",
            )

    def _note_corner(self, corner: Corner, contract: RouteContract) -> None:
        if contract.horizon > 1 and not corner.is_chunked:
            self.advisories.add(
                "no-chunk-corner",
                "caution",
                f"horizon is {contract.horizon}, but the policy has no chunk corner: "
                f"`{corner.name}` is asked at every step",
            )

    def route(self, route: str) -> ConfiguredRoute:
        """Return a configured route, for callers that ask it at every step."""
        return self._routes[route]

    def predict(self, route: str, rows: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask the policy for the asking rows' next actions, at most `horizon` of each.

        rows: (M, ...) observations; handed to the policy as they are, so the caller must not reuse them.
        episodes: M contexts with distinct, non-empty ids.

        Raises PolicyCallError if the first row of the route's very first call fails, ActionError if the first
        call's answer does not fit. Later faults, and numbers that are not finite, are failures of their rows.
        """
        return self._routes[route].predict(rows, episodes)

    def begin_episodes(self, route: str, episodes: Sequence[EpisodeContext]) -> None:
        """Call the policy's `reset` for episodes now; without it, their first `predict` does."""
        self._routes[route].begin_episodes(episodes)

    def observe(self, route: str, rows: Batch, episodes: Sequence[EpisodeContext]) -> None:
        """Let frame windows see a step that is replayed without asking; a spec-less route has no windows.

        rows: (M, ...) observations. episodes: M contexts.
        """
        check_episode_ids(episodes)
        self._routes[route].observe(rows, episodes)

    def end_episodes(self, route: str, episodes: Sequence[EpisodeContext]) -> None:
        """Forget what is kept for ended episodes and tell the policy through `on_episode_end`."""
        self._routes[route].end_episodes(episodes)

    def action_uses(self, route: str) -> list[Any]:
        """Return how far each component of a converted route's action was driven; see apply.actions.Use."""
        adapter = self._routes[route].adapter
        return [] if adapter is None else adapter.actions.uses

    def chunk_length(self, route: str) -> int | None:
        """Return the length of the policy's first chunk, before the horizon cut it; None if none came."""
        return self._routes[route].chunk_length

    def release(self, route: str) -> None:
        """Close a route: training modes are put back, `close` of the policy is called. Idempotent."""
        with self._lock:
            configured = self._routes.pop(route, None)
        if configured is not None:
            configured.close()

    def close(self) -> None:
        """Release every route."""
        for route in list(self._routes):
            self.release(route)


def _conversion(
    policy: object, corner: Corner, contract: RouteContract, advisories: AdvisoryBook
) -> Conversion | None:
    """Return what stands between environment and policy, None for nothing."""
    documents = (contract.tags, contract.spec, contract.ensemble)
    if all(document is None for document in documents) and not _has_spec(policy):
        return None
    from .converting import convert_route  # noqa: PLC0415 - a route without conversion starts sooner

    return convert_route(policy, corner, contract, advisories)


def _corner_of(policy: Any, contract: RouteContract) -> Corner:
    corner = choose_corner(policy, contract.horizon)
    if contract.limit_call is not None:
        corner = msgspec.structs.replace(corner, call=contract.limit_call(corner.call))
    return with_rows(corner, contract.batch_rows, contract.num_lanes, policy=policy)


def _has_spec(policy: object) -> bool:
    try:
        return getattr(policy, "spec", None) is not None
    except Exception:  # a user's property may raise anything
        return False


def _build_each(first: Any, build_policy: Callable[[], Any], count: int) -> list[Any]:
    """Build an instance for each lane; raise LoadError where they would not be separate objects."""
    policies = [first]
    for _ in range(count - 1):
        try:
            policies.append(build_policy())
        except HarnessError as error:
            raise LoadError(
                f"{count} lanes need {count} instances of the policy, but it cannot be built again: {error.cause}",
                where=error.where,
                mend="use --num-envs 1, or --instances shared if it keeps nothing between calls",
            ) from error
    if len({id(policy) for policy in policies}) < count:
        raise LoadError(
            f"the policy is one single object: {count} lanes would share what it keeps",
            where=type(first).__name__,
            mend="name its class or a make_policy(), use --num-envs 1, or --instances shared if it keeps nothing",
        )
    return policies


def _close_unused(policies: Sequence[Any]) -> None:
    for policy in {id(policy): policy for policy in policies}.values():
        close_quietly(policy)


def _sharing(policy: object, corner: Corner, contract: RouteContract) -> str:
    if contract.sharing != "auto":
        return contract.sharing
    return "lane" if contract.num_lanes > 1 and _keeps_state(policy, corner) else "shared"


def _keeps_state(policy: object, corner: Corner) -> bool:
    # A policy that is told of episodes keeps something; until it is shown harmless, lanes must not share it.
    return bool(episode_hooks(policy)) and not corner.wants_state
