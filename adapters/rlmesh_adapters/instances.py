"""Instances: which policy object answers for which episode, and its life from `reset` to `close`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .batches import Batch, take_rows
from .calls import PolicyCaller, kept_answer
from .context import EpisodeContext
from .corners import parameter_names
from .errors import ActionError, Failure, failure_from, faults_suppressed, is_fault
from .insides import get_quietly
from .modes import EvalMode
from .predictions import Prediction, merge


def episode_hooks(policy: object) -> list[str]:
    """Return by which methods a policy is told where episodes begin and end; it may keep something of them."""
    return [name for name in ("reset", "on_episode_end") if callable(get_quietly(policy, name))]


class Instances:
    """One policy object for all lanes, or one for each episode that is being played.

    With `lane` an object is handed from an ended episode to the next one, after its `reset`; with `episode` it is
    closed, and the next episode gets a new one.

    policies: the one object, or as many as episodes are played at once.
    caller_of: makes the caller of a policy.
    sharing: `shared`, `lane` or `episode`.
    build: makes one object more, for `episode`.
    """

    def __init__(
        self,
        policies: Sequence[Any],
        caller_of: Callable[[Any], PolicyCaller],
        *,
        sharing: str,
        build: Callable[[], Any] | None = None,
    ) -> None:
        self.sharing = sharing
        self._caller_of, self._build = caller_of, build
        self._modes = EvalMode()
        self._slots = [_Slot(policy, caller_of(policy)) for policy in policies]
        try:
            for policy in policies:
                self._modes.enter(policy)
        except BaseException:
            self._modes.leave()
            raise
        self._free = [] if sharing == "shared" else list(self._slots)
        self._playing: dict[str, _Slot] = {}
        self._close_failure: Failure | None = None
        self._is_chunked = self._slots[0].caller.corner.is_chunked
        self._company: Sequence[EpisodeContext] | None = None
        needs_begin = self._slots[0].has_hooks or sharing != "shared"
        #: Asks the instances of M episodes; an episode's first call is preceded by `reset`.
        self.predict: Callable[[Batch, Sequence[EpisodeContext]], Prediction] = (
            self._predict if needs_begin else self._slots[0].caller.predict
        )

    def _predict(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        failures: dict[int, Failure] = {}
        if episodes is not self._company:
            failures = self._begin(episodes)
            self._company = episodes if not failures else None
        if failures:
            return self._predict_rest(batch, episodes, failures)
        if self.sharing == "shared":
            return self._slots[0].caller.predict(batch, episodes)
        return self._predict_each(batch, episodes)

    def begin(self, episodes: Sequence[EpisodeContext]) -> None:
        """Call `reset` for episodes before they are asked for; where it raises, their first call repeats it."""
        self._begin(episodes)

    def _begin(self, episodes: Sequence[EpisodeContext]) -> dict[int, Failure]:
        failures: dict[int, Failure] = {}
        for row, episode in enumerate(episodes):
            if episode.episode_id in self._playing:
                continue
            slot = None
            try:
                slot = self._acquire()
                slot.reset(episode)
            except BaseException as error:
                if not is_fault(error):
                    raise
                failures[row] = failure_from(error, "policy")
                if slot is not None and self.sharing == "lane":
                    # Behind the others, which may be sound.
                    self._free.insert(0, slot)
                elif slot is not None and self.sharing == "episode":
                    self._retire(slot)
            else:
                self._playing[episode.episode_id] = slot
        return failures

    def _acquire(self) -> _Slot:
        if self.sharing == "shared":
            return self._slots[0]
        if not self._free and self.sharing == "episode" and self._build is not None:
            policy = self._build()
            slot = _Slot(policy, self._caller_of(policy))
            self._slots.append(slot)
            slot.modes.enter(policy)
            return slot
        if not self._free:
            raise RuntimeError(f"{len(self._slots)} policy instances, but more episodes than that at once")
        return self._free.pop()

    def _retire(self, slot: _Slot) -> None:
        """Close an object that is not used again; what its `close` raises is told at the end."""
        self._slots.remove(slot)
        try:
            slot.close()
        except BaseException as error:
            if not is_fault(error):
                raise
            self._close_failure = self._close_failure or failure_from(error, "policy")
        finally:
            slot.modes.leave()

    def _predict_rest(
        self, batch: Batch, episodes: Sequence[EpisodeContext], failures: dict[int, Failure]
    ) -> Prediction:
        """Ask for the rows whose `reset` went well."""
        rows = [row for row in range(len(episodes)) if row not in failures]
        if not rows:
            return Prediction(None, failures=failures)
        answer = self._predict(take_rows(batch, rows), [episodes[row] for row in rows])
        return merge(len(episodes), [(rows, answer)], failures, is_chunked=self._is_chunked)

    def _predict_each(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        if len(episodes) == 1:
            return self._playing[episodes[0].episode_id].caller.predict(batch, episodes)
        answers = []
        for row, episode in enumerate(episodes):
            caller = self._playing[episode.episode_id].caller
            try:
                answer = caller.predict(take_rows(batch, [row]), (episode,))
                # Two instances may share an array that they answer in.
                answer.actions = kept_answer(answer.actions)
            except ActionError as error:
                answer = Prediction(None, failures={0: failure_from(error, "policy")})
            answers.append(([row], answer))
        return merge(len(episodes), answers, {}, is_chunked=self._is_chunked)

    def end(self, episode: EpisodeContext) -> Failure | None:
        """Take an episode off its instance; return what `on_episode_end` raised, if it did."""
        self._company = None
        slot = self._playing.pop(episode.episode_id, None)
        if slot is None:
            if self._slots:
                self._slots[0].caller.states.pop(episode.episode_id, None)
            return None
        slot.caller.states.pop(episode.episode_id, None)
        failure = slot.ended(episode)
        if self.sharing == "lane":
            self._free.append(slot)
        elif self.sharing == "episode":
            self._retire(slot)
        return failure

    def close(self) -> Failure | None:
        """Call `close` of every policy and put training modes back; return the first failure."""
        failure = self._close_failure
        try:
            for slot in self._slots:
                try:
                    slot.close()
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    failure = failure or failure_from(error, "policy")
        finally:
            for slot in self._slots:
                slot.modes.leave()
            self._modes.leave()
        return failure


class _Slot:
    """One policy object with its caller and hooks."""

    def __init__(self, policy: Any, caller: PolicyCaller) -> None:
        self.caller = caller
        #: Training modes of an object that is built for one episode.
        self.modes = EvalMode()
        self._close = get_quietly(policy, "close")
        self._reset = _hook(policy, "reset")
        self._ended = _hook(policy, "on_episode_end")
        self.has_hooks = self._reset is not None or self._ended is not None

    def reset(self, episode: EpisodeContext) -> None:
        if self._reset is not None:
            self._reset(episode)

    def ended(self, episode: EpisodeContext) -> Failure | None:
        if self._ended is not None:
            try:
                self._ended(episode)
            except BaseException as error:
                if not is_fault(error):
                    raise
                return failure_from(error, "policy")
        return None

    def close(self) -> None:
        if callable(self._close):
            self._close()


def _hook(policy: Any, name: str) -> Callable[[EpisodeContext], Any] | None:
    """Return a hook as a function of the context, which is passed on only if the policy takes it."""
    hook = get_quietly(policy, name)
    if not callable(hook):
        return None
    if "context" in parameter_names(hook):
        return lambda context: hook(context=context)
    return lambda context: hook()


def close_quietly(policy: Any) -> None:
    """Call the policy's `close` if it has one; what that raises is of no interest any more."""
    with faults_suppressed():
        close = get_quietly(policy, "close")
        if callable(close):
            close()
