"""Exercise 14.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.checks.common import scripts
from course.checks.decided import NO_LIST, Decided, DecidedWords
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.exercises.e14_1_aligner import driver
from refimpl.consumer.alignment import BarrierAligner

__all__ = ["CHECK"]

_FAR = 70_000_000_000


def _all_deliver(number: int, channels: Sequence[int]) -> str:
    return " / ".join(f"barrier {channel} {number}" for channel in channels)


_CASES = {
    "A": [
        "3 / barrier 1 1 / barrier 0 1 / barrier 2 1", "2 / barrier 1 1 / barrier 0 1", "4 / barrier 3 7 / barrier 0 7",
        "5 / barrier 2 3 / barrier 4 3 / barrier 0 3 / barrier 1 3 / barrier 3 3",
    ],
    "B": ["1 / barrier 0 1", "1 / barrier 0 1 / barrier 0 2", "1 / barrier 0 4 / barrier 0 9"],
    "C": [
        "3 / barrier 1 1 / barrier 0 1 / barrier 2 1 / barrier 2 2 / barrier 1 2 / barrier 0 2",
        "2 / barrier 0 1 / barrier 1 1 / barrier 0 2 / barrier 1 2 / barrier 1 3 / barrier 0 3",
        "2 / barrier 1 4 / barrier 0 4 / barrier 0 9 / barrier 1 9",
        "3 / barrier 2 5 / barrier 0 5 / barrier 1 5 / barrier 1 8",
    ],
    "D": [
        "2 / barrier 0 1 / barrier 1 2", "2 / barrier 0 1 / barrier 1 2 / barrier 0 2",
        "3 / barrier 0 1 / barrier 2 1 / barrier 1 2 / barrier 0 2 / barrier 2 2",
        "3 / barrier 0 1 / barrier 2 5 / barrier 0 7 / barrier 2 7 / barrier 1 7",
        "4 / barrier 3 2 / barrier 1 2 / barrier 0 2 / barrier 2 3 / barrier 1 4",
    ],
    "E": [
        "2 / barrier 0 1 / cancel 1 1", "3 / barrier 2 4 / barrier 0 4 / cancel 1 4",
        "3 / barrier 0 1 / barrier 2 1 / cancel 1 4", "2 / cancel 0 3", "3 / barrier 0 3 / cancel 1 2",
        "3 / barrier 0 2 / cancel 1 2 / cancel 2 2", "3 / cancel 0 3 / cancel 1 3 / cancel 2 3",
        "2 / cancel 0 3 / cancel 1 2", "1 / cancel 0 2 / barrier 0 3 / cancel 0 5 / cancel 0 6",
        "2 / barrier 0 1 / cancel 1 1 / barrier 1 2 / barrier 0 2",
        "2 / barrier 0 1 / barrier 1 1 / cancel 0 2 / cancel 1 2",
        "3 / barrier 1 3 / cancel 0 2 / barrier 0 3 / barrier 2 3",
    ],
    "F": [
        "2 / cancel 0 5 / barrier 1 3", "3 / barrier 0 1 / barrier 1 2 / barrier 2 1",
        "3 / barrier 0 1 / cancel 1 1 / barrier 2 1", "2 / cancel 0 5 / barrier 1 5",
        "3 / barrier 0 1 / barrier 1 2 / barrier 2 1 / barrier 0 2 / barrier 2 2",
        "3 / cancel 0 2 / barrier 1 2 / barrier 2 1 / barrier 2 2 / barrier 0 3 / barrier 1 3 / barrier 2 3",
        "4 / barrier 0 2 / barrier 1 3 / barrier 2 1 / barrier 2 2 / barrier 3 3 / barrier 0 3 / barrier 2 3",
        "3 / barrier 0 1 / cancel 1 4 / barrier 2 1 / barrier 0 2 / barrier 2 4 / barrier 0 4",
    ],
    "G": [
        "2 / end 0", "2 / end 0 / barrier 1 1", "2 / barrier 0 1 / end 1", "3 / barrier 0 1 / end 2",
        "3 / end 1 / barrier 0 1 / barrier 2 1 / barrier 2 2 / barrier 0 2", "3 / barrier 0 1 / end 1 / barrier 2 1",
        "3 / barrier 0 1 / end 1 / barrier 0 2 / barrier 2 2", "3 / end 2 / end 0 / barrier 1 4 / end 1",
        "2 / barrier 0 1 / barrier 1 1 / end 1 / barrier 0 2 / end 0", "3 / end 0 / barrier 1 1 / cancel 2 1",
        "4 / end 3 / barrier 0 1 / barrier 2 1 / end 1 / barrier 0 2 / barrier 2 2",
        "2 / cancel 0 3 / end 0 / barrier 1 3",
        "3 / end 0 / barrier 1 1 / barrier 2 2 / barrier 1 2",
    ],
    "H": [
        f"2 / barrier 0 {_FAR} / barrier 1 {_FAR} / barrier 1 {_FAR + 3} / barrier 0 {_FAR + 4} / barrier 1 {_FAR + 4}",
        f"40 / {_all_deliver(1, range(40))} / {_all_deliver(2, range(39, -1, -1))}",
        f"300 / {_all_deliver(257, range(300))}", f"300 / {_all_deliver(257, range(299))} / cancel 299 258",
        f"300 / {_all_deliver(600, range(299))} / end 299",
    ],
}  # fmt: skip


# -- what stands when an operation begins ----------------------------------------------------------------


@dataclass
class _Standing:
    """A reference part, and what it can not be asked: who has stopped, and what each channel has said last."""

    aligner: BarrierAligner
    stopped: set[int] = field(default_factory=set)
    said: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)  # numbers of which a barrier has come
    is_any_over: bool = False

    def may(self, op: Sequence[Any]) -> bool:
        """Whether a channel could do that: it has not stopped nor ended, and counts upwards."""
        name, channel, *number = op
        silent = channel in self.stopped or channel in self.aligner.ended
        return not silent and (name == "end" or number[0] > self.said.get(channel, 0))

    def do(self, op: Sequence[Any]) -> None:
        name, channel, *_ = op
        events: list[Any] = []
        driver.run_case(lambda _: self.aligner, [["channels", 0], list(op)], events)
        if name == "barrier":
            self.stopped.add(channel)
            self.seen.add(op[2])
        if name != "end":
            self.said[channel] = op[2]
        for told in events[-1][1]["out"]:
            kind, number = told.split()[:2]
            if kind == "resume":
                self.stopped.discard(int(number))
            else:
                self.is_any_over = True


def _standing(ops: Sequence[Any]) -> _Standing:
    found = _Standing(BarrierAligner(ops[0][1]))
    for op in ops[1:]:
        found.do(op)
    return found


def _is_valid(ops: list[Any]) -> bool:
    standing = _Standing(BarrierAligner(ops[0][1]))
    for op in ops[1:]:
        if not standing.may(op):
            return False
        standing.do(op)
    return True


def _seeded(seed: int) -> Iterator[list[Any]]:
    """What the channels of a task could say; most of them keep up, some cancel or end."""
    generator = random.Random(f"sluice 14.1 {seed}")
    for _ in range(80):
        num_channels = generator.randint(1, 5)
        ops: list[Any] = [["channels", num_channels]]
        standing = _Standing(BarrierAligner(num_channels))
        for _ in range(generator.randint(3, 26)):
            channel = generator.randrange(num_channels)
            number = max([1, *standing.said.values()]) + generator.choice((-2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 3))
            op: list[Any] = ["barrier", channel, number]
            if generator.random() < 0.18:
                op = ["cancel", channel, number]
            elif generator.random() < 0.05:
                op = ["end", channel]
            if standing.may(op):
                standing.do(op)
                ops.append(op)
        if len(ops) > 1:
            yield ops


# -- beliefs -----------------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = found.got.get("out", []), found.want["out"]
    name, channel, *number = found.op
    standing = _standing(found.before)
    values = {"got": _WORDS.said(got), "want": _WORDS.said(want), "channel": str(channel),
              "number": "".join(map(str, number)), "latest": str(standing.aligner.latest_checkpoint_id)}  # fmt: skip
    for told in map(str, got):
        if told.startswith("?"):
            return _WORDS.code_of_strange(told), {**values, "got": told.removeprefix(NO_LIST).removeprefix("? ")}
    every = Decided.of(got, want)
    if every.is_of_another_reason:
        return "wrong_reason", values
    if name == "barrier":
        return _on_barrier(found.op, standing, every), values
    return _on_cancellation(found.op, standing, every) if name == "cancel" else _on_end(every), values


_WORDS = DecidedWords("14.1", ("complete_number", "abort_barrier", "abort_reason"))


def _resumed(told: Decided) -> list[int]:
    return [int(each.split()[1]) for each in told.got if each.startswith("resume")]


def _on_barrier(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    aligner, number = standing.aligner, op[2]
    latest, is_awaiting = aligner.latest_checkpoint_id, aligner.barrier is not None
    if number < latest or (number == latest and not is_awaiting):
        return _of_what_is_over(number, standing, told)
    if number > latest and is_awaiting:
        return _of_a_newer(op, told)
    if number > latest + 1 and latest > 0 and told.got == [f"resume {op[1]}"]:
        return "numbers_in_order"
    return _of_the_cut(op, standing, told) if told.want else _too_early(standing, told)


def _of_what_is_over(number: int, standing: _Standing, told: Decided) -> str:
    if told.is_more("abort"):
        return "aborts_for_nothing"
    if told.is_more("resume"):
        return "resume_not_stopped"
    if number < standing.aligner.latest_checkpoint_id:
        return "older_counts" if standing.aligner.barrier is not None else "stays_blocked"
    return "begins_again" if number in standing.seen else "forgets_cancelled"


def _of_a_newer(op: Sequence[Any], told: Decided) -> str:
    if told.is_more("complete"):
        return "mixes_checkpoints"
    if told.is_more("abort"):
        return "aborts_newer" if told.is_less("abort") else "two_aborts"
    if told.is_more("resume"):
        return "newer_goes_on" if op[1] in _resumed(told) else "resume_not_stopped"
    if told.is_less("abort"):
        return "newer_ignored" if told.is_less("resume") else "subsumed_silently"
    return "subsumed_keeps_blocked"


def _too_early(standing: _Standing, told: Decided) -> str:
    if told.is_more("complete"):
        return "never_reset" if standing.is_any_over else "cut_too_early"
    return "reads_on" if told.is_more("resume") else "aborts_for_nothing"


def _of_the_cut(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    if told.is_more("complete"):
        return "completes_twice"
    if told.is_more("abort"):
        return "aborts_for_nothing"
    if told.is_less("complete"):
        return "waits_for_the_dead" if standing.aligner.ended else "never_complete"
    if told.is_more("resume"):
        return "resume_not_stopped"
    if not _resumed(told):
        return "nobody_goes_on"
    if _resumed(told) == [op[1]]:
        return "only_last_goes_on"
    return "last_stays_blocked" if told.less == Counter([f"resume {op[1]}"]) else "some_stay_blocked"


def _on_cancellation(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    number, latest = op[2], standing.aligner.latest_checkpoint_id
    if told.is_more("complete"):
        return "cancel_completes"
    if told.is_more("abort"):
        if told.want and not told.is_less("abort"):
            return "two_aborts"
        if f"abort {number} CANCELLED" not in told.more:
            return "cancels_other"
        if number < latest:
            return "cancels_old"
        return "cancelled_again" if number in standing.seen else "cancel_not_noted"
    if told.is_less("abort"):
        if told.got:
            return "cancelled_silently"
        return "cancel_unknown" if number > latest else "cancel_ignored"
    return "cancel_keeps_blocked" if told.is_less("resume") else "resume_not_stopped"


def _on_end(told: Decided) -> str:
    if told.is_more("complete"):
        return "end_counts"
    if told.is_more("abort"):
        return "end_aborts_nothing" if not told.want else "two_aborts"
    if told.is_less("abort"):
        return "end_silently" if told.got else "end_ignored"
    return "end_keeps_blocked" if told.is_less("resume") else "resume_not_stopped"


CHECK = TranscriptCheck(
    "14.1", BarrierAligner, driver, scripts("channels", _CASES), _belief,
    Seeded("I", _seeded, is_valid=_is_valid, setup="channels"),
    words=_WORDS,
)  # fmt: skip
