"""Exercise 15.1: its rules, their cases, and the belief behind each wrong answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.checks.common import scripts
from course.checks.decided import NO_LIST, Decided, DecidedWords
from course.checks.transcript import Belief, Difference, Seeded, TranscriptCheck
from course.exercises.e15_1_unaligner import driver
from refimpl.consumer.unaligned import BarrierUnaligner, CaptureState

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
        "2 / barrier 0 1 / barrier 0 2 / barrier 1 2",
        "3 / barrier 0 1 / barrier 2 5 / barrier 0 7 / barrier 2 7 / barrier 1 7",
        "4 / barrier 3 2 / barrier 1 2 / barrier 0 2 / barrier 2 3 / barrier 1 4",
        "3 / barrier 1 1 / barrier 1 2 / barrier 1 3 / barrier 0 3 / barrier 2 3",
    ],
    "E": [
        "2 / barrier 0 1 / cancel 1 1", "2 / barrier 0 1 / cancel 1 1 / barrier 0 2 / barrier 1 2",
        "3 / barrier 2 4 / barrier 0 4 / cancel 1 4",
        "3 / barrier 0 1 / barrier 2 1 / cancel 1 4", "2 / cancel 0 3", "3 / barrier 0 3 / cancel 1 2",
        "3 / barrier 0 2 / cancel 1 2 / cancel 2 2", "3 / cancel 0 3 / cancel 1 3 / cancel 2 3",
        "2 / cancel 0 3 / cancel 1 2", "1 / cancel 0 2 / barrier 0 3 / cancel 0 5 / cancel 0 6",
        "2 / barrier 0 1 / cancel 1 1 / barrier 1 2 / barrier 0 2",
        "2 / barrier 0 1 / barrier 1 1 / cancel 0 2 / cancel 1 2",
        "3 / barrier 1 3 / cancel 0 2 / barrier 0 3 / barrier 2 3",
        "3 / barrier 0 1 / cancel 0 2 / barrier 1 3 / barrier 0 3 / barrier 2 3",
    ],
    "F": [
        "2 / cancel 0 5 / barrier 1 3", "3 / barrier 0 1 / barrier 0 2 / barrier 2 1 / barrier 1 2 / barrier 2 2",
        "3 / barrier 0 1 / barrier 1 2 / barrier 2 1", "3 / barrier 1 1 / barrier 1 2 / barrier 0 2 / barrier 2 1",
        "3 / barrier 0 1 / cancel 1 1 / barrier 2 1", "2 / cancel 0 5 / barrier 1 5",
        "3 / barrier 0 1 / barrier 1 2 / barrier 2 1 / barrier 0 2 / barrier 2 2",
        "3 / cancel 0 2 / barrier 1 2 / barrier 2 1 / barrier 2 2 / barrier 0 3 / barrier 1 3 / barrier 2 3",
        "4 / barrier 0 2 / barrier 1 3 / barrier 2 1 / barrier 2 2 / barrier 3 3 / barrier 0 3 / barrier 2 3",
        "3 / barrier 0 1 / cancel 1 4 / barrier 2 1 / barrier 0 2 / barrier 2 4 / barrier 0 4",
    ],
    "G": [
        "2 / end 0", "2 / end 0 / barrier 1 1", "2 / barrier 0 1 / end 1", "3 / barrier 0 1 / end 2",
        "2 / barrier 0 1 / end 0", "3 / barrier 0 1 / barrier 2 1 / end 2 / barrier 1 1",
        "3 / end 1 / barrier 0 1 / barrier 2 1 / barrier 2 2 / barrier 0 2", "3 / barrier 0 1 / end 1 / barrier 2 1",
        "3 / barrier 0 1 / end 1 / barrier 0 2 / barrier 2 2", "3 / end 2 / end 0 / barrier 1 4 / end 1",
        "2 / barrier 0 1 / barrier 1 1 / end 1 / barrier 0 2 / end 0", "3 / end 0 / barrier 1 1 / cancel 2 1",
        "4 / end 3 / barrier 0 1 / barrier 2 1 / end 1 / barrier 0 2 / barrier 2 2",
        "2 / cancel 0 3 / end 0 / barrier 1 3", "3 / barrier 1 2 / end 1 / end 0 / barrier 2 4",
        "3 / end 0 / barrier 1 1 / barrier 2 2 / barrier 1 2",
    ],
    "H": [
        "2 / barrier 0 1 / aborted 1", "2 / barrier 0 1 / aborted 1 / barrier 1 1",
        "2 / barrier 0 1 / aborted 1 / barrier 1 2 / barrier 0 2", "3 / barrier 0 1 / aborted 1 / cancel 1 1",
        "3 / barrier 0 4 / aborted 3 / barrier 1 4 / barrier 2 4", "2 / barrier 0 4 / aborted 5 / barrier 1 4",
        "2 / aborted 5 / barrier 1 5 / barrier 0 5", "2 / aborted 3 / barrier 0 2 / barrier 1 2",
        "2 / barrier 0 1 / barrier 1 1 / aborted 1 / barrier 0 2 / barrier 1 2",
        "2 / barrier 0 1 / aborted 1 / end 1 / barrier 0 2", "2 / cancel 0 3 / aborted 3 / barrier 1 3 / barrier 1 4",
        "3 / barrier 0 1 / aborted 1 / aborted 1 / barrier 2 1 / barrier 1 1 / barrier 1 2",
        "2 / barrier 0 2 / aborted 3 / barrier 1 3 / barrier 0 3", "3 / end 2 / aborted 1 / barrier 0 1 / barrier 1 1",
    ],
    "I": [
        f"2 / barrier 0 {_FAR} / barrier 1 {_FAR} / barrier 1 {_FAR + 3} / barrier 0 {_FAR + 4} / barrier 1 {_FAR + 4}",
        f"2 / barrier 0 {_FAR} / aborted {_FAR} / barrier 1 {_FAR}", f"2 / barrier 0 {_FAR} / cancel 1 {_FAR}",
        f"40 / {_all_deliver(1, range(40))} / {_all_deliver(2, range(39, -1, -1))}",
        f"300 / {_all_deliver(257, range(300))}", f"300 / {_all_deliver(257, range(299))} / cancel 299 258",
        f"300 / {_all_deliver(600, range(299))} / end 299",
    ],
}  # fmt: skip


# -- what stands when an operation begins ----------------------------------------------------------------


@dataclass
class _Standing:
    """A reference part, and what it can not be asked: what each channel has said last, and who gave up what."""

    unaligner: BarrierUnaligner
    said: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)  # numbers of which a barrier has come
    late: set[int] = field(default_factory=set)  # channels that brought an old barrier since the newest began
    lost: set[int] = field(default_factory=set)  # numbers that were cancelled, or that an end has aborted
    aborted: set[int] = field(default_factory=set)  # numbers that somebody else has given up
    is_any_over: bool = False

    @property
    def is_capturing(self) -> bool:
        return self.unaligner.state is CaptureState.CAPTURING

    def may(self, op: Sequence[Any]) -> bool:
        """Whether that could happen: a channel has not ended, and counts upwards."""
        if op[0] == "aborted":
            return bool(op[1] > 0)
        name, channel, *number = op
        return channel not in self.unaligner.ended and (name == "end" or number[0] > self.said.get(channel, 0))

    def do(self, op: Sequence[Any]) -> None:
        events: list[Any] = []
        was_capturing = self.is_capturing
        driver.run_case(lambda _: self.unaligner, [["channels", 0], list(op)], events)
        match op:
            case ["barrier", channel, number]:
                is_old = number < self.unaligner.latest_checkpoint_id
                self.late = {*self.late, channel} if is_old else self.late if was_capturing else set()
                self.seen.add(number)
                self.said[channel] = number
            case ["cancel", channel, number]:
                self.said[channel] = number
            case ["aborted", number]:
                self.aborted.add(number)
        told = [each.split() for each in events[-1][1]["out"]]
        self.lost |= {int(number) for kind, number, *_ in told if kind == "abort" and op[0] != "barrier"}
        self.is_any_over |= any(kind != "start" for kind, *_ in told) or (was_capturing and not self.is_capturing)


def _standing(ops: Sequence[Any]) -> _Standing:
    found = _Standing(BarrierUnaligner(ops[0][1]))
    for op in ops[1:]:
        found.do(op)
    return found


def _is_valid(ops: list[Any]) -> bool:
    standing = _Standing(BarrierUnaligner(ops[0][1]))
    for op in ops[1:]:
        if not standing.may(op):
            return False
        standing.do(op)
    return True


def _seeded(seed: int) -> Iterator[list[Any]]:
    """What the channels of a task could say, and others of its checkpoints; most channels keep up."""
    generator = random.Random(f"sluice 15.1 {seed}")
    for _ in range(80):
        num_channels = generator.randint(1, 5)
        ops: list[Any] = [["channels", num_channels]]
        standing = _Standing(BarrierUnaligner(num_channels))
        for _ in range(generator.randint(3, 26)):
            channel = generator.randrange(num_channels)
            number = max(1, max([1, *standing.said.values()]) + generator.choice((-2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 3)))
            op: list[Any] = ["barrier", channel, number]
            match generator.random():
                case chance if chance < 0.15:
                    op = ["cancel", channel, number]
                case chance if chance < 0.25:
                    op = ["aborted", number]
                case chance if chance < 0.29:
                    op = ["end", channel]
            if standing.may(op):
                standing.do(op)
                ops.append(op)
        if len(ops) > 1:
            yield ops


# -- beliefs -----------------------------------------------------------------------------------------------


def _belief(found: Difference) -> Belief:
    got, want = found.got.get("out", []), found.want["out"]
    name, *told = found.op
    standing = _standing(found.before)
    channel = "" if name == "aborted" else str(told.pop(0))
    values = {"got": _WORDS.said(got), "want": _WORDS.said(want), "channel": channel, "number": "".join(map(str, told)),
              "latest": str(standing.unaligner.latest_checkpoint_id)}  # fmt: skip
    for each in map(str, got):
        if each.startswith("?"):
            return _WORDS.code_of_strange(each), {**values, "got": each.removeprefix(NO_LIST).removeprefix("? ")}
    every = Decided.of(got, want)
    if every.is_of_another_reason:
        return "wrong_reason", values
    if name == "barrier":
        return _on_barrier(found.op, standing, every), values
    if name == "cancel":
        return _on_cancellation(found.op, standing, every), values
    return _on_end(found.op, standing, every) if name == "end" else "says_aborted", values


_WORDS = DecidedWords(
    "15.1", ("start_number", "captured_barrier", "abort_barrier", "abort_reason", "resume", "complete")
)


def _on_barrier(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    number, latest = op[2], standing.unaligner.latest_checkpoint_id
    if number > latest:
        return _of_a_newer(number, standing, told)
    if number < latest or not standing.is_capturing:
        return _of_what_is_over(number, standing, told)
    return _of_what_is_captured(number, standing, told)


def _of_a_newer(number: int, standing: _Standing, told: Decided) -> str:
    """A barrier that begins a checkpoint; it may be the last one at once."""
    if told.is_more("captured"):
        if standing.is_capturing and told.is_less("start"):
            return "mixes_checkpoints"
        return "never_reset" if standing.is_any_over or standing.is_capturing else "captured_too_early"
    if told.is_more("abort"):
        return "aborts_newer" if told.is_less("abort") else _of_a_second_abort(standing)
    if told.is_more("start"):
        return "starts_again"
    if told.is_less("start"):
        return _without_start(number, standing, told)
    if told.is_less("abort"):
        return "subsumed_silently"
    return "waits_for_the_dead" if standing.unaligner.ended else "never_captured"


def _of_a_second_abort(standing: _Standing) -> str:
    latest = standing.unaligner.latest_checkpoint_id
    return "over_goes_on" if latest in standing.lost | standing.aborted else "aborts_for_nothing"


def _without_start(number: int, standing: _Standing, told: Decided) -> str:
    if standing.is_capturing:
        return "no_start" if told.got else "newer_ignored"
    if any(each >= number for each in standing.aborted):
        return "remembers_unknown"
    if standing.unaligner.latest_checkpoint_id >= 0 and not told.got:
        return "numbers_in_order"
    return "no_start" if told.got else "cut_too_late"


def _of_what_is_over(number: int, standing: _Standing, told: Decided) -> str:
    if told.is_more("abort"):
        return "aborts_for_nothing"
    if told.is_more("captured") and not told.is_more("start"):
        if number in standing.aborted:
            return "goes_on_after_abort"
        return "counts_when_over" if number in standing.lost else "older_counts"
    if number < standing.unaligner.latest_checkpoint_id:
        return "older_starts"
    return "begins_again" if number in standing.seen else "forgets_cancelled"


def _of_what_is_captured(number: int, standing: _Standing, told: Decided) -> str:
    if told.is_more("start"):
        return "starts_again" if told.want or told.got != [f"start {number}"] else "starts_with_each"
    if told.is_more("captured"):
        if told.want:
            return "captured_twice"
        if standing.late:
            return "older_counted"
        return "never_reset" if standing.is_any_over else "captured_too_early"
    if told.is_more("abort"):
        return "aborts_for_nothing"
    if standing.aborted - {number}:
        return "aborts_other"
    return "waits_for_the_dead" if standing.unaligner.ended else "never_captured"


def _on_cancellation(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    number, latest = op[2], standing.unaligner.latest_checkpoint_id
    if told.is_more("captured") or told.is_more("start"):
        return "cancel_counts"
    if told.is_more("abort"):
        if told.want and not told.is_less("abort"):
            return "two_aborts"
        if f"abort {number} CANCELLED" not in told.more:
            return "cancels_other"
        if number in standing.aborted:
            return "cancels_aborted"
        if number < latest:
            return "cancels_old"
        return "cancelled_again" if number in standing.seen else "cancel_not_noted"
    return "cancel_unknown" if number > latest else "cancel_ignored"


def _on_end(op: Sequence[Any], standing: _Standing, told: Decided) -> str:
    if told.is_more("captured"):
        return "end_counts"
    if told.is_more("abort") or told.is_more("start"):
        return "end_aborts_nothing" if not told.want else "two_aborts"
    return "end_of_delivered" if op[1] in standing.unaligner.delivered else "end_ignored"


CHECK = TranscriptCheck(
    "15.1", BarrierUnaligner, driver, scripts("channels", _CASES), _belief,
    Seeded("J", _seeded, is_valid=_is_valid, setup="channels"),
    words=_WORDS,
)  # fmt: skip
