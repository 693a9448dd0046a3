"""Guests: what a user's file changes in the process is put back."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from cli_toys import ZERO, policy_file

from rlmesh_cli.guests import append_folder, as_guest, module_name, run_file

NOISY = """
import logging, os, random, sys
import numpy as np
print("loading weights")
os.chdir({elsewhere!r})
logging.disable(logging.CRITICAL)
logging.getLogger().setLevel(5)
logging.getLogger().handlers[:] = [logging.NullHandler()]
random.seed(1)
np.random.seed(1)
sys.argv = ["mine"]
"""


def state() -> tuple:
    """Return what a good guest leaves alone."""
    root = logging.getLogger()
    return (
        os.getcwd(),
        list(sys.argv),
        root.level,
        list(root.handlers),
        logging.root.manager.disable,
        random.getstate(),
        np.random.get_state()[1].tolist(),
        sys.stdout,
    )


@pytest.mark.parametrize(
    ("ending", "raised"),
    [
        ("", contextlib.nullcontext()),
        ("raise ValueError('late')\n", pytest.raises(ValueError, match="late")),
        ("sys.exit(3)\n", pytest.raises(SystemExit, match="3")),
    ],
)
def test_everything_is_as_before_also_on_error(ending, raised, tmp_path, capsys):
    path = tmp_path / "noisy.py"
    path.write_text(NOISY.format(elsewhere=str(tmp_path)) + ending)
    before = state()
    with raised:
        run_file(path)
    assert state() == before
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "loading weights\n")


def test_random_numbers_of_the_host_are_not_moved_on(tmp_path):
    random.seed(7)
    np.random.seed(7)
    expected = random.random(), np.random.random()
    random.seed(7)
    np.random.seed(7)
    with as_guest():
        random.random(), np.random.random()
    assert (random.random(), np.random.random()) == expected


def test_torch_generator_is_put_back_where_torch_is_loaded(monkeypatch):
    class Torch:
        state = "before"

        def get_rng_state(self):
            return self.state

        def set_rng_state(self, state):
            self.state = state

    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    with as_guest():
        torch.state = "moved"
    assert torch.state == "before"


def test_dataclass_in_the_file_finds_its_own_module(tmp_path):
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass, field\n"
        "@dataclass\nclass Config:\n    names: list[str] = field(default_factory=list)\n" + ZERO
    )
    module = run_file(tmp_path / policy_file(tmp_path, text))
    assert module.Config().names == []
    assert sys.modules[module.__name__] is module


def test_module_that_raises_is_not_left_registered(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import sys\nassert __name__ in sys.modules\nraise OSError('no file')\n")
    before = set(sys.modules)
    with pytest.raises(OSError, match="no file"):
        run_file(path)
    assert set(sys.modules) == before


def test_main_guard_does_not_run(tmp_path):
    text = ZERO + "ran = False\nif __name__ == '__main__':\n    ran = True\n"
    assert run_file(tmp_path / policy_file(tmp_path, text)).ran is False


def test_two_files_of_one_name_are_two_modules(tmp_path):
    modules = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        modules.append(run_file(folder / policy_file(folder, f"number = {number}\n")))
    assert [module.number for module in modules] == [0, 1]
    assert modules[0].__name__ != modules[1].__name__


def test_file_that_was_changed_within_its_second_is_run_as_it_is_now(tmp_path, monkeypatch):
    # Same size, same second: to Python's own cache of compiled code nothing has changed.
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "policy.py"
    for value in (1, 2):
        path.write_text(f"value = {value}\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert run_file(path, again=value > 1).value == value
    assert os.listdir(tmp_path) == ["policy.py"]  # and nothing is left beside the user's file


def test_file_is_run_once_unless_it_is_asked_for_again(tmp_path):
    path = tmp_path / policy_file(tmp_path, "import itertools\nbirth = object()\n")
    first = run_file(path)
    assert run_file(path) is first
    again = [run_file(path, again=True) for _ in range(3)]
    assert len({id(module.birth) for module in [first, *again]}) == 4
    assert len({module.__name__ for module in [first, *again]}) == 4


@pytest.mark.parametrize("stem", ["policy", "my policy-v2", "ünïcode", "0", "a.b"])
def test_module_name_is_an_identifier_that_depends_on_the_path_alone(stem, tmp_path):
    path = tmp_path / f"{stem}.py"
    assert module_name(path).isidentifier()
    assert module_name(path) == module_name(tmp_path / f"{stem}.py")
    assert module_name(path) != module_name(tmp_path / "sub" / f"{stem}.py")


def test_neighbours_can_be_imported_but_hide_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "json.py").write_text("mine = True\n")
    (tmp_path / "rlmesh_test_neighbour.py").write_text("value = 5\n")
    text = (
        "import json, rlmesh_test_neighbour\nvalue = rlmesh_test_neighbour.value\nhidden = hasattr(json, 'mine')\n"
    )
    module = run_file(tmp_path / policy_file(tmp_path, text))
    assert (module.value, module.hidden) == (5, False)
    assert sys.path[-1] == str(tmp_path)
    append_folder(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def test_logging_that_a_guest_brings_along_is_left_as_it_is_at_first():
    """In a process of its own, for here it is loaded already."""
    code = """
import sys
from rlmesh_cli.guests import as_guest
assert "logging" not in sys.modules
with as_guest():
    import logging
    logging.basicConfig(level=5)
    logging.disable(logging.CRITICAL)
root = logging.getLogger()
print(root.level == logging.WARNING, root.manager.disable == logging.NOTSET, root.handlers)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True", "True", "[]"]
