"""Finding an environment by its id, and saying what is near when it is not there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import env_fakes
import gymnasium as gym
import pytest

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.registry import find_environment
from rlmesh_envs.request import EnvRequest

Package = Callable[[str, str], None]

REGISTERS = """
import gymnasium as gym
from env_fakes import Tape
gym.register({id!r}, entry_point=Tape, disable_env_checker=True)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Write an importable module; what it registers is forgotten after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    before, modules = set(gym.registry), set(sys.modules)

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    yield write
    for name in set(gym.registry) - before:
        del gym.registry[name]
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def refused(id: str, *imports: str) -> EnvironmentBuildError:
    with pytest.raises(EnvironmentBuildError) as caught:
        find_environment(EnvRequest(id=id, imports=imports))
    assert caught.value.cause
    assert caught.value.where
    assert caught.value.mend
    return caught.value


def test_a_registered_id_is_its_spec():
    assert find_environment(EnvRequest(id="FakeLimited-v0")) is gym.registry["FakeLimited-v0"]


def test_an_id_without_a_version_is_the_latest():
    assert find_environment(EnvRequest(id="FakeKin")).id == "FakeKin-v3"
    assert find_environment(EnvRequest(id="CartPole")).id == "CartPole-v1"


def test_an_older_version_that_is_registered_is_kept():
    assert find_environment(EnvRequest(id="FakeKin-v0")).id == "FakeKin-v0"


def test_a_module_in_front_of_an_id_is_imported_first(package):
    package("shop", REGISTERS.format(id="Shop-v0"))
    assert find_environment(EnvRequest(id="shop:Shop-v0")).id == "Shop-v0"


def test_a_module_in_front_of_an_id_without_a_version_gives_the_latest():
    assert find_environment(EnvRequest(id="env_fakes:FakeKin")).id == "FakeKin-v3"


def test_imports_are_imported_in_order_before_the_id_is_looked_up(package):
    package("first", "loaded = []\n" + REGISTERS.format(id="OrderedShelf-v0"))
    package("second", "import first\nfirst.loaded.append('second')\n")
    assert find_environment(EnvRequest(id="OrderedShelf-v0", imports=("first", "second"))).id == "OrderedShelf-v0"
    assert sys.modules["first"].loaded == ["second"]


@pytest.mark.parametrize("name", ["Tape", "make_limited", "name_only"])
def test_a_class_or_function_in_a_module_is_given_back_itself(name):
    assert find_environment(EnvRequest(id=f"env_fakes:{name}")) is getattr(env_fakes, name)


def test_a_class_in_a_submodule_is_found():
    from_gymnasium = find_environment(EnvRequest(id="gymnasium.envs.classic_control.cartpole:CartPoleEnv"))
    assert from_gymnasium.__name__ == "CartPoleEnv"


def test_a_registered_id_goes_before_a_name_of_the_module(package):
    package("twice", REGISTERS.format(id="Both") + "def Both():\n    raise AssertionError\n")
    assert find_environment(EnvRequest(id="twice:Both")).id == "Both"


def test_the_namespace_of_an_id_is_imported_if_it_is_installed(package):
    package("market", REGISTERS.format(id="market/Stall-v0"))
    assert find_environment(EnvRequest(id="market/Stall-v0")).id == "market/Stall-v0"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("CartPol-v1", "CartPole-v1"),
        ("cartpole-v1", "CartPole-v1"),
        ("CartPole-v7", "CartPole-v1"),
        ("FakeLimted-v0", "FakeLimited-v0"),
        ("env_fakes:FakeLimted-v0", "FakeLimited-v0"),
        ("Lunarlander-v3", "LunarLander-v3"),
    ],
)
def test_an_unknown_id_names_the_nearest_known_ones(wrong, right):
    error = refused(wrong)
    assert f"`{wrong.rpartition(':')[2]}`" in error.cause
    assert error.where == "env.id"
    assert right in error.mend


@pytest.mark.parametrize(
    "strange", ["Zzyzx-v9", "", ":", "/", "-v0", "a:b:c", "\n", "漢字-v1", "../x.py:Env", "env_fakes:"]
)
def test_an_id_that_resembles_nothing_is_refused_with_words(strange):
    refused(strange)


def test_a_misspelt_class_names_the_nearest_of_its_module():
    error = refused("env_fakes:Taep")
    assert "env_fakes" in str(error)
    assert "Tape" in error.mend


@pytest.mark.parametrize(
    ("id", "package_name"),
    [
        ("ALE/Pong-v5", "ale-py"),
        ("MiniGrid-Empty-5x5-v0", "minigrid"),
        ("BabyAI-GoToObj-v0", "minigrid"),
        ("gym_aloha/AlohaInsertion-v0", "gym-aloha"),
        ("gym_xarm/XarmLift-v0", "gym-xarm"),
        ("highway-fast-v0", "highway-env"),
        ("FetchReach-v4", "gymnasium-robotics"),
        ("AdroitHandDoor-v1", "gymnasium-robotics"),
    ],
)
def test_an_id_of_a_known_package_that_is_not_installed_names_the_package(id, package_name, monkeypatch):
    for module in ("ale_py", "minigrid", "gym_aloha", "gym_xarm", "highway_env", "gymnasium_robotics"):
        monkeypatch.setitem(sys.modules, module, None)
    error = refused(id)
    assert id in error.cause
    assert "is not installed" in error.cause
    assert error.mend == f"pip install {package_name}"


def test_a_known_package_that_is_installed_is_not_called_missing_when_its_id_is_misspelt(package):
    package("gym_aloha", REGISTERS.format(id="gym_aloha/AlohaInsertion-v0"))
    error = refused("gym_aloha/AlohaInsrtion-v0")
    assert "not installed" not in error.cause
    assert "gym_aloha/AlohaInsertion-v0" in error.mend


@pytest.mark.parametrize("id", ["missing_shop:Shop-v0", "missing_shop.deeper:Shop-v0"])
def test_a_module_that_is_not_there_is_named(id):
    error = refused(id)
    assert "`missing_shop` is not installed" in error.cause
    assert id in error.where
    assert "PYTHONPATH" in error.mend


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    ("path", "mend"),
    [
        ("reach_of_a_test.py", "write reach_of_a_test:Reach, the module without .py"),
        ("./reach_of_a_test.py", "write reach_of_a_test:Reach, the module without .py"),
        ("envs/reach.py", "write envs.reach:Reach, the module without .py"),
        ("../reach.py", "write reach:Reach, the module without .py, and put its folder on PYTHONPATH"),
        ("/some/where/reach.py", "write reach:Reach, the module without .py, and put its folder on PYTHONPATH"),
        ("my-envs/reach.py", "write reach:Reach, the module without .py, and put its folder on PYTHONPATH"),
    ],
)
def test_a_file_where_a_module_is_meant_is_told_how_it_is_named(path, mend, is_there, package):
    """Policies are named by their file."""
    if is_there:
        package("reach_of_a_test", "class Reach: pass\n")
    error = refused(f"{path}:Reach")
    assert (error.cause, error.where) == (f"`{path}` is a file, where a module is meant", f"env: {path}:Reach")
    assert error.mend == mend
    error = refused("CartPole-v1", path)
    assert (error.where, error.mend) == (f"env.imports: {path}", mend.replace(":Reach", ""))


def test_a_file_without_a_name_is_told_that_one_is_needed():
    error = refused("reach_of_a_test.py")
    assert error.cause == "`reach_of_a_test.py` is a file, and an environment is meant"
    assert error.mend == "name the class, or function, in it that makes the environment: reach_of_a_test:NAME"


def test_what_a_file_lacks_is_named_although_it_is_no_module(package):
    package("reach_of_a_test", "import no_such_dependency\n")
    assert "`no_such_dependency` is not installed" in refused("reach_of_a_test.py:Reach").cause


def test_an_import_that_is_not_there_is_named():
    error = refused("CartPole-v1", "env_fakes", "missing_shop")
    assert "`missing_shop` is not installed" in error.cause
    assert error.where == "env.imports: missing_shop"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_dependency", "`no_such_dependency` is not installed"),
        ("from env_fakes import Nothing", "cannot import name 'Nothing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:\n    pass", "SyntaxError"),
        ("class Wordless(Exception):\n    def __str__(self): raise ValueError\nraise Wordless", "Wordless"),
        ("raise SystemExit('usage: shop.py --size N')", "usage: shop.py --size N"),
    ],
)
@pytest.mark.parametrize("form", ["broken_shop:Shop-v0", "broken_shop/Shop-v0", "imports"])
def test_a_module_that_fails_to_import_says_why(package, text, words, form):
    package("broken_shop", text + "\n")
    error = refused("CartPole-v1", "broken_shop") if form == "imports" else refused(form)
    assert words in error.cause
    assert "broken_shop" in str(error)


@pytest.mark.parametrize("module", [".relative", "", "a..b", "with space"])
def test_an_import_that_is_no_module_name_is_refused_with_words(module):
    refused("CartPole-v1", module)
