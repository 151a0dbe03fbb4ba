"""The check of an exercise: events with named fields, the first difference, and how it is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from course.checks import drive_calls
from course.checks.transcript import Seeded, TranscriptCheck
from course.checks.words import CallWords, StateWords, TextWords, around, joined
from course.checks.written_rule import WrittenRuleCheck
from course.curriculum.folders import folder
from course.curriculum.manifest import EXERCISES
from course.grading.loading import check_of
from course.grading.rules import Case, Seen
from tests.support.exercise_modules import exercise_module


def double(number: int) -> int:
    """The reference part."""
    if number < 0:
        raise ValueError("below zero")
    return 2 * number


def check(**more: object) -> TranscriptCheck:
    cases = {"A": [[["call", "", 3]], [["call", "", 4], ["call", "", 5]]], "B": [[["call", "", -1]]]}
    return TranscriptCheck("9.1", double, drive_calls, cases, lambda found: "different", **more)


def found(of: TranscriptCheck, part: object, number: int = 0):
    case = of.cases(1)[number]
    (expected,) = of.expected([case])
    events: list = []
    of.driver.run_case(part, case.ops, events)
    plain = [
        [call, {name: {"text": str(each)} if name == "raised" else each for name, each in fields.items()}]
        for call, fields in events
    ]
    return of.compare(next(each for each in of.rules if each.id == case.rule), case, Seen(plain, None), expected)


def test_the_first_event_that_differs_is_told_with_both_answers():
    finding = found(check(), lambda number: number + 3, 1)
    assert (finding.rule, finding.code, finding.ran) == ("A", "different", "your function(4); your function(5)")
    assert [row.text for row in finding.rows] == ["7", "8"]
    assert finding.values == {"where": "your function", "got": "7", "want": "8"}
    assert found(check(), double, 1) is None


def test_a_rule_looks_at_its_fields_only():
    def changes(body):
        body.append(0)
        return 1

    of = TranscriptCheck("9.1", lambda _: 1, drive_calls, {"A": [[["call", "", [1]]]]}, lambda found: found.field)
    assert found(of, changes).code == "given"
    of.looks_at = {"A": ["answer"]}
    assert found(of, changes) is None


def test_an_exception_where_none_is_right_is_told_as_one_and_asks_for_no_belief():
    def refuses(_number):
        raise ValueError("not today")

    finding = found(check(), refuses)
    assert (finding.code, finding.values["text"], list(finding.rows)) == ("raised", "not today", [])
    assert found(check(), refuses, 2) is None


def test_a_call_that_did_not_come_back_is_where_it_ended():
    of = check()
    case = of.cases(1)[0]
    ending = {"problem": "raised", "error": {"type": "TypeError", "text": "odd"}}
    finding = of.compare(of.rules[0], case, Seen([[""]], ending), of.expected([case])[0])
    assert (finding.code, finding.values["where"]) == ("raised", "your function")
    assert of.tell([""]) == "your function did not come back"


def test_a_belief_that_stumbles_over_what_no_driver_writes_is_a_difference():
    of = TranscriptCheck("9.1", double, drive_calls, {"A": [[["call", "", 3]]]}, lambda found: found.answers[0][7])
    assert found(of, lambda number: number).code == "different"


def test_smaller_cases_keep_what_makes_the_object_and_are_run_first():
    class Counter:
        def add(self, number):
            if number > 8:
                raise RuntimeError("no engine does that")
            return number

    calls = [["call", "add", number] for number in (1, 2, 3)]
    seeded = Seeded("B", lambda _: [[["new"], *calls]], lambda op: [["call", "add", 9 * op[2]], ["call", "add", 0]])
    of = TranscriptCheck("9.1", Counter, drive_calls, {"A": [[["new"], calls[0]]]}, lambda found: "different", seeded)
    smaller = [case.ops for case in of.smaller(of.cases(1)[-1])]
    assert [["new"], calls[1], calls[2]] in smaller
    assert [["new"], calls[0], ["call", "add", 0], calls[2]] in smaller
    assert all(ops[0] == ["new"] and len(ops) > 1 for ops in smaller)
    assert not any(op[-1] in (9, 18, 27) for ops in smaller for op in ops)
    assert list(of.smaller(of.cases(1)[0])) == []


# -- in words ----------------------------------------------------------------------------------------


def test_a_line_of_operations_ends_with_a_whole_one_or_is_cut():
    assert joined(["one", "two", "three"], 12) == "one; two; …"
    assert joined(["one", "two"], 8) == "one; two"
    assert joined(["a single one that is long"], 12) == "a single on…"


@pytest.mark.parametrize(
    ("yours", "right", "column"), [("10, 2", "10, 3", 4), ("1, 2", "1, 2, 3", 4), ("10 11 12", "10 19 12", 3)]
)
def test_a_caret_stands_below_the_first_difference_and_below_whole_bytes(yours, right, column):
    assert around(yours, right, 60, fits=60) == (yours, right, column)


def test_of_long_texts_the_part_around_the_difference_is_shown():
    yours, right, column = around("x" * 70 + "a", "x" * 70 + "b", 30, fits=60)
    assert (yours, right) == ("…" + "x" * 24 + "a", "…" + "x" * 24 + "b")
    assert yours[column] == "a"


def test_equal_operations_in_a_row_are_told_once():
    assert TextWords("2.1", lambda op: op[0]).told([["a"], ["b"], ["b"]]) == "a; 2 × b"
    assert StateWords("10.1").told([["marks", 1, 2], ["hand", 3], ["hand", 3]]).endswith("(× 2)")
    assert CallWords("9.3").told([["new"], ["call", "is_next", 3]]) == "new(); is_next(3)"


# -- exercises that bring something of their own -----------------------------------------------------


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_exercise_is_a_use_of_one_of_two_checks(exercise):
    asks_for_a_rule = folder(exercise).name.endswith("_written_rule")
    assert isinstance(check_of(exercise), WrittenRuleCheck if asks_for_a_rule else TranscriptCheck)


def test_a_rule_that_looks_at_the_first_answer_does_not_ask_what_comes_after():
    of = check_of("4.1")
    case = next(case for case in of.cases(1) if case.rule == "B")
    (expected,) = of.expected([case])
    first = [event[0] for event in expected].index("get")
    rule = next(each for each in of.rules if each.id == "B")
    ending = {"problem": "raised", "error": {"type": "IndexError", "text": ""}}
    assert of.compare(rule, case, Seen([*expected[: first + 1], ["back"]], ending), expected) is None
    assert of.compare(rule, case, Seen([*expected[:first], ["get"]], ending), expected).code == "raised"


def test_copies_that_were_too_slow_to_be_made_count_as_right():
    of, driver = check_of("3.1"), exercise_module("3.1", "driver")
    ops = [["new", 0], ["serialize", 0, [3000, 1]], ["probe", 0, 30], ["prune", 0]]
    expected, slow = of.run(ops), []
    driver.run_case(of.part, ops, slow, -1.0)
    assert ["stopped", {}] in slow
    assert len(slow) < len(expected)
    rule, case = of.rules[-1], Case("O", ops, "")
    assert of.compare(rule, case, Seen(slow, None), expected) is None
    odd = [*slow[:-1], ["prune", {"done": "odd"}]]
    assert of.compare(rule, case, Seen(odd, None), expected) is not None


def test_to_prune_more_often_is_as_good_and_less_often_is_not():
    of = check_of("5.2")
    assert of.agree("pruned", True, False)
    assert not of.agree("pruned", False, True)
    assert not of.agree("blocked", True, False)


def test_a_reference_part_that_differs_from_its_recording_is_no_judge(monkeypatch):
    of = check_of("4.1")
    case = next(case for case in of.cases(1) if case.recorded)
    of.expected([case])
    monkeypatch.setattr(of, "driver", SimpleNamespace(run_case=lambda part, ops, events: events.append(["set", {}])))
    with pytest.raises(RuntimeError, match="restore refimpl/records/spanning"):
        of.expected([case])
