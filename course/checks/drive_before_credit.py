"""Runs one case of lesson 10 against a part of the way before credits and writes down what can be seen.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only.

Exercise 10.1, the water marks:
    ["marks", low, high]     nothing is pending
    ["hand", n]              a frame of n bytes is handed out
    ["written", n]           the transport has written n bytes more

Exercise 10.2, where data waits:
    ["gate", channels, n]    so many channels whose gate has n buffers
    ["gate", channels, n, m] the same, and the gate can grow to m buffers
    ["grow", n]              the gate has n buffers from now on
    ["ask", c]               data for channel c is here and needs a buffer
    ["read", c]              the task has read the oldest buffer of channel c, and recycles it

An event is [method] before an operation and [method, {group: {field: value}}] after it.
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import own, whole
from refimpl.exchange.before_credit.pool_buffers import BufferWait
from refimpl.memory.buffer import Buffer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool

__all__ = ["WATCHED", "Gate", "run_case"]

WATCHED = (Buffer, BufferWait, LocalBufferPool)
"""The engine's classes that are lent to a part; it leaves them as they are."""


def _plain(value: Any) -> Any:
    """A truth value or a whole number as it is; of everything else what it is."""
    value = own(value)
    if isinstance(value, bool):
        return value
    number = whole(value)
    return ("None" if value is None else type(value).__name__[:30]) if number is None else number


class _Marks:
    """Water marks and what can be read from them."""

    def __init__(self, part: Any, low: int, high: int) -> None:
        self.marks = part(low, high)

    def do(self, op: list[Any]) -> dict[str, Any]:
        if op[0] == "hand":
            self.marks.hand_out(op[1])
        elif op[0] == "written":
            self.marks.confirm(op[1])
        may = _plain(self.marks.is_writable)
        fields = {"out": _plain(self.marks.num_handed_out), "written": _plain(self.marks.num_written),
                  "may": bool(may) if isinstance(may, int) else may}  # fmt: skip
        return {"marks": fields}


class Gate:
    """Channels that share the buffers of one gate; what a task has received and not read is in `held`."""

    def __init__(self, part: Any, num_channels: int, num_buffers: int, most: int = 0) -> None:
        most = max(most, num_buffers)
        self.global_pool = NetworkBufferPool(most, 8)
        self.pool = LocalBufferPool(self.global_pool, num_buffers, most, "input")
        self.pool.set_num_buffers(num_buffers)
        self.channels = [part(self.pool) for _ in range(num_channels)]
        self.held: list[list[Buffer]] = [[] for _ in range(num_channels)]
        self.waits: list[BufferWait | None] = [None] * num_channels

    def do(self, op: list[Any]) -> dict[str, Any]:
        answer = {}
        if op[0] == "ask":
            answer = {"gave": self.answered(op[1], self.channels[op[1]].request_buffer())}
        elif op[0] == "read":
            self.held[op[1]].pop(0).recycle()
        elif op[0] == "grow":
            self.pool.set_num_buffers(op[1])
        shot = self.pool.snapshot()
        lent = sum(map(len, self.held))
        pool = {"lent": shot.num_in_use, "read": lent, "line": shot.num_listeners}
        return {**({"answer": answer} if answer else {}), "pool": pool}

    def answered(self, channel: int, got: Any) -> str:
        before, self.waits[channel] = self.waits[channel], got if isinstance(got, BufferWait) else None
        if isinstance(got, Buffer):
            is_new = not got.is_recycled and all(got is not each for held in self.held for each in held)
            self.held[channel].append(got)
            return "a buffer" if is_new else "an old buffer"
        if isinstance(got, BufferWait):
            if got.is_over:
                return "a wait that is over"
            was_left = before is not None and before is not got and before.is_over
            return "a new place in the line" if was_left else "a wait"
        return "nothing" if got is None else f"? {type(got).__name__[:30]}"


_WHERE = {"hand": "hand_out", "written": "written", "ask": "request_buffer", "read": "the task", "grow": "the pool"}


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (kind, *given), *rest = case
    first: list[Any] = ["__init__"]
    events.append(first)
    world: Any = _Marks(part, *given) if kind == "marks" else Gate(part, *given)
    first.append(world.do(["look"]))
    for op in rest:
        event: list[Any] = [_WHERE[op[0]]]
        events.append(event)
        event.append(world.do(op))
