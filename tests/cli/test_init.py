"""`rlmesh init`: what it writes runs as it stands, for every kind of space, and nothing is written over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import yaml
from init_toys import SPACES
from running import Played, play

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli import explanation_command, init_command
from rlmesh_cli.explanation_command import ExplainRequest
from rlmesh_cli.init_command import InitRequest
from rlmesh_cli.reports.writing import write_new_files
from rlmesh_cli.scaffolds.guesses import Observation
from rlmesh_envs.spaces import view_of


def init(folder: Path, env: str, **flags: Any) -> int:
    return int(init_command.run(InitRequest(env=env, folder=folder, **flags)))


def runs(folder: Path, **flags: Any) -> Played:
    """Play what was written, and see that it can be explained."""
    route = folder / "route.yaml"
    assert explanation_command.run(ExplainRequest(route=route)) == 0
    return play(folder, None, route=route, **flags)


@pytest.mark.parametrize("tags", [False, True], ids=["plain", "tags"])
@pytest.mark.parametrize("kind", SPACES)
def test_what_is_written_runs_for_every_kind_of_space(tmp_path, kind, tags):
    """The environment refuses every action that is no member of its space."""
    assert init(tmp_path, "init_toys:Kinds", env_args=(f"kind={kind}",), wants_tags=tags) == 0
    played = runs(tmp_path, episodes=3)
    assert played.code == 0
    assert played.column("length") == [5, 5, 5]
    assert yaml.safe_load((tmp_path / "route.yaml").read_text())["env"]["kwargs"] == {"kind": kind}


#: Actions with parts, and observations that hold nothing a tag could speak of.
UNTAGGED = {"dict", "tuple", "one_tuple", "odd_keys", "graph", "graph_in_tuple", "nothing"}


@pytest.mark.parametrize("kind", SPACES)
def test_tags_are_proposed_wherever_there_is_one_flat_action_and_something_to_see(tmp_path, kind):
    init(tmp_path, "init_toys:Kinds", env_args=(f"kind={kind}",), wants_tags=True)
    text = (tmp_path / "route.yaml").read_text(encoding="utf-8")
    tags = yaml.safe_load(text).get("env_tags")
    assert (tags is None) == (kind in UNTAGGED), text
    if tags is None:
        assert "# No env_tags could be proposed: " in text
    else:
        leaves = text.count("type: image") + text.count("type: state") + text.count("type: text")
        assert text.count("# guess: ") == leaves + len(tags["action"]["components"])
    assert ("spec = {" in (tmp_path / "policy.py").read_text(encoding="utf-8")) == (tags is not None)


def tags_of(folder: Path, kind: str) -> Any:
    init(folder, "init_toys:Kinds", env_args=(f"kind={kind}",), wants_tags=True)
    return yaml.safe_load((folder / "route.yaml").read_text(encoding="utf-8"))["env_tags"]


def test_names_and_shapes_of_a_robot_are_recognised(tmp_path):
    tags = tags_of(tmp_path, "robot")
    assert {name: leaf["role"] for name, leaf in tags["observation"]["robot"].items()} == {
        "eef_pos": "proprio/eef_pos",
        "eef_quat": "proprio/eef_rot",
        "gripper_qpos": "proprio/gripper",
        "joint_pos": "proprio/joint_pos",
        "joint_vel": "proprio/joint_vel",
    }
    assert tags["observation"]["task"] == {"type": "text", "role": "text/instruction"}
    assert [(part["role"], part["dim"]) for part in tags["action"]["components"]] == [
        ("action/delta_eef_pos", 3),
        ("action/delta_eef_rot", 3),
        ("action/gripper", 1),
    ]


def test_an_action_as_wide_and_bounded_as_a_position_is_a_target(tmp_path):
    tags = tags_of(tmp_path, "target")
    assert tags["observation"] == {"agent_pos": {"type": "state", "role": "x/agent"}}
    assert tags["action"] == {"components": [{"role": "x/target", "dim": 2}]}


@pytest.mark.parametrize(("kind", "layout"), [("image", "hwc"), ("image_chw", "chw"), ("grey", "hwc")])
def test_pictures_are_cameras_in_their_layout(tmp_path, kind, layout):
    assert tags_of(tmp_path, kind)["observation"] == {"type": "image", "role": "image/primary", "layout": layout}


def test_each_camera_has_a_role_of_its_own(tmp_path):
    roles = {name: leaf["role"] for name, leaf in tags_of(tmp_path, "cameras")["observation"].items()}
    assert roles == {
        "front": "image/primary",
        "side": "image/secondary",
        "top": "x/top",
        "wrist": "image/wrist",
    }


def test_a_small_grid_of_cells_is_no_camera(tmp_path):
    assert tags_of(tmp_path, "grid")["observation"]["type"] == "state"


def test_the_layout_of_observations_stands_in_the_policy_with_the_values_of_seed_0(tmp_path):
    init(tmp_path, "CartPole-v1")
    text = (tmp_path / "policy.py").read_text()
    first = np.array(gym.make("CartPole-v1").reset(seed=0)[0])
    assert (
        f"float32 (4,)  from [-4.8, -inf, -0.418879, -inf] to [4.8, inf, 0.418879, inf], here [{first[0]:.6g}, "
        in (" ".join(text.replace("#       ", "").splitlines()))
    )
    assert "a whole number (int64)  0 to 1" in text


def test_success_is_proposed_where_it_is_reported(tmp_path):
    init(tmp_path, "init_toys:Kinds", env_args=("kind=discrete", "reports=success"))
    text = (tmp_path / "route.yaml").read_text()
    assert yaml.safe_load(text)["success"] == {"key": "success", "when": "final"}
    assert '#   height, "odd: # key"\n' in text
    assert runs(tmp_path, episodes=2).summary["success"]["rate"] == 1.0


def test_where_no_success_is_reported_the_route_says_so_and_how_to_say_it(tmp_path):
    init(tmp_path, "init_toys:Kinds", env_args=("kind=discrete",))
    text = (tmp_path / "route.yaml").read_text()
    assert "success" not in yaml.safe_load(text)
    assert "# Neither `is_success` nor `success` was reported in 5 random steps." in text
    # What stands there as a comment can be taken as it is; five steps pay 0.5 each.
    (tmp_path / "route.yaml").write_text(text.replace("#   success: {return", "success: {return"))
    assert runs(tmp_path, episodes=2).record["route"]["success"]["return_at_least"] == 2.5


def test_an_environment_without_a_limit_gets_one(tmp_path):
    init(tmp_path, "toys:Toy-v0")
    assert yaml.safe_load((tmp_path / "route.yaml").read_text())["env"]["max_episode_steps"] == 1000
    assert runs(tmp_path, episodes=2).column("length") == [1000, 1000]


def test_a_vector_environment_keeps_its_own_lanes(tmp_path):
    assert init(tmp_path, "env_vectors:TapeVec") == 0
    assert runs(tmp_path, episodes=2).code == 0


def test_tags_of_the_environment_itself_are_not_guessed_again(tmp_path):
    assert init(tmp_path, "init_toys:Tagged", wants_tags=True) == 0
    text = (tmp_path / "route.yaml").read_text()
    assert "env_tags" not in yaml.safe_load(text)
    assert "# env_tags: the environment brings its own" in text
    assert '"components": ["proprio/joint_pos"]' in (tmp_path / "policy.py").read_text()
    assert runs(tmp_path, episodes=2).code == 0


@pytest.mark.parametrize(
    ("wants_tags", "said"),
    [
        (False, "its own cannot be read (env tags needs `action`): mend them, or name env_tags in the route"),
        (True, "none could be proposed: no tags that fit were found: env tags needs `action`"),
    ],
)
def test_tags_of_the_environment_that_cannot_be_read_are_told(tmp_path, capsys, monkeypatch, wants_tags, said):
    monkeypatch.setenv("COLUMNS", "140")
    assert init(tmp_path, "init_toys:BadlyTagged", wants_tags=wants_tags) == 0
    assert said in capsys.readouterr().out


def test_found_things_and_the_next_three_commands_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    init(Path("a b"), "init_toys:Kinds", env_args=("kind=discrete", "reports=is_success"))
    said = capsys.readouterr().out
    for command in ("eval", "probe", "explain"):
        assert f"rlmesh {command} --route 'a b/route.yaml'" in said
    assert "reported as is_success" in said
    assert "rgb_array" in said
    assert "5, paying 0.5 a step; the episode was terminated" in said


def refusal(folder: Path, env: str, capsys: pytest.CaptureFixture[str], **flags: Any) -> str:
    """Return the only message about what cannot be had; nothing is left."""
    before = sorted(folder.iterdir()) if folder.exists() else None
    assert init(folder, env, **flags) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert [said.err.count(part) for part in ("rlmesh: ", "\n  at    ", "\n  mend  ")] == [1, 1, 1], said.err
    assert (sorted(folder.iterdir()) if folder.exists() else None) == before
    return said.err


@pytest.mark.parametrize("there", [["policy.py"], ["route.yaml"], ["policy.py", "route.yaml"]])
def test_nothing_is_written_over(tmp_path, capsys, there):
    for name in there:
        (tmp_path / name).write_text("mine")
    said = refusal(tmp_path, "CartPole-v1", capsys)
    assert f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} there already" in said
    assert "--policy NAME.py and --route NAME.yaml" in said
    assert [(tmp_path / name).read_text() for name in there] == ["mine"] * len(there)


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path, capsys):
    (tmp_path / "policy.py").symlink_to(tmp_path / "elsewhere.py")
    refusal(tmp_path, "CartPole-v1", capsys)
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    ("env", "flags", "words"),
    [
        ("CartPol-v1", {}, "did you mean CartPole-v1"),
        ("CartPole-v1", {"env_args": ("bogus=1",)}, "unexpected keyword argument 'bogus'"),
        ("init_toys:Acting", {}, "the actions of `init_toys:Acting` hold Text("),
        ("init_toys:Stuck", {}, "cannot be reset with seed 0: RuntimeError: the arm is stuck"),
        ("CartPole-v1", {"policy": "a/policy.py"}, "`a/policy.py` is not the name of a .py file"),
        ("CartPole-v1", {"policy": 'a"""b.py'}, """`a\"\"\"b.py` is not the name of a .py file"""),
        ("CartPole-v1", {"route": "a\nb.yaml"}, "is not the name of a .yaml file"),
        ("CartPole-v1", {"policy": ".py"}, "`.py` is not the name of a .py file"),
        ("CartPole-v1", {"policy": "policy.txt"}, "`policy.txt` is not the name of a .py file"),
        ("CartPole-v1", {"route": "policy.py"}, "`policy.py` is not the name of a .yaml file"),
        ("CartPole-v1", {"env_args": ("bogus",)}, "`bogus` is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_had_is_one_message(tmp_path, capsys, env, flags, words):
    assert words in refusal(tmp_path, env, capsys, **flags)


def test_a_folder_is_made_if_only_itself_is_missing(tmp_path, capsys):
    assert init(tmp_path / "new", "CartPole-v1") == 0
    assert runs(tmp_path / "new", episodes=1).code == 0
    capsys.readouterr()
    assert "cannot be written: No such file" in refusal(tmp_path / "no" / "such", "CartPole-v1", capsys)


def test_an_environment_that_breaks_is_told_of_and_scaffolded_all_the_same(tmp_path, capsys):
    assert init(tmp_path, "init_toys:Breaks") == 0
    assert "then a step failed: RuntimeError: [red]gear[/red] is broken" in " ".join(
        capsys.readouterr().out.split()
    )
    assert runs(tmp_path, episodes=1).code == 4


def test_both_files_are_written_or_none(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="cannot be written"):
        write_new_files({tmp_path / "a": b"1", tmp_path / "file" / "b": b"2"}, "mend")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_an_id_of_a_namespace_names_the_package_to_import(tmp_path, monkeypatch):
    (tmp_path / "own_package.py").write_text(
        "import gymnasium\ngymnasium.register('own_package/Own-v0', 'toys:Coins', disable_env_checker=True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert init(tmp_path / "new", "own_package/Own-v0") == 0
    route = yaml.safe_load((tmp_path / "new" / "route.yaml").read_text())
    assert route["env"]["imports"] == ["own_package"]
    assert runs(tmp_path / "new", episodes=1).column("return") == [111.0]


@pytest.mark.parametrize("leads_to", ["itself", "nowhere"])
def test_a_folder_that_is_a_link_to_nothing_is_refused(tmp_path, capsys, leads_to):
    (tmp_path / "itself").symlink_to(tmp_path / leads_to)
    assert "cannot be written" in refusal(tmp_path / "itself", "CartPole-v1", capsys)


def test_other_names_are_taken(tmp_path):
    assert init(tmp_path, "CartPole-v1", policy="my policy.py", route="my route.yml") == 0
    assert "rlmesh eval --route 'my route.yml'" in (tmp_path / "my policy.py").read_text()
    assert yaml.safe_load((tmp_path / "my route.yml").read_text())["policy"]["source"] == "my policy.py"
    assert play(tmp_path, None, route=tmp_path / "my route.yml", episodes=1).code == 0


def test_an_id_without_its_version_is_written_with_it(tmp_path):
    init(tmp_path, "CartPole")
    assert yaml.safe_load((tmp_path / "route.yaml").read_text())["env"]["id"] == "CartPole-v1"


def test_the_environment_may_lie_beside_the_policy(tmp_path):
    (tmp_path / "own_module_beside.py").write_text("from toys import Coins\n")
    assert init(tmp_path, "own_module_beside:Coins") == 0
    assert runs(tmp_path, episodes=1).column("return") == [111.0]


@pytest.mark.parametrize(("what", "modes"), [("list", "none"), ("text", "human"), ("number", "none")])
def test_metadata_that_gymnasium_does_not_foresee_are_no_obstacle(tmp_path, capsys, what, modes):
    assert init(tmp_path, "init_toys:OddMetadata", env_args=(f"what={what}",)) == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if "render modes" in line)
    assert shown.split() == ["render", "modes", modes]
    assert runs(tmp_path, episodes=2).code == 0


def test_an_environment_without_spaces_is_a_mistake_of_its_author(tmp_path, capsys):
    assert init(tmp_path, "init_toys:Bare") == 2
    told = capsys.readouterr().err
    assert "the environment has no observation_space" in told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_commands_find_an_environment_that_lies_where_init_was_run(tmp_path):
    """By the console script, which puts no folder of the user's on the path."""
    script = Path(sys.executable).parent / "rlmesh"
    if not script.exists():
        pytest.skip(f"needs a console script {script}")
    (tmp_path / "own_module_here.py").write_text("from toys import Coins\n")
    root = Path(__file__).resolve().parents[2]
    places = os.pathsep.join(map(str, (root, root / "adapters", root / "envs", root / "tests")))

    def shell(command: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        command = command.replace("PYTHONPATH=", f"PYTHONPATH={places}:")
        path = os.pathsep.join([str(script.parent), os.environ.get("PATH", "")])
        env = {**os.environ, "PYTHONPATH": places, "PATH": path}
        return subprocess.run(
            command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False
        )

    said = shell("rlmesh init --env own_module_here:Coins --dir new").stdout
    command = next(line for line in said.splitlines() if " eval --route" in line).split("  ")[0].strip()
    assert command == "PYTHONPATH=. rlmesh eval --route new/route.yaml"
    assert shell(f"{command} --quiet").returncode == 0
    note = next(
        line for line in (tmp_path / "new" / "route.yaml").read_text().splitlines() if "PYTHONPATH" in line
    )
    assert note.startswith("# PYTHONPATH=.. ")
    assert shell("PYTHONPATH=.. rlmesh eval --route route.yaml --quiet", tmp_path / "new").returncode == 0
    # What is found without is not spoken of.
    assert "PYTHONPATH" not in shell("rlmesh init --env own_module_here:Coins").stdout
    assert "PYTHONPATH" not in shell("rlmesh init --env toys:Coins --dir other").stdout
    assert "PYTHONPATH" not in (tmp_path / "other" / "route.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ee_pos", "proprio/eef_pos"),
        ("robot0_ee_pos", "proprio/eef_pos"),
        ("eef_xyz", "proprio/eef_pos"),
        ("knee_pos", "x/knee"),
        ("wheel_three_pos", "x/wheel_three"),
    ],
)
def test_an_end_effector_is_no_part_of_a_word(name, role):
    guessed = Observation(view_of(gym.spaces.Dict({name: gym.spaces.Box(-1, 1, (3,))})))
    assert guessed.tree[name].tag["role"] == role
