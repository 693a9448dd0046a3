"""Recorder: stands in front of the lanes, writes down what passes, and hands out the files of each episode.

Axes: R stepped lanes, M asking rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.batches import Batch, BatchLayout, copy_batch, leaves, take_rows
from rlmesh_adapters.context import EpisodeContext
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.lane_protocols import Lanes
from rlmesh_envs.filming import FRAME
from rlmesh_envs.steps import Info, LaneResets, LaneSteps

from .blocks import StepLog, kept_batch
from .films import Encoder, Film
from .tapes import Tape
from .views import View

#: Files of an episode: name in the run's folder, such as `videos/ep-000001.mp4` -> what it holds.
Files = dict[str, bytes]
#: Takes what was recorded of an episode that has ended.
Deliver = Callable[[EpisodeResult, Files], None]
Frame = npt.NDArray[np.uint8] | str


class StepWriter(Protocol):
    """Makes a file of an episode's steps."""

    def __call__(self, row: EpisodeResult, tape: Tape) -> bytes: ...  # noqa: D102


class First(msgspec.Struct, frozen=True):
    """What a reset gave, until it is known which episode it belongs to."""

    observation: Any
    info: Info
    frame: Frame | None


class Recorder:
    """Lanes that are recorded; see lane_protocols.Lanes.

    lanes: themselves. layout: of an observation. fps: frames a second of films, None films nothing.
    views: images that the policy is shown.
    write_steps: makes a file of an episode's steps, None keeps none. advisories: where lost films are noted.
    deliver: gets the files of each episode that has ended, before its row is written.

    Whoever plays says which episode a lane has begun (`begin`) and what came of it (`end`), before the lane is
    reset again; an episode that is begun anew after a fault has no end.
    """

    def __init__(
        self,
        lanes: Lanes,
        *,
        layout: BatchLayout,
        fps: float | None,
        views: Sequence[View],
        write_steps: StepWriter | None,
        advisories: AdvisoryBook,
        deliver: Deliver,
    ) -> None:
        self.num_envs = lanes.num_envs
        self._lanes, self._layout = lanes, layout
        self._fps, self._views = fps, views
        self._write_steps, self._advisories, self._deliver = write_steps, advisories, deliver
        self._firsts: dict[int, First] = {}
        self._tapes: dict[int, Tape] = {}
        self._by_id: dict[str, Tape] = {}
        self._log = StepLog()
        self._company: Sequence[int] = ()
        self._encoder: Encoder | None = None

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset some lanes, and keep their first observations."""
        for lane in lanes:
            # What was broken off by a fault and is played again; a reset that fails leaves nothing of it.
            old = self._tapes.pop(lane, None)
            if old is not None:
                self._by_id.pop(old.episode_id, None)
        resets = self._lanes.reset_lanes(lanes, seeds)
        self._keep_firsts(resets)
        return resets

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step some lanes, and keep what they were given and what they gave."""
        if lanes is not self._company:
            self._cut()
            self._company = lanes
        kept = None if self._write_steps is None or not lanes else copy_batch(actions)
        steps = self._lanes.step_lanes(actions, lanes)
        if steps.infos is not None:
            self._read(lanes, steps)
        # Nothing is seen where all lanes were lost.
        if kept is not None and steps.observations is not None:
            rewards = steps.rewards if isinstance(steps.rewards, list) else np.array(steps.rewards, np.float64)
            self._log.add(steps.observations, kept, rewards)
            if steps.finals is not None:
                self._keep_finals(lanes, steps)
        if steps.started is not None:
            self._keep_firsts(steps.started)
        return steps

    def see(self, inputs: Batch, episodes: Sequence[EpisodeContext]) -> None:
        """Look at what the policy is asked with: (M, ...) inputs of M episodes."""
        for row, episode in enumerate(episodes):
            tape = self._by_id.get(episode.episode_id)
            if tape is not None and tape.films:
                for view in self._views:
                    tape.shown[view.name] = view.picture(inputs, row)

    def begin(self, lane: int, episode: EpisodeContext) -> None:
        """Say which episode stands at its first observation."""
        self._cut()
        first = self._firsts.pop(lane, None)
        if first is None:
            return
        tape = Tape(episode.episode_id, first.observation, first.info)
        if first.frame is not None:
            tape.films[""] = self._film()
            tape.films.update({view.name: self._film() for view in self._views})
            tape.films[""].add(first.frame)
        self._tapes[lane] = tape
        self._by_id[episode.episode_id] = tape

    def end(self, row: EpisodeResult) -> None:
        """Hand out what was recorded of an episode."""
        self._cut()
        tape = self._tapes.pop(row.lane, None)
        if tape is None:
            return
        self._by_id.pop(tape.episode_id, None)
        files: Files = {}
        for name, film in tape.films.items():
            if name:
                tape.show(name, film)  # the last picture stays until the last frame of the environment
            video = film.finish()
            if video is not None:
                files[f"videos/{row.episode_id}{f'.{name}' if name else ''}.mp4"] = video
            if film.failure:
                self._note_loss(row, film.failure)
        if self._write_steps is not None:
            files[f"steps/{row.episode_id}.parquet"] = self._write_steps(row, tape)
        self._deliver(row, files)

    def close(self) -> None:
        """End what works beside the loop; idempotent."""
        if self._encoder is not None:
            self._encoder.close()

    def _film(self) -> Film:
        if self._encoder is None:
            self._encoder = Encoder()
        return Film(self._encoder, self._fps or 0.0)

    def _keep_firsts(self, resets: LaneResets) -> None:
        for row, lane in enumerate(resets.lanes):
            if row in resets.failures:
                self._firsts.pop(lane, None)
                continue
            info = resets.infos[row]
            frame = self._frame_in(info)
            # Before the policy gets it, who may write into it.
            observation = (
                None if self._write_steps is None else leaves(kept_batch(take_rows(resets.observations, [row])))
            )
            self._firsts[lane] = First(observation, info, frame)

    def _frame_in(self, info: Info) -> Frame | None:
        """Take the frame out of an info; where nothing is filmed, the key is somebody else's."""
        return info.pop(FRAME) if self._fps is not None and FRAME in info else None

    def _read(self, lanes: Sequence[int], steps: LaneSteps) -> None:
        """Take frames out of the infos, and keep the rest."""
        taken = len(self._log)
        for row, info in enumerate(steps.infos or ()):
            if not info:
                continue
            tape = self._tapes.get(lanes[row])
            frame = self._frame_in(info)
            if tape is None or row in steps.failures:  # a step that counts for none has no frame and no info
                continue
            if frame is not None and tape.films:
                for view in self._views:
                    tape.show(view.name, tape.films[view.name])
                tape.films[""].add(frame)
            if info and self._write_steps is not None:
                tape.keep_info(tape.taken + taken + 1, info)

    def _keep_finals(self, lanes: Sequence[int], steps: LaneSteps) -> None:
        for row, _, _ in steps.ended:
            tape = self._tapes.get(lanes[row])
            if tape is not None:
                final = (steps.finals or {}).get(row)
                tape.final = None if final is None else self._laid_out(final)

    def _laid_out(self, observation: Any) -> list[Any] | None:
        """Return the leaves of one observation, each as a batch of one; None for what is not of its space."""
        batch = self._layout.allocate(1)
        try:
            self._layout.write(batch, 0, observation)
        except (ValueError, TypeError):  # it stands in an info, where nobody else looks at it
            return None
        return leaves(batch)

    def _cut(self) -> None:
        """Sort the steps since the last cut by lane."""
        if not len(self._log):
            return
        block = self._log.take()
        for row, lane in enumerate(self._company):
            tape = self._tapes.get(lane)
            if tape is not None:
                tape.add(*block.lane(row), block.taken)

    def _note_loss(self, row: EpisodeResult, reason: str) -> None:
        self._advisories.add(
            "video-lost", "info", f"videos are incomplete; the first one lost is of {row.episode_id}: {reason}"
        )
