"""Lesson 13: answers as others write them, right ones and wrong ones, and what a real Flink said of the same valve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course.checks.common import scripts
from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.exercises.e13_2_valve.check import _CASES, _after, _do, _seeded, goes_on_alike
from course.grading.judge import judge
from course.swap.rule import part_of
from refimpl.records import StreamStatus, Watermark

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "valve.json"
PLAIN = {exercise: right_answers(exercise)[0].source for exercise in ("13.1", "13.2")}

BACK = "return [StreamStatus.ACTIVE] if was_all_idle else []"
STATUS = "        if status is StreamStatus.ACTIVE:"

STILL_RIGHT = [
    ("13.1", "in_any_case_later", [("max(self.largest, timestamp)",
                                    "self.largest if timestamp < self.largest else timestamp")]),
    ("13.1", "a_sorted_list", [("max(self.largest, timestamp)", "sorted([self.largest, timestamp])[-1]")]),
    ("13.1", "numbers_of_numpy", [("max(self.largest, timestamp)",
                                   "__import__('numpy').int64(max(self.largest, timestamp))")]),
    ("13.2", "a_tuple", [("return [Watermark(time)]", "return [*(Watermark(time),)]")]),
    ("13.2", "none_for_idle", [("= [False] * num_channels", "= {n: False for n in range(num_channels)}"),
                               ("zip(self.marks, self.idle)", "zip(self.marks, self.idle.values())"),
                               ("all(self.idle)", "all(self.idle.values())")]),
    ("13.2", "moves_at_once", [(BACK, "return (" + BACK.removeprefix("return ") + ") + self.advance(self.least())")]),
    ("13.2", "counts_the_idle", [("= all(self.idle)", "= sum(self.idle) == len(self.marks)")]),
]  # fmt: skip

WRONG = [
    ("13.1", "first_alone", [("max(self.largest, timestamp)", "self.largest if self.largest > 0 else timestamp")], "D"),
    ("13.1", "rounds", [("Watermark(self.largest", "Watermark(self.largest // 10 * 10")], "B"),
    ("13.1", "a_float", [("Watermark(self.largest", "Watermark(0.0 + self.largest")], "B"),
    ("13.1", "absolute", [("max(self.largest, timestamp)", "max(self.largest, abs(timestamp))")], "F"),
    ("13.1", "a_shared_clock", [("    def __init__", "    largest = -(2**63) + 6\n\n    def __init__"),
                                ("        self.largest = MIN_TIMESTAMP + bound_ms + 1\n", ""),
                                ("self.largest = max(self.largest, timestamp)",
                                 "Bounded.largest = max(Bounded.largest, timestamp)")], "E"),
    ("13.2", "catches_up_past", [("mark >= self.last", "mark > self.last")], "B"),
    ("13.2", "forgets_at_idle", [(STATUS, f"        self.marks[index] = MIN_TIMESTAMP\n{STATUS}")], "E"),
    ("13.2", "least_of_all_at_the_end", [("self.advance(max(self.marks))", "self.advance(min(self.marks))")], "E"),
    ("13.2", "keeps_what_idle_says", [("        if self.idle[index]:\n            return []\n", "")], "F"),
    ("13.2", "an_empty_watermark", [("            return []\n        self.last = time",
                                     "            return [None]\n        self.last = time")], "B"),
]  # fmt: skip


def changed(exercise, changes):
    source = PLAIN[exercise]
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return source


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "name", "changes"), STILL_RIGHT, ids=lambda each: each if type(each) is str else ""
)
def test_an_answer_written_otherwise_passes(exercise, name, changes):
    report = judge(exercise, changed(exercise, changes))
    assert report.passed, f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "name", "changes", "rule"), WRONG, ids=lambda each: each if type(each) is str else ""
)
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(exercise, name, changes, rule):
    report = judge(exercise, changed(exercise, changes))
    assert not report.passed, name
    assert f"rule {rule}" in str(report), f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    for exercise in PLAIN:
        for source in (solution(exercise), *(each.source for each in right_answers(exercise))):
            report = judge(exercise, source, seed=seed)
            assert report.passed, str(report)


@pytest.mark.parametrize("answer", right_answers("13.2"), ids=lambda each: each.name)
def test_right_answers_say_what_flinks_valve_said(answer):
    """Recorded from a real Flink; where Flink alone waits a step longer, a case ends."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
    num_compared = 0
    for case in cases:
        valve, ours = part_of(answer)(case["channels"]), _after([["channels", case["channels"]]])
        for step in case["steps"]:
            is_watermark = "watermark" in step
            given = Watermark(step["watermark"]) if is_watermark else StreamStatus[step["status"]]
            _do(
                ours,
                ["watermark", step["channel"], step["watermark"]]
                if is_watermark
                else [step["status"], step["channel"]],
            )
            if not goes_on_alike(ours):
                break
            out = list((valve.input_watermark if is_watermark else valve.input_status)(given, step["channel"]))
            said = [
                ["watermark", each.timestamp] if isinstance(each, Watermark) else ["status", each.name] for each in out
            ]
            assert said == step["out"], case["name"]
            num_compared += 1
    assert num_compared > 300


def test_cases_end_where_the_text_lets_two_answers_be():
    """Channel 1 idles at 30 with nobody to hold time at 20 any more: Flink waits for the next watermark."""
    ops = [["channels", 3], ["watermark", 2, 5], ["watermark", 0, 10], ["watermark", 1, 30], ["idle", 2]]
    assert goes_on_alike(_after(ops))
    ops += [["watermark", 0, 20], ["active", 2], ["idle", 1], ["idle", 0]]
    assert goes_on_alike(_after(ops))
    assert not goes_on_alike(_after([*ops, ["active", 1]]))
    made = [*_seeded(7), *(case for cases in scripts("channels", _CASES).values() for case in cases)]
    assert all(goes_on_alike(_after(case[:end])) for case in made for end in range(1, len(case) + 1))
