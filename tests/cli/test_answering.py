"""What commands that only read runs have in common: where their answer goes, and how they end."""

from __future__ import annotations

import os
import sys
from subprocess import PIPE, run

import pytest
from stored import golden_copy

from rlmesh_cli.answering import answer_with
from rlmesh_cli.exits import Exit
from rlmesh_cli.wording import counted, listed, signed

COMMANDS = [("runs",), ("show", "abcd"), ("show", "abcd", "--json"), ("compare", "abcd", "abcd")]


@pytest.mark.parametrize("command", COMMANDS)
def test_disk_that_is_full_is_a_message(command, tmp_path):
    golden_copy(tmp_path)
    with open("/dev/full", "w") as full:
        done = run(
            [sys.executable, "-m", "rlmesh_cli", *command, "--out", str(tmp_path)],
            stdout=full,
            stderr=PIPE,
            check=False,
        )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(b"rlmesh: standard output cannot be written to: No space left on device")


def test_reader_that_went_away_ends_the_command_without_a_word(tmp_path):
    golden_copy(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    done = run(
        [sys.executable, "-m", "rlmesh_cli", "show", "abcd", "--out", str(tmp_path)],
        stdout=writing,
        stderr=PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_fault_of_ours_has_its_traceback(capsys):
    assert answer_with(lambda: Exit(1 // 0)) == Exit.BUG
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "this is a bug of rlmesh" in said


def test_interrupt_is_told(capsys):
    def interrupted() -> Exit:
        raise KeyboardInterrupt

    assert answer_with(interrupted) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "rlmesh: interrupted\n"


def test_words():
    assert [signed(value) for value in (1.5, -1.5, 0.0, 2.0)] == ["+1.50", "-1.50", "0", "+2"]
    assert [counted(count, "pair") for count in (1, 2, 1000)] == ["1 pair", "2 pairs", "1,000 pairs"]
    assert [listed(parts) for parts in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
