"""Answers of workers as bytes: an info that cannot travel fails its own row, and takes no other along."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

import msgspec

from rlmesh_adapters.errors import Failure, describe_error

from .steps import Info, LaneResets, LaneSteps

Answer = LaneResets | LaneSteps
#: An answer without infos, and each row's info pickled by itself, or why it cannot be.
Sealed = tuple[Answer, list[bytes | str]]


def pickled(message: object) -> bytes:
    """Return a message as bytes."""
    return bytes(ForkingPickler.dumps(message))


def unpickled(data: bytes) -> object:
    """Return the message that some bytes hold."""
    return ForkingPickler.loads(data)


def pickled_answer(answer: Answer) -> bytes:
    """Return an answer as bytes; an info that cannot be pickled becomes its row's failure."""
    try:
        return pickled(answer)
    except Exception:  # the sealed form says which it is
        return pickled(open_sealed(*seal(answer)))


def seal(answer: Answer) -> Sealed:
    """Return an answer with each info pickled by itself."""
    sealed: list[bytes | str] = []
    for info in answer.infos or ():
        try:
            sealed.append(pickled(info))
        except Exception as error:
            sealed.append(describe_error(error))
    return msgspec.structs.replace(answer, infos=[]), sealed


def open_sealed(answer: Answer, sealed: list[bytes | str]) -> Answer:
    """Put the infos back; one that cannot be read fails its row alone."""
    phase = "reset" if isinstance(answer, LaneResets) else "step"
    infos: list[Info] = []
    failures = dict(answer.failures)
    for row, part in enumerate(sealed):
        info: Info = {}
        if row in failures:  # what went wrong first is what is told
            infos.append(info)
            continue
        try:
            if isinstance(part, str):
                raise TypeError(part)
            info = ForkingPickler.loads(part)
        except Exception as error:
            text = f"the info cannot be sent from the worker process: {describe_error(error)}"
            failures[row] = Failure(phase=phase, message=text, mend="use --vectorization sync")
        infos.append(info)
    if isinstance(answer, LaneResets):
        return msgspec.structs.replace(answer, infos=infos, failures=failures)
    ended = [end for end in answer.ended if end[0] not in failures]
    return msgspec.structs.replace(answer, infos=infos or None, failures=failures, ended=ended)
