"""JUnit: counts are right, and the file is green where the exit code is 0 and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_toys import ZERO, errored, evaluation, play, policy_file, row

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.evaluation_command import exit_code
from rlmesh_cli.exits import Exit
from rlmesh_cli.gates import GateVerdict, judge, parse_gate
from rlmesh_cli.reports.junit import junit_xml
from rlmesh_cli.reports.report import Report
from rlmesh_cli.verifying import Verification

CAUTION = Advisory(code="unseeded", severity="caution", message="episodes are not seeded | <b>")
GOOD = [row(index, success=True) for index in range(4)]
BAD = [*GOOD, errored(4, "RuntimeError: gear"), errored(5, "OSError: lens")]


def report(run: Evaluation, *, strict: bool = False, code: Exit | None = None, **more) -> Report:
    code = exit_code(run, strict=strict) if code is None else code
    return Report(code=code, evaluation=run, strict=strict, command="rlmesh eval zero", **more)


def judged(rows, *gates: str, **changes) -> Evaluation:
    run = evaluation(rows, **changes)
    run.verdicts = [judge(parse_gate(text), run.summary) for text in gates]
    return run


#: Element -> attributes that it has, and that it may have; what the schemas of Jenkins and of others agree on.
SHAPE = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": ({"name", "time", "tests", "failures", "errors", "skipped"}, {"timestamp", "hostname"}),
    "properties": (set(), set()),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, set()),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message"}, set()),
}


def read(data: bytes) -> ElementTree.Element:
    """Return the suite of a document after having counted its cases by hand."""
    root = ElementTree.fromstring(data)
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.get("tests", "")) == len(cases) >= 1
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if element is suite or tag != "skipped":
                assert int(element.get(name, "")) == sum(case.find(tag) is not None for case in cases)
        assert float(element.get("time", "")) >= 0
    assert [part.tag for part in suite] == ["properties"] + ["testcase"] * len(cases)
    for element in root.iter():
        required, optional = SHAPE[element.tag]
        assert required <= set(element.keys()) <= required | optional, element.tag
    for case in cases:
        assert case.get("name")
        assert case.get("classname")
        assert float(case.get("time", "")) >= 0
        assert len(case) <= 1
    return suite


def outcomes(suite: ElementTree.Element) -> dict[str, tuple[str, str] | None]:
    """Return name -> (tag, message) of each case; None has passed."""
    cases = suite.findall("testcase")
    found = {
        case.get("name", ""): (case[0].tag, case[0].get("message", "")) if len(case) else None for case in cases
    }
    assert len(found) == len(cases)
    return found


def test_gate_is_a_case_and_a_missed_one_a_failure_with_value_and_bar():
    rows = [row(index, success=index < 41) for index in range(50)]
    suite = read(junit_xml(report(judged(rows, "success_rate >= 0.9", "errors <= 0", "speed > 1"))))
    assert outcomes(suite) == {
        "gate success_rate >= 0.9": ("failure", "success_rate is 0.82, bar >= 0.9"),
        "gate errors <= 0": None,
        "gate speed > 1": ("failure", "speed was not measured, bar > 1"),
    }


@pytest.mark.parametrize(
    ("held", "value", "point", "text"),
    [
        ("lower", 0.71, 0.82, "the lower end of success_rate is 0.71, bar >= 0.8"),
        ("lower", None, 0.82, "success_rate is 0.82, of which there is no interval, bar >= 0.8"),
        ("value", None, None, "success_rate was not measured, bar >= 0.8"),
    ],
)
def test_bar_says_which_number_was_held_against_it(held, value, point, text):
    gate = {"gate": "success_rate >= 0.8", "metric": "success_rate", "op": ">=", "passed": False}
    verdict = GateVerdict(held=held, value=value, point=point, **gate)
    suite = read(junit_xml(report(evaluation(GOOD, verdicts=[verdict]))))
    assert outcomes(suite) == {"gate success_rate >= 0.8": ("failure", text)}


def test_value_is_not_rounded_up_to_its_bar():
    verdict = GateVerdict(gate="mean_return >= 0.9", metric="mean_return", op=">=", value=0.8999, passed=False)
    suite = read(junit_xml(report(evaluation(GOOD, verdicts=[verdict]))))
    assert outcomes(suite) == {"gate mean_return >= 0.9": ("failure", "mean_return is 0.8999, bar >= 0.9")}


def test_errored_episode_is_an_error_with_phase_step_message_and_time():
    suite = read(junit_xml(report(judged(BAD, "success_rate >= 0.5"))))
    assert outcomes(suite) == {
        "gate success_rate >= 0.5": None,
        "episode 4 (seed 104)": ("error", "step at step 1: RuntimeError: gear"),
        "episode 5 (seed 105)": ("error", "step at step 1: OSError: lens"),
    }
    assert [case.get("time") for case in suite.iter("testcase")] == ["0.000", "0.700", "0.700"]
    assert [error.get("type") for error in suite.iter("error")] == ["step", "step"]


def test_errored_episodes_that_a_gate_allows_do_not_turn_a_good_run_red():
    run = judged(BAD, "errors <= 2")
    assert exit_code(run, strict=False) == Exit.DONE
    suite = read(junit_xml(report(run)))
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "2")
    assert outcomes(suite)["episode 4 (seed 104)"] == (
        "skipped",
        "errored, which a gate allows: step at step 1: RuntimeError: gear",
    )


def test_run_without_gates_and_errors_is_one_case():
    suite = read(junit_xml(report(evaluation(GOOD))))
    assert outcomes(suite) == {"finished": None}
    assert suite.find("testcase").get("time") == "2.000"


@pytest.mark.parametrize(("advisories", "failed"), [((), False), ((CAUTION,), True)])
def test_strict_is_a_case_where_it_was_asked_for(advisories, failed):
    run = evaluation(GOOD, advisories=advisories)
    assert "--strict" not in outcomes(read(junit_xml(report(run))))
    suite = read(junit_xml(report(run, strict=True)))
    expected = ("failure", "1 caution, bar 0") if failed else None
    assert outcomes(suite) == {"--strict": expected}
    if failed:
        assert suite.find("testcase/failure").text == f"1 caution, bar 0\n{CAUTION.message}"


@pytest.mark.parametrize(("verdict", "tag"), [("differs", "failure"), ("invariant", None)])
def test_lanes_that_were_verified_are_a_case(verdict, tag):
    run = evaluation(GOOD, verification=Verification(verdict=verdict, episodes=3))
    outcome = outcomes(read(junit_xml(report(run))))["--verify-lanes"]
    assert (outcome and outcome[0]) == tag


def test_interrupted_run_is_never_green_and_its_gates_are_not_decided():
    run = judged(GOOD, "success_rate >= 0.5", "mean_return > 100", status="interrupted")
    run.summary = type(run.summary)(**{**_fields(run.summary), "planned": 50})
    suite = read(junit_xml(report(run)))
    assert outcomes(suite) == {
        "gate success_rate >= 0.5": ("skipped", "success_rate is 1, bar >= 0.5, over 4 of 50 episodes"),
        "gate mean_return > 100": ("skipped", "mean_return is 2, bar > 100, over 4 of 50 episodes"),
        "finished": ("error", "interrupted after 4 of 50 episodes"),
    }


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


RUNS = [
    (judged(GOOD), False),
    (judged(GOOD, "success_rate >= 1"), False),
    (judged(GOOD, "mean_return > 100"), False),
    (judged(GOOD, advisories=(CAUTION,)), False),
    (judged(GOOD, advisories=(CAUTION,)), True),
    (judged(BAD), False),
    (judged(BAD, "errors <= 2"), True),
    (judged(BAD, "errors == 0"), False),
    (judged(GOOD, status="interrupted"), False),
    (judged(GOOD, verification=Verification(verdict="differs", episodes=3)), False),
]


@pytest.mark.parametrize(("run", "strict"), RUNS)
def test_file_is_green_exactly_where_the_exit_code_is_0(run, strict):
    suite = read(junit_xml(report(run, strict=strict)))
    is_green = suite.get("failures") == suite.get("errors") == "0"
    assert is_green == (exit_code(run, strict=strict) == Exit.DONE)


def test_code_that_no_case_explains_is_an_error_all_the_same():
    suite = read(junit_xml(report(judged(GOOD, "success_rate >= 1"), code=Exit.INCONCLUSIVE)))
    assert outcomes(suite)["finished"] == ("error", "the run finished and decides nothing")


UGLY = '[red]gear[/red] <b>&amp; "q" \']]> \x00\x1b[31m \ud800 \ufffe 日本 |`\r\nsecond line'


def test_text_of_users_survives_and_what_xml_cannot_write_is_escaped():
    record = {"env": {"id": UGLY}, "policy": {"label": UGLY}, "versions": {UGLY: UGLY}, "seeds": [3, 1, 4]}
    suite = read(junit_xml(report(evaluation([errored(0, UGLY, seed=None)]), record=record)))
    seen = UGLY.replace("\x00", "\\x00").replace("\x1b", "\\x1b").replace("\ud800", "\\ud800")
    seen = seen.replace("\ufffe", "\\ufffe").replace("\r", "\\r")
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (properties["env"], properties["policy"], properties["seeds"]) == (seen, seen, "3,1,4")
    assert properties[f"version.{seen}"] == seen
    error = suite.find("testcase/error")
    assert error.text == f"step at step 1: {seen}"
    assert error.get("message") == error.text.partition("\n")[0]


def test_long_message_is_cut():
    suite = read(junit_xml(report(evaluation([errored(0, "x" * 100_000)]))))
    assert len(suite.find("testcase/error").text) == 4000


def test_played_run_says_what_it_was(tmp_path, capsys):
    path = tmp_path / "junit.xml"
    code, folder = play(
        tmp_path, "zero", env="cli_toys:Broken", episodes=3, seeds="5..7", gates=("errors == 0",), junit=path
    )
    assert code == 1
    suite = read(path.read_bytes())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "3")
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties["env"] == "Broken"
    assert properties["policy"] == "zero"
    assert properties["seeds"] == "5..7"
    assert properties["run"] == str(folder)
    assert properties["exit_code"] == "1"
    assert properties["version.python"] == sys.version.split()[0]
    assert {case.get("classname") for case in suite.iter("testcase")} == {"rlmesh.zero.Broken"}
    assert "[red]gear[/red] is broken" in suite.find("testcase/error").get("message", "")
    assert "cli_toys.py" in suite.find("testcase/error").text
    assert suite.get("timestamp", "").count("T") == 1


def test_run_that_is_broken_off_by_its_policy_is_red(tmp_path, capsys):
    text = ZERO.replace(
        "return 0", "self.n = getattr(self, 'n', 0) + 1\n        if self.n > 7:\n            raise "
    )
    text = text.replace("raise ", "raise KeyboardInterrupt\n        return 0")
    path = tmp_path / "junit.xml"
    code, _ = play(tmp_path, policy_file(tmp_path, text), episodes=9, junit=path, gates=("errors == 0",))
    assert code == 130
    found = outcomes(read(path.read_bytes()))
    assert found["finished"] == ("error", "interrupted after 2 of 9 episodes")
    assert found["gate errors == 0"][0] == "skipped"


def test_mistake_takes_the_place_of_what_an_earlier_run_wrote(tmp_path, capsys):
    path = tmp_path / "junit.xml"
    assert play(tmp_path, "zero", episodes=1, junit=path)[0] == 0
    assert outcomes(read(path.read_bytes())) == {"finished": None}
    code, made = play(tmp_path, "zero", env="cli_toys:Unbuildable", junit=path, out=tmp_path / "none")
    assert (code, made) == (2, None)
    (outcome,) = outcomes(read(path.read_bytes())).values()
    assert outcome is not None
    assert outcome[0] == "error"
    assert "no display" in outcome[1]


def test_names_hold_no_dot_that_readers_would_take_for_a_package():
    record = {"env": {"id": "pkg.envs:Reach-v1"}, "policy": {"label": "policy.py"}}
    suite = read(junit_xml(report(evaluation(GOOD, folder=Path("/nowhere")), record=record)))
    assert suite.find("testcase").get("classname") == "rlmesh.policy_py.pkg_envs:Reach-v1"
