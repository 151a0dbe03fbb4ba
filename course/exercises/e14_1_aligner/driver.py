"""Runs one case of exercise 14.1 against an aligner of barriers and writes down what it decides.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["channels", n]         an aligner for n channels
    ["barrier", i, id]      channel i has delivered the barrier of a checkpoint, and stopped
    ["cancel", i, id]       channel i says that a checkpoint will not be
    ["end", i]              channel i has ended

An event is [method] before an operation and [method, {"out": [...]}] after it: "resume 0", "complete 1" and
"abort 1 SUBSUMED", in an order of their own, and "? …" for what is none of these.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import members, whole
from refimpl.consumer.barrier_handler import Abort, AbortReason, Complete, ResumeChannel
from refimpl.records.events import CheckpointBarrier

__all__ = ["WATCHED", "run_case"]

WATCHED = (CheckpointBarrier, ResumeChannel, Complete, Abort)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_MOST = 400


def _told(decision: Any) -> str:
    match decision:
        case ResumeChannel(channel) if whole(channel) is not None:
            return f"resume {whole(channel)}"
        case Complete(CheckpointBarrier() as barrier) if whole(barrier.checkpoint_id) is not None:
            return f"complete {whole(barrier.checkpoint_id)}"
        case Complete(number) if whole(number) is not None:
            return "? complete_number"
        case Abort(number, AbortReason() as reason) if whole(number) is not None:
            return f"abort {whole(number)} {reason.name}"
        case Abort(CheckpointBarrier(), _):
            return "? abort_barrier"
        case Abort():
            return "? abort_reason"
    return f"? {type(decision).__name__[:30]}"


def _out(answer: Any) -> list[str]:
    listed = members(answer)
    if listed is None:
        return [f"? no list: {type(answer).__name__[:30]}"]
    return sorted((_told(each) for each in listed[:_MOST]), key=_order)


def _order(told: str) -> tuple[bool, str, int]:
    """What cannot be, aborts, completions, then resumes by channel."""
    kind, _, rest = told.partition(" ")
    return kind == "resume", kind, int(rest) if kind == "resume" else 0


_METHODS = {"barrier": "on_barrier", "cancel": "on_cancellation", "end": "on_end"}


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, num_channels), *rest = case
    events.append(["__init__"])
    aligner = part(num_channels)
    events[-1].append({})
    for op in rest:
        event: list[Any] = [_METHODS[op[0]]]
        events.append(event)
        match op:
            case ["barrier", channel, number]:
                answer = aligner.on_barrier(channel, CheckpointBarrier(number, 1_000 + channel))
            case ["cancel", channel, number]:
                answer = aligner.on_cancellation(channel, number)
            case ["end", channel]:
                aligner.note_end(channel)
                answer = aligner.on_end(channel)
        event.append({"out": _out(answer)})
