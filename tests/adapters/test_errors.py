from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from adapter_fakes import UnprintableError

from rlmesh_adapters.errors import (
    ActionError,
    EnvironmentBuildError,
    Failure,
    HarnessError,
    LoadError,
    PolicyCallError,
    RouteError,
    describe_error,
    failure_from,
    nearest,
    user_place,
)


def raised(error: Exception, origin: Exception) -> Exception:
    """Return an exception that was raised from another one."""
    try:
        raise error from origin
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (HarnessError("no lanes"), "no lanes"),
        (HarnessError("no lanes", where="a.yaml:3"), "no lanes\n  at    a.yaml:3"),
        (HarnessError("no lanes", mend="ask for one"), "no lanes\n  mend  ask for one"),
        (HarnessError("no lanes", where="a.yaml", mend="x"), "no lanes\n  at    a.yaml\n  mend  x"),
    ],
)
def test_an_error_names_cause_place_and_mend(error: HarnessError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize("kind", [RouteError, LoadError, EnvironmentBuildError, PolicyCallError, ActionError])
def test_errors_cross_process_borders_whole(kind: type[HarnessError]) -> None:
    error = pickle.loads(pickle.dumps(kind("cause é", where="place", mend="mend")))
    assert (type(error), error.cause, error.where, error.mend) == (kind, "cause é", "place", "mend")


def test_failures_cross_process_borders_whole() -> None:
    failure = Failure(phase="step", message="no", detail="file", mend="mend")
    assert pickle.loads(pickle.dumps(failure)) == failure


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad shape"), "ValueError: bad shape"),
        (ValueError("  bad\n shape\n"), "ValueError: bad shape"),
        (
            RuntimeError("Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: [3, 4]"),
            "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for fc.weight: [3, 4]",
        ),
        (ValueError("x" * 500), f"ValueError: {'x' * 397}..."),
        (raised(ValueError(""), KeyError("a")), "ValueError (from KeyError: 'a')"),
        (raised(ValueError("no weights"), KeyError("a")), "ValueError: no weights (from KeyError: 'a')"),
        (raised(ValueError("no weights: 'a'"), KeyError("a")), "ValueError: no weights: 'a'"),
        (raised(ValueError("no"), StopIteration()), "ValueError: no (from StopIteration)"),
        (raised(ActionError("cause"), KeyError("a")), "ActionError: cause"),
        (ValueError("\n\n"), "ValueError"),
        (ValueError(), "ValueError"),
        (KeyError("é"), "KeyError: 'é'"),
        (ActionError("cause", where="here", mend="mend"), "ActionError: cause"),
        (UnprintableError(), "UnprintableError: (its message cannot be shown)"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_an_exception_is_described_in_one_line(error: BaseException, text: str) -> None:
    assert describe_error(error) == text


def raised_in_a_user_function() -> ValueError:
    def act() -> None:
        raise ValueError("no")

    try:
        act()
    except ValueError as error:
        return error
    raise AssertionError


def test_a_failure_says_where_the_exception_was_raised() -> None:
    failure = failure_from(raised_in_a_user_function(), "policy")
    assert (failure.phase, failure.message, failure.mend) == ("policy", "ValueError: no", "")
    place, function = failure.detail.split(" in ")
    file, line = place.rsplit(":", 1)
    assert (Path(file).name, function) == (Path(__file__).name, "act")
    assert (
        Path(__file__).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip() == 'raise ValueError("no")'
    )


def test_an_exception_that_was_never_raised_has_no_place() -> None:
    assert user_place(None) == ""
    assert failure_from(ValueError("no"), "step").detail == ""


def test_a_failure_from_our_own_error_keeps_its_place_and_mend() -> None:
    failure = failure_from(ActionError("cause", where="predict of the policy", mend="mend"), "policy")
    assert failure == Failure(phase="policy", message="cause", detail="predict of the policy", mend="mend")


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("episods", ["episodes", "seed", "horizon"], ["episodes"]),
        ("CARTPOLE-v1", ["CartPole-v1", "Pong-v5"], ["CartPole-v1"]),
        ("xyz", ["episodes", "seed"], []),
        ("", ["episodes"], []),
        ("seed", ["seeded", "seeds", "weed", "seed", "x"], ["seed", "seeds", "seeded"]),
        ("seed", [], []),
    ],
)
def test_the_nearest_names_come_best_first_and_at_most_three(
    name: str, known: list[str], found: list[str]
) -> None:
    assert nearest(name, known) == found
    assert nearest(name, iter(known), limit=1) == found[:1]
