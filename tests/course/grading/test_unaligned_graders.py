"""Lesson 15: answers as others write them, right ones and wrong ones, and what a real Flink did with such barriers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.exercises.e15_1_unaligner import check
from course.grading.judge import judge
from course.grading.loading import check_of
from course.swap.rule import part_of
from refimpl.consumer import Abort, Captured, StartCapture
from refimpl.records import Alignment, CheckpointBarrier

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "alignment.json"

HEAD = """
from refimpl.consumer import Abort, AbortReason, BarrierUnaligner, Captured, CaptureState, Decision, StartCapture
from refimpl.records import CheckpointBarrier
"""

RIGHT = {
    "keeps_every_checkpoint": '''
class Unaligner(BarrierUnaligner):
    """A dictionary of all checkpoints there were, each with its channels or with False."""
    def __init__(self, *given):
        super().__init__(*given)
        self.known = {}

    @property
    def captured(self):
        return next((number for number, who in self.known.items() if who is not False), None)

    def on_barrier(self, channel, barrier):
        number, out = barrier.checkpoint_id, []
        if number >= max(self.known, default=number) and number not in self.known:
            if self.captured is not None:
                out += self.over(self.captured, AbortReason.SUBSUMED)
            self.known[number] = []
            out.insert(0, StartCapture(barrier))
        if self.known.get(number, False) is not False:
            self.known[number].append(channel)
            if not any(each not in self.known[number] and each not in self.ended for each in range(self.num_channels)):
                self.known[number] = False
                out.insert(0, Captured(number))
        return out

    def over(self, number, reason):
        self.known[number] = False
        return [Abort(number, reason)]

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id == self.captured or checkpoint_id > max(self.known, default=-1):
            if self.captured is not None:
                self.known[self.captured] = False
            return self.over(checkpoint_id, AbortReason.CANCELLED)
        return []

    def on_end(self, channel):
        return [] if self.captured is None else self.over(self.captured, AbortReason.INPUT_ENDED)

    def on_aborted(self, checkpoint_id):
        if checkpoint_id == self.captured:
            self.over(checkpoint_id, None)
        return []
''',
    "counts_down": '''
class Unaligner(BarrierUnaligner):
    """How many barriers are still to come; 0 when nothing is captured."""
    missing = 0

    def on_barrier(self, channel, barrier):
        first, out = barrier.checkpoint_id > self.latest_checkpoint_id, []
        if first:
            out = [Abort(self.latest_checkpoint_id, AbortReason.SUBSUMED)] if self.missing else []
            self.latest_checkpoint_id = barrier.checkpoint_id
            self.missing = self.num_channels - len(self.ended)
            out.append(StartCapture(barrier))
        if self.missing and barrier.checkpoint_id == self.latest_checkpoint_id:
            self.missing -= 1
            out += [Captured(barrier.checkpoint_id)] * (self.missing == 0)
        return out

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id + bool(self.missing) <= self.latest_checkpoint_id:
            return []
        self.latest_checkpoint_id, self.missing = checkpoint_id, 0
        return [Abort(checkpoint_id, AbortReason.CANCELLED)]

    def on_end(self, channel):
        missing, self.missing = self.missing, 0
        return [Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED)] * (missing > 0)

    def on_aborted(self, checkpoint_id):
        self.missing *= checkpoint_id != self.latest_checkpoint_id
        return []
''',
}

PLAIN = right_answers("15.1")[0].source
IDLE = "        self.state = CaptureState.IDLE\n"
SUBSUMED = "out.append(Abort(self.latest_checkpoint_id, AbortReason.SUBSUMED))"
START = "            out.append(StartCapture(barrier))\n"

WRONG = [
    ("is_for_equal", [("elif number < self.latest", "elif number is not self.latest")], "I"),
    ("one_is_enough_left", [("len(self.ended) == self", "len(self.ended) >= -1 + self")], "A"),
    ("a_shared_set", [("    def on_barrier", "    all = set()\n\n    def on_barrier"),
                      ("self.delivered.add(channel)", "self.all.add(channel)\n        self.delivered = self.all"),
                      ("self.delivered.clear()", "self.delivered = set()")], "C"),
    ("forgets_the_number_at_the_end", [(IDLE + "        return [Abort(self.latest_checkpoint_id, AbortReason.INPUT",
                                        "        latest, self.latest_checkpoint_id = self.latest_checkpoint_id, -1\n"
                                        + IDLE + "        return [Abort(latest, AbortReason.INPUT")], "G"),
    ("ends_are_counted_twice", [("len(self.ended) == self", "2 * len(self.ended) == self")], "G"),
    ("the_first_is_not_noted", [(START, START + "            return out\n")], "A"),
    ("none_for_nothing", [("        return out\n\n", "        return out or None\n\n")], "A"),
    ("a_text_for_a_reason", [("AbortReason.SUBSUMED", '"SUBSUMED"')], "D"),
    ("a_list_in_a_list", [(START, "            out.append([StartCapture(barrier)])\n")], "A"),
    ("starts_what_it_aborts", [(SUBSUMED, SUBSUMED + "\n                barrier = CheckpointBarrier(1, 0)")], "D"),
    ("sixteen_channels", [("if len(self.delivered) + len(self.ended) == self.num_channels",
                           "if len(self.delivered) + len(self.ended) == min(16, self.num_channels)")], "I"),
    ("late_ones_abort", [("        elif number < self.latest_checkpoint_id or",
                          ("        elif number < self.latest_checkpoint_id and self.is_capturing():\n"
                           "            return [Abort(number, AbortReason.SUBSUMED)]\n"
                           "        elif number < self.latest_checkpoint_id or"))], "F"),
    ("only_the_captured_is_cancelled", [("        if checkpoint_id < self.latest_checkpoint_id:",
                                         ("        if not self.is_capturing():\n            return []\n"
                                          "        if checkpoint_id < self.latest_checkpoint_id:"))], "E"),
    ("aborted_ends_older_ones_too", [("if checkpoint_id == self.latest_checkpoint_id:\n            self.state",
                                      "if checkpoint_id >= self.latest_checkpoint_id:\n            self.state")], "H"),
    ("aborted_gives_none", [(IDLE.replace("        ", "            ", 1) + "        return []\n\n    def is_cap",
                             IDLE.replace("        ", "            ", 1) + "\n    def is_cap")], "H"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_an_answer_written_otherwise_passes(name):
    report = judge("15.1", HEAD + RIGHT[name])
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "rule"), WRONG, ids=[name for name, *_ in WRONG])
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(name, changes, rule):
    source = PLAIN
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    report = judge("15.1", source)
    assert not report.passed, name
    assert f"rule {rule}" in str(report), f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    sources = (*(each.source for each in right_answers("15.1")), *(HEAD + each for each in RIGHT.values()))
    for source in (solution("15.1"), *sources):
        report = judge("15.1", source, seed=seed)
        assert report.passed, str(report)


def test_no_case_asks_for_what_a_channel_cannot_do():
    """Who has ended says nothing, and the numbers of a channel grow."""
    rules = check_of("15.1").by_rule
    assert all(check._is_valid(ops) for cases in rules.values() for ops in cases)
    assert sum(check._is_valid(ops) for ops in check._seeded(3)) > 60
    assert not check._is_valid([["channels", 2], ["barrier", 0, 2], ["barrier", 0, 2]])
    assert not check._is_valid([["channels", 2], ["cancel", 0, 2], ["barrier", 0, 1]])
    assert not check._is_valid([["channels", 1], ["end", 0], ["barrier", 0, 1]])
    assert not check._is_valid([["channels", 1], ["aborted", 0]])
    assert check._is_valid([["channels", 1], ["end", 0], ["aborted", 3]])


# -- a real Flink ----------------------------------------------------------------------------------------


def decided(unaligner, kind, channel, *number):
    if kind == "barrier":
        return unaligner.on_barrier(channel, CheckpointBarrier(*number, 0, alignment=Alignment.UNALIGNED))
    if kind == "cancel":
        return unaligner.on_cancellation(channel, *number)
    unaligner.note_end(channel)
    return unaligner.on_end(channel)


def as_recorded(decision):
    match decision:
        case StartCapture(barrier):
            return "checkpoint", barrier.checkpoint_id
        case Captured(number):
            return "captured", number
        case Abort(number, reason):
            return "abort", number, reason.value
    raise AssertionError(decision)


def cases_of_1_11():
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
    return [each for each in cases if each["mode"] == "unaligned" and "1.11.4" in each["flink"]]


@pytest.mark.parametrize("answer", right_answers("15.1"), ids=lambda each: each.name)
def test_right_answers_decide_what_flinks_unaligner_decided(answer):
    """Recorded from a real Flink, whose barriers had overtaken all that waited."""
    num_compared = 0
    for case in cases_of_1_11():
        unaligner = part_of(answer)(case["channels"])
        for step in case["steps"]:
            if step["in"][0] == "data":
                continue
            told = [as_recorded(each) for each in decided(unaligner, *step["in"])]
            wanted = [tuple(each) for each in step["out"] if each[0] in ("checkpoint", "captured", "abort")]
            assert Counter(told) == Counter(wanted), f"{case['name']}: {step['in']}"
            num_compared += len(wanted)
    assert num_compared > 50
