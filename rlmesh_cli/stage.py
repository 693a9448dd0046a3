"""Stage: what episodes are played on - policy, lanes and a configured engine, ready to begin."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.request import EnvInfo

from .caps import Limits
from .contracting import contract_of, env_request, guard_of, metrics_of
from .episodes import Episode
from .lane_protocols import Lanes as AnyLanes
from .lane_protocols import SkippingLanes
from .loading import PolicySource, load_policy
from .outcomes import InfoReader
from .reading import files_read
from .rollout import Rollout
from .schema import Route

if TYPE_CHECKING:
    from .recording.recorder import Deliver, Recorder

_ROUTE = "eval"


class Stage:
    """Plays episodes of one route.

    contract: what the engine is configured with. guard: steps after which we end episodes of an environment that
    has no limit. probe: what was found before, None if nothing was looked for.

    Raises HarnessError where the engine cannot be configured.
    """

    def __init__(
        self,
        route: Route,
        policy: PolicySource,
        lanes: Lanes,
        env: EnvInfo,
        engine: AdapterEngine,
        contract: RouteContract,
        *,
        probe: dict[str, Any] | None = None,
    ) -> None:
        #: Name of its route in the engine.
        self.name = _ROUTE
        self.route, self.policy, self.lanes, self.env = route, policy, lanes, env
        self.engine, self.contract, self.probe = engine, contract, probe
        self.guard = guard_of(route, env)
        #: Info keys that are kept by episode.
        self.metrics = metrics_of(route)
        #: Lanes that episodes are played on: here, or in each of so many workers.
        self.num_lanes, self.workers = lanes.num_envs, 1
        #: Whether the policy answered in an earlier sitting.
        self.is_trusted = False
        self._recorder: Recorder | None = None
        #: The policy's first instance.
        self.first: Any = None
        #: Files that the policy was loaded and built from.
        self.read: dict[str, None] = dict.fromkeys(policy.read)
        with files_read(self.read):
            self.plan = engine.configure(_ROUTE, self._build, contract)
        self._note_schedule()

    def _build(self) -> Any:
        built = self.policy.build(self.contract.action)
        if self.first is None:
            self.first = built
        return built

    def rollout(
        self,
        episodes: Sequence[Episode],
        *,
        lanes: AnyLanes | None = None,
        limits: Limits | None = None,
        deliver: Deliver | None = None,
        **watching: Any,
    ) -> Rollout:
        """Return the loop that plays some episodes.

        lanes: what stands in front of the stage's own, to look at what passes. limits: in place of the route's.
        deliver: gets what the route records of each episode; None records nothing.
        watching: the callbacks of Rollout.
        """
        if deliver is not None:
            from .recording.studio import recorder_of  # noqa: PLC0415 - few runs are recorded

            self.end_recording()  # a worker begins a rollout for each time that it is given more to do
            lanes = recorder_of(self, lanes or self.lanes, deliver)
            watching |= {"on_begin": lanes.begin, "on_end": lanes.end}
            self._recorder = lanes
        return Rollout(
            lanes or self.lanes,
            self.engine,
            _ROUTE,
            contract=self.contract,
            plan=self.plan,
            episodes=episodes,
            reader=InfoReader(self.route.success_rule, self.metrics, self.engine.advisories),
            limits=limits or Limits(steps=self.guard, seconds=self.route.env.max_episode_seconds),
            clock=time.perf_counter,
            is_seeded=self.env.is_seeded,
            is_aligned=self._replays and self.route.schedule != "eager" and not self.env.is_lockstep,
            # Whoever looks at what passes, or keeps it for a comparison, sees every frame.
            skipping=self._skipping if lanes is None and watching.get("on_trace") is None else None,
            **watching,
        )

    def trust(self) -> None:
        """Take a policy for one that has answered: from now on a call that fails is a failure of its episode."""
        self.is_trusted = True
        self.engine.route(_ROUTE).trust()

    @property
    def _replays(self) -> bool:
        """Whether lanes execute actions that were planned at an earlier step."""
        return self.plan.is_chunked and self.plan.horizon > 1

    @property
    def _skipping(self) -> SkippingLanes | None:
        """The lanes, if frames that the policy does not read may be left out."""
        lanes, env = self.lanes, self.env
        is_wanted = self.route.env.pixels == "wanted" and self._replays and not self.plan.wants_every_step
        if not (is_wanted and env.skips_pixels):
            return None
        from rlmesh_envs.foreign import ForeignLanes  # noqa: PLC0415 - of no use to lanes in this process

        return None if isinstance(lanes, ForeignLanes) else lanes

    def _note_schedule(self) -> None:
        """Note what was asked for, or offered, and cannot be had."""
        book, env = self.engine.advisories, self.env
        if self._replays and self.route.schedule == "aligned" and env.is_lockstep:
            book.add(
                "schedule-eager",
                "info",
                "the lanes of this vector environment step together and cannot wait for a chunk's end: "
                "episodes start at once",
            )
        if self._replays and self.route.env.pixels == "wanted" and env.pixels_hidden_by:
            book.add(
                "frames-rendered",
                "info",
                f"every frame is rendered: the wrapper {env.pixels_hidden_by} may keep observations, so the "
                "environment's skip_pixels is not used",
            )

    @property
    def chunk_length(self) -> int | None:
        """Length of the policy's first chunk, None if there was none."""
        return self.engine.chunk_length(_ROUTE)

    @property
    def actuators(self) -> list[Any]:
        """How far each component of a converted action was driven."""
        return self.engine.action_uses(_ROUTE)

    def release(self) -> None:
        """Close the policy; idempotent."""
        self.engine.release(_ROUTE)
        self.end_recording()

    def end_recording(self) -> None:
        """End what records the last rollout; idempotent."""
        if self._recorder is not None:
            self._recorder.close()


@contextlib.contextmanager
def staged(
    route: Route,
    *,
    source: dict[str, Any],
    policy: PolicySource | None = None,
    trusts_entrypoints: bool = False,
    sharing: str | None = None,
    is_cleared: bool = False,
    spec: bytes | None = None,
    crew_lanes: int | None = None,
    is_probed: bool = False,
    is_forced: bool = False,
    has_answered: bool = False,
    render_mode: str | None = None,
    is_recorded: bool = False,
) -> Iterator[Stage]:
    """Build what a route's episodes are played on, and take it down again.

    policy: one that was loaded already. sharing: how instances are shared, in place of what the route says.
    is_cleared: whether the policy was shown to keep nothing. spec: see EnvRequest.
    crew_lanes: lanes of all workers, where workers play; this stage then has one lane, to look at.
    is_probed: whether a policy that lanes are to share is tested first; is_forced: and run whatever is found.
    has_answered: whether the policy has given actions for this route before; see RouteContract.
    render_mode: what environments are built with beside the route's own arguments.
    is_recorded: whether what the route records will be; of a stage that only looks, nothing is.

    Raises HarnessError where policy, lanes or engine cannot be made.
    """
    policy = policy or load_policy(route.policy.source, route.policy.params, source.get("route_file"))
    shown = route if crew_lanes is None else msgspec.structs.replace(route, num_envs=1)
    film = None
    if is_recorded and route.is_filmed and crew_lanes is None:
        from .recording.studio import film_request  # noqa: PLC0415 - few runs are filmed

        film, render_mode = film_request(route), "rgb_array"
    lanes, env = make_lanes(env_request(shown, render_mode, spec, film))
    with contextlib.ExitStack() as stack:
        stack.callback(lanes.close)
        engine = AdapterEngine(clock=time.perf_counter, advisories=AdvisoryBook())
        stack.callback(engine.close)
        for code, sentence in env.notes.items():
            engine.advisories.add(code, "info", sentence)
        for code, sentence in env.cautions.items():
            engine.advisories.add(code, "caution", sentence)
        contract = contract_of(route, lanes, env, policy, source=source, trusts_entrypoints=trusts_entrypoints)
        contract = msgspec.structs.replace(
            contract, sharing=sharing or contract.sharing, is_cleared=is_cleared, has_answered=has_answered
        )
        decision = None
        meant = msgspec.structs.replace(contract, num_lanes=crew_lanes or contract.num_lanes)
        if is_probed and meant.num_lanes > 1 and route.policy.source not in BASELINES:
            from .deciding import decide  # noqa: PLC0415 - one lane needs no probe

            decision = decide(policy, meant, route, engine.advisories, is_forced=is_forced)
            contract = msgspec.structs.replace(contract, sharing=decision.sharing, is_cleared=decision.is_cleared)
        stage = Stage(
            route,
            policy,
            lanes,
            env,
            engine,
            contract,
            probe=None if decision is None else decision.record,
        )
        stack.callback(stage.end_recording)
        yield stage
