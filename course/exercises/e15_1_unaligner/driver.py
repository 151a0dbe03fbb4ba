"""Runs one case of exercise 15.1 against an unaligner and writes down what it decides.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

    ["channels", n]         an unaligner for n channels
    ["barrier", i, id]      channel i has delivered the barrier of a checkpoint, ahead of what waits there
    ["cancel", i, id]       channel i says that a checkpoint will not be
    ["end", i]              channel i has ended
    ["aborted", id]         somebody else has given a checkpoint up

An event is [method] before an operation and [method, {"out": [...]}] after it: "start 1", "captured 1" and
"abort 1 SUBSUMED", in an order of their own, and "? …" for what is none of these.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import members, whole
from refimpl.consumer.barrier_handler import Abort, AbortReason, Captured, Complete, ResumeChannel, StartCapture
from refimpl.records.events import Alignment, CheckpointBarrier

__all__ = ["WATCHED", "run_case"]

WATCHED = (CheckpointBarrier, StartCapture, Captured, Abort)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_MOST = 400


def _told(decision: Any) -> str:
    match decision:
        case StartCapture(CheckpointBarrier() as barrier) if whole(barrier.checkpoint_id) is not None:
            return f"start {whole(barrier.checkpoint_id)}"
        case StartCapture(number) if whole(number) is not None:
            return "? start_number"
        case Captured(number) if whole(number) is not None:
            return f"captured {whole(number)}"
        case Captured(CheckpointBarrier()):
            return "? captured_barrier"
        case Abort(number, AbortReason() as reason) if whole(number) is not None:
            return f"abort {whole(number)} {reason.name}"
        case Abort(CheckpointBarrier(), _):
            return "? abort_barrier"
        case Abort():
            return "? abort_reason"
        case ResumeChannel():
            return "? resume"
        case Complete():
            return "? complete"
    return f"? {type(decision).__name__[:30]}"


def _out(answer: Any) -> list[str]:
    listed = members(answer)
    if listed is None:
        return [f"? no list: {type(answer).__name__[:30]}"]
    return sorted(_told(each) for each in listed[:_MOST])  # in an order of their own: what they mean has none


_METHODS = {"barrier": "on_barrier", "cancel": "on_cancellation", "end": "on_end", "aborted": "on_aborted"}


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (_, num_channels), *rest = case
    events.append(["__init__"])
    unaligner = part(num_channels)
    events[-1].append({})
    for op in rest:
        event: list[Any] = [_METHODS[op[0]]]
        events.append(event)
        match op:
            case ["barrier", channel, number]:
                barrier = CheckpointBarrier(number, 1_000 + channel, alignment=Alignment.UNALIGNED)
                answer = unaligner.on_barrier(channel, barrier)
            case ["cancel", channel, number]:
                answer = unaligner.on_cancellation(channel, number)
            case ["end", channel]:
                unaligner.note_end(channel)
                answer = unaligner.on_end(channel)
            case ["aborted", number]:
                answer = unaligner.on_aborted(number)
        event.append({"out": _out(answer)})
