"""Lab: fresh instances of a policy, asked through the engine with real observations, one call at a time.

Axes: M rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.batches import Batch, copy_batch, leaves, take_rows
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import HarnessError, LoadError, OverdueError, describe_error, is_fault, user_place
from rlmesh_adapters.insides import get_quietly
from rlmesh_adapters.predictions import Prediction

from .answers import Answer, answer_of, scale_of
from .budget import Budget, Deadline, Spent
from .contexts import ProbedContext
from .randomness import RandomSources, global_state

_ROUTE = "probe"
_SEED = 20_240_229


#: States of random sources before and after something.
Moved = tuple[list[Any], list[Any]]


class SecondInstanceError(LoadError):
    """The policy could be built, but not again."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What a call did besides answering.

    edited: it wrote into what it was given. reused: what it had returned before was changed.
    """

    edited: bool = False
    reused: bool = False


class Lab:
    """Builds instances of one policy and asks them.

    build: returns a fresh policy. contract: of the route, with the documents that convert it.
    batches: different batches (M, ...) of observations, at least four rows each.
    budget: see Budget. renew: runs the policy's file anew and returns its `build`, where that can be done.
    deadline: ends a call that goes on longer than there is time; without it, calls are waited for.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        contract: RouteContract,
        batches: Sequence[Batch],
        budget: Budget,
        *,
        renew: Callable[[], Callable[[], Any]] | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.deadline = deadline or (lambda seconds: contextlib.nullcontext())
        #: Which call did not return in time, and where it was; empty if all did.
        self.overdue = ""
        self.build, self.budget, self.renew = build, budget, renew
        self.use(batches)
        self.contract = msgspec.structs.replace(
            contract, num_lanes=1, sharing="shared", ensemble=None, batch_rows=None
        )
        self.sources = RandomSources()
        self.sides: list[Side] = []
        #: Every answer that was given, to look at as a whole.
        self.answers: list[Answer] = []
        #: The largest number among them.
        self.largest = 0.0
        self.complaints: list[str] = []
        #: Random numbers of episodes that policies were given, by id.
        self.given: dict[int, np.random.Generator] = {}
        self.sessions: list[Session] = []
        #: What the policy asked contexts for: `seed`, `step`.
        self.read: set[str] = set()
        #: Whether contexts tell steps that go on from call to call; else each call is an episode's first step, so
        #: that it can be held against the first call of a fresh instance.
        self.counts_steps = False
        self._first: Any = None
        #: Whether there is but one object: what was to be a fresh instance was the first one again.
        self.is_lone = False

    def know(self, policy: object) -> None:
        """Note an instance that was built, and whether it is another than the first."""
        if self._first is None:
            self._first = policy
        elif policy is self._first:
            self.is_lone = True

    def use(self, batches: Sequence[Batch]) -> None:
        """Ask with these batches from now on."""
        self.batches = list(batches)
        self.rows = len(leaves(batches[0])[0])

    def fresh(self, build: Callable[[], Any] | None = None) -> Session:
        """Return a session with an instance of its own.

        Raises Spent where there is no time to build it, SecondInstanceError where it cannot be built again.
        """
        self.budget.take_instance()
        session = Session(self, f"s{self.budget.instances}", build or self.build)
        self.sessions.append(session)
        return session

    @contextlib.contextmanager
    def visit(self, build: Callable[[], Any] | None = None) -> Iterator[Session]:
        """Give a session that is closed again at once, so that few large models are held at a time."""
        session = self.fresh(build)
        try:
            yield session
        finally:
            session.close()
            self.sessions.remove(session)

    def close(self) -> None:
        """Close every instance, and put the global random sources back."""
        try:
            for session in self.sessions:
                session.close()
        finally:
            self.sources.restore()


class Session:
    """One instance, asked call after call."""

    def __init__(self, lab: Lab, name: str, build: Callable[[], Any]) -> None:
        self._lab, self._name, self._build = lab, name, build
        self._engine = AdapterEngine(advisories=AdvisoryBook())
        self.policy: Any = None
        self._kept: tuple[Any, list[bytes]] | None = None
        self._episode = 0
        #: Calls since the episode began.
        self._taken = 0
        self._is_begun = False
        # Generators that a `reset` made, by id: such as it seeded, and its own to go on with.
        self._made: dict[int, Any] = {}
        #: States of the random sources before and after the last call, and when the last episode began.
        self.moved: Moved = ([], [])
        self.begun: Moved = ([], [])
        #: Batches that it was asked for, in order.
        self.asked: list[Batch] = []
        self.plan: RoutePlan = self._engine.configure(_ROUTE, self._built, lab.contract)

    def _built(self) -> Any:
        self._lab.sources.arrange(_SEED)
        budget = self._lab.budget
        began = budget.seconds
        try:
            self.policy = self._build()
        except HarnessError as error:
            if self._lab.budget.instances < 2:
                raise
            raise SecondInstanceError(
                f"a second instance of the policy cannot be built: {error.cause}",
                where=error.where,
                mend="instances are compared, so they must not get in each other's way; "
                "else use --num-envs 1, or --no-probe with --instances shared",
            ) from error
        budget.slowest_build = max(budget.slowest_build, budget.seconds - began)
        self._lab.know(self.policy)
        self._lab.sources.look_into(self.policy)
        return self.policy

    def play_another(self, batch: Batch) -> None:
        """Begin an episode with another seed and other random numbers, and ask in it."""
        self.next_episode()
        self.ask(batch, noise=1, seed=_SEED + 1)

    def begin_another(self) -> None:
        """Begin an episode with another seed and other random numbers, without a call."""
        self.begin(noise=1, seed=_SEED + 1)

    def next_episode(self) -> None:
        """End the episode that is being played; the next call begins another."""
        self._engine.end_episodes(_ROUTE, self._contexts(range(self._lab.rows)))
        self._episode += 1
        self._taken = 0
        self._is_begun = False

    def begin(self, *, rows: Sequence[int] | None = None, noise: int = 0, seed: int = _SEED) -> None:
        """Begin an episode without a call; else its first call does. See `ask`.

        What `reset` draws must not shift what the first call draws, or that would look like a memory.
        """
        with self._in_time():
            self._begin(rows, noise, seed)

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        """Raise Spent where the policy does not return before the time is up."""
        lab = self._lab
        try:
            with lab.deadline(lab.budget.seconds_left):
                yield
        except OverdueError as error:
            place = user_place(error.__traceback__)
            lab.overdue = (
                f"Call {lab.budget.calls} had not returned when the time was up, after {lab.budget.seconds:.1f} s"
                + (f"; it was at {place}." if place else ".")
            )
            raise Spent from None

    def _begin(self, rows: Sequence[int] | None, noise: int, seed: int) -> None:
        lab = self._lab
        lab.sources.look_into(self.policy, but=self._made)
        lab.sources.arrange(_SEED + noise)
        known = {id(generator) for generator in lab.sources.found}
        before = self._sources()
        self._engine.begin_episodes(_ROUTE, self._contexts(range(lab.rows) if rows is None else rows, seed))
        self.begun = (before, self._sources())
        lab.sources.look_into(self.policy, but=self._made)
        self._made.update((id(item), item) for item in lab.sources.found if id(item) not in known)
        self._is_begun = True

    def has_made(self, name: str) -> bool:
        """Tell whether an attribute of the policy is a generator that its `reset` made."""
        return id(get_quietly(self.policy, name)) in self._made

    def ask(
        self, batch: Batch, *, rows: Sequence[int] | None = None, noise: int = 0, seed: int = _SEED
    ) -> list[Answer]:
        """Ask for a batch, or some rows of it in the order given; return an answer a row.

        noise: which state the random sources are put into. seed: of the first row's episode.

        Raises Spent where the budget does not allow the call.
        """
        lab = self._lab
        lab.budget.take_call()
        given = copy_batch(batch) if rows is None else take_rows(batch, rows)
        company = range(lab.rows) if rows is None else rows
        count = len(company)
        self.asked.append(batch)
        before = [np.array(leaf) if isinstance(leaf, np.ndarray) else list(leaf) for leaf in leaves(given)]
        if self.plan.passes_state:
            # The engine keeps its state by episode, so each call is the first of one.
            self._episode += 1
            self._is_begun = False
        contexts = self._contexts(company, seed)
        adapter = self._engine.route(_ROUTE).adapter
        if adapter is not None:
            # Windows are the adapter's memory, not the policy's: each call sees one frame, again and again.
            for context in contexts:
                adapter.observations.evict(context.episode_id)
        states: list[Any] = []
        try:
            with self._in_time():
                if not self._is_begun:
                    self._begin(rows, noise, seed)
                self._taken += 1
                lab.sources.look_into(self.policy, but=self._made)
                lab.sources.arrange(_SEED + noise)
                states = self._sources()
                prediction = self._engine.predict(_ROUTE, given, contexts)
        except Spent:
            raise
        except HarnessError as error:
            lab.complaints.append(error.cause)
            answers = [Answer(np.empty(0), False, error.cause)] * count
        except BaseException as error:
            if not is_fault(error):
                raise
            lab.complaints.append(describe_error(error))
            answers = [Answer(np.empty(0), False, describe_error(error))] * count
        else:
            self.moved = (states, self._sources())
            answers = self._answers(prediction, count, None if adapter is None else adapter.outputs)
            self._note_side(given, before, prediction.actions)
        lab.answers.extend(answers)
        lab.largest = max(lab.largest, scale_of(answers))
        return answers

    def play(self, batches: Sequence[Batch]) -> list[Answer]:
        """Ask for batches one after another, at least one; return the answer to the last."""
        return [self.ask(batch) for batch in batches][-1]

    def _sources(self) -> list[Any]:
        """Return the states of all sources but the episodes' own."""
        return self._lab.sources.states(but=self._lab.given)

    def _contexts(self, company: Sequence[int], seed: int = _SEED) -> list[EpisodeContext]:
        """Return contexts whose random numbers begin anew at each call, and go with the row, not its place."""
        lab = self._lab
        length = lab.contract.horizon if self.plan.is_chunked else 1
        step = self._taken * length if lab.counts_steps else 0
        return [
            ProbedContext(
                f"{self._name}-{self._episode}-{position}",
                row,
                seed + row,
                step,
                read=lab.read,
                given=lab.given,
            )
            for position, row in enumerate(company)
        ]

    def _answers(self, prediction: Prediction, count: int, outputs: Any) -> list[Answer]:
        """Return an answer a row: what the model put out, if that is converted: scores say more than choices."""
        answers = []
        # Of a batch with failures the outputs are those of the other rows.
        shown = prediction.actions if outputs is None or prediction.failures else outputs
        for row in range(count):
            failure = prediction.failures.get(row)
            if failure is not None or prediction.actions is None:
                message = "no answer" if failure is None else failure.message
                self._lab.complaints.append(message)
                answers.append(Answer(np.empty(0), False, message))
            else:
                answers.append(answer_of(shown, row))
        return answers

    def _note_side(self, given: Batch, before: list[Any], actions: Any) -> None:
        edited = any(
            isinstance(leaf, np.ndarray) and leaf.tobytes() != old.tobytes()
            for leaf, old in zip(leaves(given), before, strict=True)
        )
        reused = self._kept is not None and self._kept[1] != _bytes(self._kept[0])
        self._kept = None if actions is None else (actions, _bytes(actions))
        self._lab.sides.append(Side(edited=edited, reused=reused))

    def reseeds(self, batch: Batch) -> bool:
        """Tell whether a call puts a global generator into one state whatever its state was before."""
        ends = set()
        for noise in (1, 2):
            self.ask(batch, noise=noise)
            ends.add(global_state())
        starts = set()
        for noise in (1, 2):
            self._lab.sources.arrange(_SEED + noise)
            starts.add(global_state())
        return len(ends) < len(starts)

    def close(self) -> None:
        """Close the instance."""
        self._engine.close()


def _bytes(actions: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in leaves(actions)]
