"""Lesson 14: answers as others write them, right ones and wrong ones, and what a real Flink did with such barriers."""

from __future__ import annotations

import json
from collections import Counter, deque
from pathlib import Path

import pytest

from course.curriculum.specimens import right_answers
from course.curriculum.stubs import solution
from course.exercises.e14_1_aligner import check
from course.grading.judge import judge
from course.grading.loading import check_of
from course.swap.rule import part_of
from refimpl.consumer import Abort, Complete, ResumeChannel
from refimpl.records import CheckpointBarrier

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors" / "alignment.json"

HEAD = """
from refimpl.consumer import Abort, AbortReason, BarrierAligner, Complete, Decision, ResumeChannel
from refimpl.records import CheckpointBarrier
"""

RIGHT = {
    "last_one_over": '''
class Aligner(BarrierAligner):
    """What is over is one number; what waits is a list."""
    over = -1
    barrier = None

    def __init__(self, *given):
        super().__init__(*given)
        self.waiting = []

    def on_barrier(self, channel, barrier):
        n = barrier.checkpoint_id
        if n <= self.over:
            return [ResumeChannel(channel)]
        todo = []
        if self.waiting and self.current < n:
            todo = self.end(Abort(self.current, AbortReason.SUBSUMED))
        elif self.waiting and self.current > n:
            return [ResumeChannel(channel)]
        self.current = n
        self.over = n - 1
        self.waiting.append(channel)
        if len(self.waiting) == self.num_channels - len(self.ended):
            todo = self.end(Complete(barrier))
        return todo

    def end(self, what):
        self.over = max(self.over, self.current)
        done = [what] + [ResumeChannel(c) for c in self.waiting]
        self.waiting = []
        return done

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id <= self.over:
            return []
        self.current = checkpoint_id
        return self.end(Abort(checkpoint_id, AbortReason.CANCELLED))

    def on_end(self, channel):
        return self.end(Abort(self.current, AbortReason.INPUT_ENDED)) if self.waiting else []
''',
    "those_that_are_missing": """
class Aligner(BarrierAligner):
    def __init__(self, num_channels, *rest):
        super().__init__(num_channels, *rest)
        self.alive = set(range(num_channels))
        self.missing = None
        self.id = 0

    def on_barrier(self, channel, barrier):
        decisions = []
        if barrier.checkpoint_id > self.id:
            if self.missing is not None:
                decisions += [Abort(self.id, AbortReason.SUBSUMED)]
                decisions += self.free()
            self.id = barrier.checkpoint_id
            self.missing = set(self.alive)
        if barrier.checkpoint_id < self.id or self.missing is None:
            decisions.append(ResumeChannel(channel))
            return decisions
        self.missing.remove(channel)
        if not self.missing:
            decisions.extend(self.free())
            decisions.append(Complete(barrier))
        return decisions

    def free(self):
        waiting = [] if self.missing is None else sorted(self.alive - self.missing)
        self.missing = None
        return [ResumeChannel(each) for each in waiting]

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id > self.id or checkpoint_id == self.id and self.missing is not None:
            self.id = checkpoint_id
            return [*self.free(), Abort(checkpoint_id, AbortReason.CANCELLED)]
        return []

    def on_end(self, channel):
        decisions = []
        if self.missing is not None:
            decisions = self.free() + [Abort(self.id, AbortReason.INPUT_ENDED)]
        self.alive.discard(channel)
        return decisions
""",
    "bits": """
class Aligner(BarrierAligner):
    bits = 0
    gone = 0
    newest = -1

    def full(self):
        return (1 << self.num_channels) - 1

    def on_barrier(self, channel, barrier):
        if barrier.checkpoint_id == self.newest and self.bits:
            self.bits |= 1 << channel
            first = []
        elif barrier.checkpoint_id > self.newest:
            first = self.drop(AbortReason.SUBSUMED)
            self.newest = barrier.checkpoint_id
            self.bits = 1 << channel
        else:
            return [ResumeChannel(channel)]
        if self.bits | self.gone == self.full():
            return first + [Complete(barrier)] + self.wake()
        return first

    def drop(self, reason):
        return [Abort(self.newest, reason)] + self.wake() if self.bits else []

    def wake(self):
        woken = [ResumeChannel(c) for c in range(self.num_channels) if self.bits >> c & 1]
        self.bits = 0
        return woken

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id < self.newest or (checkpoint_id == self.newest and not self.bits):
            return []
        self.newest = checkpoint_id
        return self.wake() + [Abort(checkpoint_id, AbortReason.CANCELLED)]

    def on_end(self, channel):
        out = self.drop(AbortReason.INPUT_ENDED)
        self.gone |= 1 << channel
        return out
""",
    "an_object_for_each_checkpoint": """
from dataclasses import dataclass, field

@dataclass
class Checkpoint:
    number: int
    channels: list = field(default_factory=list)
    is_over: bool = False

class Aligner(BarrierAligner):
    def __init__(self, num_channels, *args):
        super().__init__(num_channels, *args)
        self.now = Checkpoint(0, is_over=True)

    def close(self, *what):
        self.now.is_over = True
        return list(what) + [ResumeChannel(c) for c in self.now.channels]

    def on_barrier(self, channel, barrier):
        out = []
        if barrier.checkpoint_id > self.now.number:
            if not self.now.is_over:
                out = self.close(Abort(self.now.number, AbortReason.SUBSUMED))
            self.now = Checkpoint(barrier.checkpoint_id)
        elif barrier.checkpoint_id != self.now.number or self.now.is_over:
            return [ResumeChannel(channel)]
        self.now.channels.append(channel)
        if len(self.now.channels) + len(self.ended) >= self.num_channels:
            out += self.close(Complete(barrier))
        return out

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id == self.now.number and not self.now.is_over:
            return self.close(Abort(checkpoint_id, AbortReason.CANCELLED))
        if checkpoint_id <= self.now.number:
            return []
        out = [] if self.now.is_over else self.close()
        self.now = Checkpoint(checkpoint_id, is_over=True)
        return out + [Abort(checkpoint_id, AbortReason.CANCELLED)]

    def on_end(self, channel):
        return [] if self.now.is_over else self.close(Abort(self.now.number, AbortReason.INPUT_ENDED))
""",
    "match": """
class Aligner(BarrierAligner):
    def relation(self, number):
        if number > self.latest_checkpoint_id:
            return "newer"
        return "awaited" if self.barrier and self.barrier.checkpoint_id == number else "over"

    def on_barrier(self, channel, barrier):
        match self.relation(barrier.checkpoint_id):
            case "over":
                return [ResumeChannel(channel)]
            case "newer":
                out = self.give_up(AbortReason.SUBSUMED)
                self.latest_checkpoint_id = barrier.checkpoint_id
                self.barrier = barrier
            case "awaited":
                out = []
        self.arrived.add(channel)
        if self.num_channels == len(self.arrived | self.ended):
            out = [*out, Complete(barrier), *self.resume_all()]
        return out

    def give_up(self, reason):
        if not self.barrier:
            return []
        number = self.barrier.checkpoint_id
        return [Abort(number, reason), *self.resume_all()]

    def resume_all(self):
        everybody, self.arrived, self.barrier = self.arrived, set(), None
        return [ResumeChannel(channel) for channel in everybody]

    def on_cancellation(self, channel, checkpoint_id):
        if self.relation(checkpoint_id) == "over":
            return []
        self.latest_checkpoint_id = checkpoint_id
        return [*self.resume_all(), Abort(checkpoint_id, AbortReason.CANCELLED)]

    def on_end(self, channel):
        return self.give_up(AbortReason.INPUT_ENDED)
""",
    "fewer_channels_at_each_end": """
class Aligner(BarrierAligner):
    def on_barrier(self, channel, barrier):
        number, latest = barrier.checkpoint_id, self.latest_checkpoint_id
        if number < latest:
            return {ResumeChannel(channel)}
        if number == latest and not self.arrived:
            return {ResumeChannel(channel)}
        out = set()
        if number > latest and self.arrived:
            out = {Abort(latest, AbortReason.SUBSUMED)} | self.all_go()
        self.latest_checkpoint_id = number
        self.arrived.add(channel)
        if len(self.arrived) == self.num_channels:
            out |= {Complete(barrier)} | self.all_go()
        return out

    def all_go(self):
        going = set(map(ResumeChannel, self.arrived))
        self.arrived = set()
        return going

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id > self.latest_checkpoint_id or (self.arrived and checkpoint_id == self.latest_checkpoint_id):
            self.latest_checkpoint_id = checkpoint_id
            return {Abort(checkpoint_id, AbortReason.CANCELLED)} | self.all_go()
        return set()

    def on_end(self, channel):
        self.num_channels -= 1
        return {Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED)} | self.all_go() if self.arrived else set()
""",
    "a_history": """
class Aligner(BarrierAligner):
    def __init__(self, *args):
        super().__init__(*args)
        self.history = {}

    def newest(self):
        return max(self.history, default=-1)

    def on_barrier(self, channel, barrier):
        number = barrier.checkpoint_id
        newest = self.newest()
        out = []
        if number < newest or self.history.get(number) == "over":
            return [ResumeChannel(channel)]
        if number > newest and newest > 0 and self.history[newest] != "over":
            out = self.finish(newest, Abort(newest, AbortReason.SUBSUMED))
        self.history.setdefault(number, set()).add(channel)
        if self.history[number] | self.ended == set(range(self.num_channels)):
            return out + self.finish(number, Complete(barrier))
        return out

    def finish(self, number, *decisions):
        waiting = self.history.get(number, set())
        self.history[number] = "over"
        return [*decisions, *(ResumeChannel(each) for each in waiting if waiting != "over")]

    def on_cancellation(self, channel, checkpoint_id):
        newest = self.newest()
        if checkpoint_id < newest or self.history.get(checkpoint_id) == "over":
            return []
        out = [Abort(checkpoint_id, AbortReason.CANCELLED)]
        if newest != checkpoint_id and newest > 0:
            out += self.finish(newest)
        return out + self.finish(checkpoint_id)

    def on_end(self, channel):
        newest = self.newest()
        if newest < 0 or self.history[newest] == "over":
            return []
        return self.finish(newest, Abort(newest, AbortReason.INPUT_ENDED))
""",
    "numpy": """
import numpy as np

class Aligner(BarrierAligner):
    def __init__(self, num_channels, *args):
        super().__init__(num_channels, *args)
        self.here = np.zeros(num_channels, dtype=bool)
        self.dead = np.zeros(num_channels, dtype=bool)

    def out_of(self):
        out = [ResumeChannel(each) for each in np.flatnonzero(self.here)]
        self.here[:] = False
        return out

    def on_barrier(self, channel, barrier):
        number = np.int64(barrier.checkpoint_id)
        is_open = self.here.any()
        if number < self.latest_checkpoint_id or (number == self.latest_checkpoint_id and not is_open):
            return [ResumeChannel(channel)]
        out = []
        if number > self.latest_checkpoint_id and is_open:
            out = [Abort(self.latest_checkpoint_id, AbortReason.SUBSUMED), *self.out_of()]
        self.latest_checkpoint_id = number
        self.here[channel] = True
        return out + [Complete(barrier), *self.out_of()] if (self.here | self.dead).all() else out

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id > self.latest_checkpoint_id or (
            checkpoint_id == self.latest_checkpoint_id and self.here.any()
        ):
            self.latest_checkpoint_id = checkpoint_id
            return [Abort(checkpoint_id, AbortReason.CANCELLED), *self.out_of()]
        return []

    def on_end(self, channel):
        self.dead[channel] = True
        return [Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED), *self.out_of()] if self.here.any() else []
""",
    "asks_pending": """
class Aligner(BarrierAligner):
    def on_barrier(self, channel, barrier):
        waited_for, channels = self.pending()
        out = []
        if barrier.checkpoint_id > self.latest_checkpoint_id:
            if waited_for >= 0:
                out = [Abort(waited_for, AbortReason.SUBSUMED)] + self._free()
            self.barrier, self.latest_checkpoint_id = barrier, barrier.checkpoint_id
        elif barrier.checkpoint_id != waited_for:
            return [ResumeChannel(channel)]
        self.arrived.add(channel)
        left = [c for c in range(self.num_channels) if c not in self.arrived and c not in self.ended]
        return out if left else out + [Complete(barrier)] + self._free()

    def _free(self):
        free = [ResumeChannel(c) for c in range(self.num_channels) if c in self.arrived]
        self.arrived, self.barrier = set(), None
        return free

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id != self.pending()[0] and checkpoint_id <= self.latest_checkpoint_id:
            return []
        self.latest_checkpoint_id = checkpoint_id
        return [Abort(checkpoint_id, AbortReason.CANCELLED)] + self._free()

    def on_end(self, channel):
        number = self.pending()[0]
        return [Abort(number, AbortReason.INPUT_ENDED)] + self._free() if number != -1 else []
""",
    "dict_of_channels": """
class Aligner(BarrierAligner):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.status = dict.fromkeys(range(self.num_channels), "open")
        self.current = None
        self.last = -1

    def release(self):
        out = []
        for channel in self.status:
            if self.status[channel] == "blocked":
                self.status[channel] = "open"
                out.append(ResumeChannel(channel))
        self.current = None
        return out

    def on_barrier(self, channel, barrier):
        number = barrier.checkpoint_id
        if number > self.last:
            out = []
            if self.current is not None:
                out.append(Abort(self.current, AbortReason.SUBSUMED))
                out.extend(self.release())
            self.current = self.last = number
        elif number == self.current:
            out = []
        else:
            return [ResumeChannel(channel)]
        self.status[channel] = "blocked"
        if "open" not in self.status.values():
            out.extend(self.release())
            out.append(Complete(barrier))
        return out

    def on_cancellation(self, channel, checkpoint_id):
        if checkpoint_id == self.current or checkpoint_id > self.last:
            self.last = checkpoint_id
            return self.release() + [Abort(checkpoint_id, AbortReason.CANCELLED)]
        return []

    def on_end(self, channel):
        self.status[channel] = "ended"
        if self.current is None:
            return []
        number = self.current
        return self.release() + [Abort(number, AbortReason.INPUT_ENDED)]
""",
}

PLAIN = right_answers("14.1")[0].source
LET_GO = "        self.arrived.clear()\n        self.barrier = None\n"
SUBSUMED = "out.append(Abort(self.latest_checkpoint_id, AbortReason.SUBSUMED))"

WRONG = [
    ("forgets_the_number", [(LET_GO, LET_GO + "        self.latest_checkpoint_id = -1\n")], "E"),
    ("is_for_equal", [("elif number < self.latest", "elif number is not self.latest")], "H"),
    ("one_is_enough_left", [("len(self.ended) == self", "len(self.ended) >= -1 + self")], "A"),
    ("a_shared_set", [("    def on_barrier", "    all = set()\n\n    def on_barrier"),
                      ("self.arrived.add(channel)", "self.all.add(channel)\n        self.arrived = self.all")], ""),
    ("end_lets_nobody_go", [("[Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED), *self.let_go()]",
                             "[Abort(self.latest_checkpoint_id, AbortReason.INPUT_ENDED)]")], "G"),
    ("end_keeps_waiting", [("AbortReason.INPUT_ENDED), *self.let_go()]",
                            "AbortReason.INPUT_ENDED), *map(ResumeChannel, self.arrived)]")], "G"),
    ("the_new_one_goes_on_too", [(SUBSUMED, SUBSUMED + "\n                out.append(ResumeChannel(channel))")], "D"),
    ("both_are_aborted", [("return [Abort(checkpoint_id, AbortReason.CANCELLED), *self.let_go()]",
                           "return [Abort(n, AbortReason.CANCELLED) for n in {before, checkpoint_id}] + self.let_go()"),
                          ("        self.latest_checkpoint_id = checkpoint_id\n",
                           ("        before = self.latest_checkpoint_id if self.barrier else checkpoint_id\n"
                           "        self.latest_checkpoint_id = checkpoint_id\n"))], "E"),
    ("complete_of_nothing", [("            out.append(Complete(barrier))\n            out += self.let_go()\n",
                              "            out = self.let_go()\n            out += [Complete(self.barrier)]\n")], "A"),
    ("a_list_in_a_list", [("            out += self.let_go()\n        return out",
                           "            out.append(self.let_go())\n        return out")], "A"),
    ("none_for_nothing", [("        return out\n\n    def on_cancellation",
                           "        return out or None\n\n    def on_cancellation")], "A"),
    ("a_text_for_a_reason", [("AbortReason.SUBSUMED", '"SUBSUMED"')], "D"),
    ("begins_with_one", [("        out = []\n", ("        out = []\n        if self.latest_checkpoint_id < 0:\n"
                          "            self.latest_checkpoint_id = 1\n            self.barrier = barrier\n"))], ""),
    ("counts_barriers", [("self.arrived.add(channel)", ("self.count = getattr(self, 'count', 0) + 1\n        "
                          "self.arrived.add(channel)")),
                         ("if len(self.arrived) + len(self.ended) == self.num_channels",
                          "if self.count % (self.num_channels - len(self.ended)) == 0")], ""),
    ("cancels_only_what_it_has_not", [("if checkpoint_id < self.latest_checkpoint_id:",
                                       "if checkpoint_id < self.latest_checkpoint_id or len(self.arrived) > 1:")], "E"),
    ("an_old_one_ends_all", [("        elif number < self.latest_checkpoint_id or self.barrier is None:\n",
                              ("        elif number < self.latest_checkpoint_id:\n"
                              "            return [ResumeChannel(channel), *self.let_go()]\n"
                              "        elif self.barrier is None:\n"))], "F"),
    ("ended_are_told", [("for each in self.arrived]", "for each in self.arrived | self.ended]")], "G"),
    ("sixteen_channels", [("for each in self.arrived]", "for each in sorted(self.arrived)[:16]]")], "H"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_an_answer_written_otherwise_passes(name):
    report = judge("14.1", HEAD + RIGHT[name])
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "rule"), WRONG, ids=[name for name, *_ in WRONG])
def test_an_answer_that_is_wrong_in_one_point_is_turned_down(name, changes, rule):
    source = PLAIN
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    report = judge("14.1", source)
    assert not report.passed, name
    assert f"rule {rule}" in str(report), f"{name}\n{report}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 4711])
def test_right_answers_pass_with_other_seeds(seed):
    for source in (solution("14.1"), *(each.source for each in right_answers("14.1"))):
        report = judge("14.1", source, seed=seed)
        assert report.passed, str(report)


def test_no_case_asks_for_what_a_channel_cannot_do():
    """Who has stopped or ended says nothing, and the numbers of a channel grow."""
    rules = check_of("14.1").by_rule
    assert all(check._is_valid(ops) for cases in rules.values() for ops in cases)
    assert sum(check._is_valid(ops) for ops in check._seeded(3)) > 60
    assert not check._is_valid([["channels", 2], ["barrier", 0, 2], ["barrier", 0, 3]])
    assert not check._is_valid([["channels", 2], ["cancel", 0, 2], ["barrier", 0, 1]])
    assert not check._is_valid([["channels", 1], ["end", 0], ["barrier", 0, 1]])


# -- a real Flink ----------------------------------------------------------------------------------------


def decided(aligner, kind, channel, *number):
    if kind == "barrier":
        return aligner.on_barrier(channel, CheckpointBarrier(*number, 0))
    if kind == "cancel":
        return aligner.on_cancellation(channel, *number)
    aligner.note_end(channel)
    return aligner.on_end(channel)


def as_recorded(decision):
    match decision:
        case ResumeChannel(channel):
            return "resume", channel
        case Complete(barrier):
            return "checkpoint", barrier.checkpoint_id
        case Abort(number, reason):
            return "abort", number, reason.value
    raise AssertionError(decision)


def cases_of_1_11():
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]
    return [each for each in cases if each["mode"] == "exactly_once" and "1.11.4" in each["flink"]]


@pytest.mark.parametrize("answer", right_answers("14.1"), ids=lambda each: each.name)
def test_right_answers_decide_what_flinks_aligner_decided(answer):
    """Recorded from a real Flink: its gate hands out the oldest item whose channel has not stopped."""
    num_compared = 0
    for case in cases_of_1_11():
        aligner, stopped, waiting = part_of(answer)(case["channels"]), set(), deque()
        for step in case["steps"]:
            waiting.append(step["in"])
            out = []
            while item := next((each for each in waiting if each[1] not in stopped), None):
                waiting.remove(item)
                if item[0] == "data":
                    continue
                stopped |= {item[1]} if item[0] == "barrier" else set()
                told = [as_recorded(each) for each in decided(aligner, *item)]
                stopped -= {channel for kind, channel, *_ in told if kind == "resume"}
                out += told
            wanted = [tuple(each) for each in step["out"] if each[0] in ("resume", "checkpoint", "abort")]
            assert Counter(out) == Counter(wanted), f"{case['name']}: {step['in']}"
            assert sorted(stopped) == step["blocked_after"]
            num_compared += len(wanted)
    assert num_compared > 50
