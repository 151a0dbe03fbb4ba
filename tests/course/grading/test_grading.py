"""What a check says of stubs, right parts, wrong use and unclear sources."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from course.cli import main
from course.curriculum import stubs
from course.curriculum.folders import folder
from course.curriculum.manifest import EXERCISES
from course.curriculum.messages import title
from course.curriculum.seams import child_job
from course.grading.judge import code_hash, judge
from course.grading.loading import check_of
from course.grading.report import message
from course.grading.rules import Finding, RuleStatus, Status
from tests.support.exercise_modules import exercise_module

pytestmark = pytest.mark.usefixtures("own_state")

RIGHT = stubs.solution("3.1")


def sluice(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "course.cli", *words], capture_output=True, text=True, **options)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_stub_is_not_started(exercise):
    report = judge(exercise, stubs.stub(exercise))
    assert report.status is Status.NOT_STARTED
    assert all(rule.status is RuleStatus.NOT_TRIED for rule in report.rules)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_nothing_at_all_is_not_started(exercise):
    assert judge(exercise, None).status is judge(exercise, "  \n").status is Status.NOT_STARTED


@pytest.mark.sampled(one_in=7)
@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("seed", [1, 4711])
def test_the_reference_part_passes_every_rule(exercise, seed):
    report = judge(exercise, stubs.solution(exercise), seed)
    assert report.passed, str(report)
    assert [rule.id for rule in report.rules] == ["S", *(rule.id for rule in check_of(exercise).rules)]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_rule_has_a_title_and_a_case(exercise):
    check = check_of(exercise)
    with_cases = {case.rule for case in check.cases(1)}
    for rule in check.rules:
        assert title(exercise, rule.id)
        assert rule.id in with_cases


@pytest.mark.parametrize("exercise", [each for each in EXERCISES if (folder(each) / "harness.py").is_file()])
def test_what_the_harness_of_a_rule_imports_is_loaded_before_its_cases(exercise):
    """Else each case has it in its time: of a rule about the cluster that was most of it."""
    named = child_job(exercise)["loads"]
    assert named
    there = f"import sys\nassert not {named!r} - sys.modules.keys()\n".replace("[", "{").replace("]", "}")
    assert judge(exercise, stubs.solution(exercise) + there).passed
    assert not judge(exercise, stubs.solution(exercise) + there.replace(named[0], "refimpl.rivals.atm")).passed


def test_numpy_is_loaded_for_code_that_names_it_and_for_no_other():
    looks = "import sys\nis_there = any(name.startswith('num' + 'py.') for name in sys.modules)\n"
    assert judge("3.1", f"{looks}assert not is_there\n{RIGHT}").passed
    assert judge("3.1", f"{looks}assert is_there  # numpy\n{RIGHT}").passed
    uses = "np = __import__('num' + 'py')\nassert np.random.default_rng(1).random(3).sum() > 0\n"
    assert judge("3.1", uses + RIGHT).passed


def test_a_part_half_written_names_the_method_that_is_left():
    source = RIGHT.replace("self._position = 0\n\n    def prune", 'raise NotImplementedError("3.1")\n\n    def prune')
    report = judge("3.1", source)
    assert report.status is Status.FAILED
    assert "`reset` still raises NotImplementedError" in report.failed_rule.message


def test_a_protocol_s_empty_method_does_not_count():
    source = "from refimpl.records import RecordSerializer\nclass Mine(RecordSerializer):\n    def reset(self): ...\n"
    report = judge("3.1", source)
    assert report.failed_rule.finding.code == "missing_method"
    assert "serialize_record, copy_to_buffer_builder, prune" in report.failed_rule.message


@pytest.mark.parametrize(
    ("source", "code", "status"),
    [
        ("class X:\n  def f(self) return 1", "syntax", "error"),
        ("x = undefined_thing", "name_unknown", "error"),
        ("import no_such_module", "no_module", "error"),
        ("1 / 0", "load_raised", "error"),
        ("x = 1", "absent_class", "error"),
        ("raise SystemExit", "left", "error"),
        (RIGHT + RIGHT.replace("class Spanning", "class Other"), "ambiguous_class", "error"),
        ('@L.exercise("0.1")\ndef f(x):\n    return x\n', "wrong_exercise", "error"),
        ('@L.exercise("3.1")\ndef f(x):\n    return x\n', "not_a_class", "error"),
    ],
)
def test_a_source_that_cannot_be_graded_has_its_own_answer(source, code, status):
    report = judge("3.1", source)
    assert (report.failed_rule.id, report.failed_rule.finding.code, report.status.value) == ("S", code, status)


def test_the_learner_s_line_is_marked():
    report = judge("3.1", "a = 1\nb = a / 0\n")
    assert "2 > b = a / 0" in report.failed_rule.message


@pytest.mark.parametrize(
    ("ran", "shown"),
    [
        ("a; b", ["a; b"]),
        ("a" * 70 + "; " + "b" * 70, ["a" * 70 + ";", "b" * 70]),
        ("a" * 70 + "; " + "b" * 70 + "; " + "c" * 70, ["a" * 70 + ";", "b" * 70 + "; …"]),
        ("a" * 70 + "; " + "b" * 50 + "; " + "c" * 27 + " " + "d" * 9, ["a" * 70 + ";", "b" * 50 + "; …"]),
        ("a" * 70 + "; " + "b" * 77 + "; …", ["a" * 70 + ";", "b" * 77 + "; …"]),
    ],
)
def test_what_was_run_has_two_lines_and_says_where_it_goes_on(ran, shown):
    told = message("3.1", Finding("S", "not_a_class", ran), "")
    lines = told.partition("  We ran  ")[2].splitlines()
    assert [line.strip() for line in lines[: len(shown)]] == shown
    assert not lines[len(shown)].startswith(" " * 16)


def test_a_helper_in_another_cell_is_named_with_its_cell():
    source = RIGHT + "\nHEADER = pack(4)\n"
    report = judge("3.1", source, names={"pack": "cell 12"})
    assert "`pack` is defined in cell 12: move it here." in report.failed_rule.message


def test_the_class_may_have_any_name_and_helpers_beside_it():
    source = RIGHT.replace('@L.exercise("3.1")\n', "").replace("SpanningRecordSerializer", "Whatever")
    assert judge("3.1", source + "\n\nclass Helper:\n    pass\n").passed


def test_prints_are_counted_and_do_not_change_the_verdict():
    report = judge("0.1", stubs.solution("0.1").replace("    return", '    print("hello")\n    return'))
    assert report.passed
    assert "your code printed" in str(report)
    assert "hello" in str(report)


def test_two_runs_give_the_same_text():
    wrong = RIGHT.replace('"big"', '"little"')
    assert str(judge("3.1", wrong)) == str(judge("3.1", wrong))


def test_the_code_hash_does_not_see_ends_of_lines():
    assert code_hash("a = 1\r\nb = 2  \n\n") == code_hash("a = 1\nb = 2")


@pytest.mark.slow
def test_a_source_can_come_from_standard_input():
    done = sluice("check", "3.1", "--file", "-", "--json", input=RIGHT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["code_hash"] == code_hash(RIGHT)


@pytest.mark.parametrize("content", [None, "{", '{"cases": [{}]}'])
@pytest.mark.parametrize(("exercise", "cases"), [(each, exercise_module(each, "cases")) for each in ("3.1", "4.1")])
def test_a_check_without_its_recorded_flink_ends_with_3(exercise, cases, content, tmp_path, monkeypatch, capsys):
    recorded = tmp_path / "spanning.json"
    if content is not None:
        recorded.write_text(content)
    answer = tmp_path / "answer.py"
    answer.write_text(stubs.solution(exercise))
    monkeypatch.setattr(cases, "_VECTORS", recorded)
    cases.vector_cases.cache_clear()
    assert main(["check", exercise, "--file", str(answer), "--seed", "11"]) == 3
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    cases.vector_cases.cache_clear()


@pytest.mark.slow
def test_the_command_s_exit_status_and_json(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text(RIGHT.replace('"big"', '"little"'))
    done = sluice("check", "3.1", "--file", str(right), "--json", "--seed", "7")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"exercise", "status", "seed", "vectors", "code_hash", "rules", "read"}
    assert (report["exercise"], report["status"], report["seed"]) == ("3.1", "passed", 7)
    assert set(report["rules"][0]) == {"id", "title", "status", "message"}
    done = sluice("check", "3.1", "--file", str(wrong), "--json")
    assert done.returncode == 1
    failed = [rule for rule in json.loads(done.stdout)["rules"] if rule["status"] == "failed"]
    assert failed[0]["id"] == "B"
    assert "wrong order" in failed[0]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("check", "9.9"), ("check", "3.1", "--file", "no_such_file.py"), ("verify", "no_such.json"), ("zoo", "x")]
)
def test_wrong_use_ends_with_2(words):
    done = sluice(*words)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_in_a_terminal_a_check_ends_with_commands_of_a_terminal(tmp_path):
    wrong = RIGHT.replace("return SerializationResult", "return None and SerializationResult")
    for source, command in (
        (RIGHT, "sluice progress"),
        (wrong, "sluice hint 3.1"),
        ("raise KeyError", "sluice check 3.1"),
    ):
        file = tmp_path / "mine.py"
        file.write_text(source)
        said = sluice("check", "3.1", "--file", str(file)).stdout
        assert command in said
        for call in ('check("', 'hint("', 'show("', "L.swap("):
            assert call not in said


CALL = re.compile(r"(?<!@)\b(?:L\.\w+|check|hint|show|zoo|reveal|reset|swap|receipt|predict|quiz)\(\"|reveal\b")
"""A call of a notebook; a decorator belongs to the code, and is none."""


@pytest.mark.parametrize("rung", range(1, 6))
def test_no_hint_in_a_terminal_has_calls_of_a_notebook(tmp_path, capsys, rung):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(RIGHT.replace("return SerializationResult", "return None and SerializationResult"))
    assert main(["hint", "3.1", "--file", str(wrong), "--rung", str(rung)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Hint {rung} of 5")
    assert CALL.findall(said) == []


def test_who_hands_in_our_part_in_a_terminal_is_told_of_no_call_of_a_notebook(tmp_path, capsys):
    given = (
        "from refimpl.records.spanning import SpanningRecordSerializer\n\n\nclass Mine(SpanningRecordSerializer): ..."
    )
    (tmp_path / "mine.py").write_text(given)
    assert main(["check", "3.1", "--file", str(tmp_path / "mine.py")]) == 1
    said = capsys.readouterr().out
    assert "This is the reference part" in said
    assert CALL.findall(said) == []


@pytest.mark.slow
def test_the_messages_of_the_zoo_in_a_terminal_have_no_calls_of_a_notebook(capsys):
    assert main(["zoo", "10.1", "--message"]) == 0
    said = capsys.readouterr().out
    assert "sluice hint 10.1" in said
    assert CALL.findall(said) == []
