"""Streams: standard output is ours, whatever policies and libraries print."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rlmesh_cli.streams import user_output_to_stderr


def test_prints_of_python_and_of_what_is_underneath_go_to_standard_error(capfd):
    with user_output_to_stderr():
        print("python")  # noqa: T201
        os.write(1, b"library\n")
        subprocess.run(["echo", "child"], check=True)
        sys.stdout.flush()
    print("ours", flush=True)  # noqa: T201
    os.write(1, b"also ours\n")
    said = capfd.readouterr()
    assert said.out == "ours\nalso ours\n"
    assert sorted(said.err.split()) == ["child", "library", "python"]


def test_output_is_back_also_on_error(capfd):
    before = sys.stdout
    with pytest.raises(ValueError, match="inside"), user_output_to_stderr():
        raise ValueError("inside")
    assert sys.stdout is before
    os.write(1, b"ours\n")
    assert capfd.readouterr().out == "ours\n"


def test_text_from_before_stays_on_standard_output(capfd):
    sys.__stdout__.write("early\n")
    with user_output_to_stderr():
        os.write(1, b"user\n")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("early\n", "user\n")


def test_nested_use_and_no_descriptor_is_left_open(capfd):
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    with user_output_to_stderr():
        pass
    before = descriptors()
    with user_output_to_stderr(), user_output_to_stderr():
        os.write(1, b"user\n")
    assert descriptors() == before
    os.write(1, b"ours\n")
    assert capfd.readouterr().out == "ours\n"


def test_what_waits_in_pythons_own_buffer_goes_to_standard_error_too(tmp_path):
    """`sys.__stdout__` is buffered where it is no terminal, so its text comes late."""
    code = (
        "import sys\n"
        "from rlmesh_cli.streams import user_output_to_stderr\n"
        "with user_output_to_stderr():\n"
        "    sys.__stdout__.write('user\\n')\n"
        "sys.stdout.write('ours\\n')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("ours\n", "user\n")
