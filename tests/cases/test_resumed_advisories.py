"""Going on with a run: an advisory whose words hold the first value seen is one advisory, whoever saw it first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import Played, play, read_run

from rlmesh_cli.evaluation_command import Request, run

ZERO, GRADES = "zero", "durable_toys:Grades"
FLAGS: dict[str, Any] = {"metrics": ("mood",), "gates": ("cautions <= 2",)}


def unreadable(played: Played) -> list[tuple[str, str, int]]:
    """Return subject, message and count of the reports that could not be read."""
    told = [one for one in played.record["advisories"] if one["code"].endswith("-unreadable")]
    return sorted((one["subject"], one["message"], one["count"]) for one in told)


def without_a_number() -> list[tuple[str, str, int]]:
    return [
        ("is_success", "`is_success` of the infos is 0.3, which is neither true nor false: it does not count", 4),
        ("mood", "`mood` of the infos is 'of seed 0', which is no finite number: it does not count", 4),
    ]


@pytest.mark.parametrize("arranged", [{}, {"num_envs": 2, "vectorization": "async"}], ids=["one", "processes"])
def test_a_run_that_is_extended_has_the_advisories_and_the_exit_code_of_one_sitting(
    tmp_path: Path, arranged: dict[str, Any]
) -> None:
    whole = play(tmp_path, ZERO, GRADES, episodes=4, **FLAGS)
    assert (whole.code, unreadable(whole)) == (0, without_a_number())
    half = play(tmp_path, ZERO, GRADES, episodes=2, **FLAGS)
    code = int(run(Request(resume=str(half.folder), extend=2, out=half.out, quiet=True, **arranged)))
    again = read_run(half.out, code)
    assert (code, unreadable(again)) == (0, without_a_number())
    assert again.summary["gates"] == whole.summary["gates"]
    assert again.summary["advisories"] == again.record["advisories"]


def test_policy_workers_add_to_what_an_earlier_sitting_noted(tmp_path: Path) -> None:
    half = play(tmp_path, ZERO, GRADES, episodes=2, **FLAGS)
    code = int(run(Request(resume=str(half.folder), extend=2, out=half.out, quiet=True, workers=2)))
    assert (code, unreadable(read_run(half.out, code))) == (0, without_a_number())


def test_what_says_its_subject_in_full_is_written_without_one(tmp_path: Path) -> None:
    """Most advisories have none; that of a control that is not beaten names the control."""
    played = play(tmp_path, ZERO, GRADES, episodes=3, controls="zero")
    subjects = {one["code"]: one.get("subject") for one in played.record["advisories"]}
    assert subjects["success-unreadable"] == "is_success"
    assert subjects["control-not-beaten"] == "zero"
    assert {code for code, subject in subjects.items() if subject is None} == set(subjects) - {
        "success-unreadable",
        "control-not-beaten",
    }
