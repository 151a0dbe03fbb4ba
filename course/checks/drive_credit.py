"""Runs one case of lesson 11 against the two ends of a channel's credit and writes down what can be seen.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. Everything around the part is the engine's own, built small. The first operation
says which end it is.

Exercise 11.1, the receiver:
    ["channels", channels, own, floating]    so many channels with `own` buffers each, which share `floating`
    ["backlog", channel, n]                  the producer reports a backlog of n
    ["meanwhile", channel, n]                the same; the floating buffers are elsewhere, and one of them is home again
                                             before the channel stands in line. Then the same report comes once more
    ["data", channel]                        a data buffer comes, with no word about the backlog
    ["read", channel, k]                     the task has read the k-th buffer it holds, and recycles it
    ["announce", channel]                    the connection can send: all credit goes out that was not announced

Exercise 11.2, the sender:
    ["reader", credit]                       a reader opened with this credit, on an empty subpartition
    ["data"]  ["event"]                      a full data buffer, or an event, is queued
    ["credit", n]                            the consumer grants n
    ["available"]                            may it speak?
    ["next"]                                 it speaks: what goes out, and whether it may go on

An event is [method] before an operation and [method, {group: {field: value}}] after it.
"""

from __future__ import annotations

from typing import Any

import refimpl.consumer  # noqa: F401 (so that a learner's own import of it costs nothing)
from course.grading.kinds import own, whole
from refimpl.exchange.messages import PartitionRequest, ProducerId, ResultPartitionId
from refimpl.memory.buffer import Buffer, BufferSlice, heap_buffer
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.data_type import DataType
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.subpartition import PipelinedSubpartition

__all__ = ["WATCHED", "Gate", "Reader", "run_case"]

WATCHED = (Buffer, LocalBufferPool, NetworkBufferPool, PipelinedSubpartition, MemorySegment)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_SEGMENT_BYTES = 8
_PARTITION = ResultPartitionId(b"\x11" * 16, 0, ProducerId(b"\x22" * 16))


def _plain(value: Any) -> Any:
    """A whole number as it is; of everything else what it is, so that no object of the learner's is compared."""
    value = own(value)
    if isinstance(value, bool):
        return value
    number = whole(value)
    return ("None" if value is None else type(value).__name__[:30]) if number is None else number


# -- 11.1: the receiver ------------------------------------------------------------------------------


class _FloatingPool(LocalBufferPool):
    """A pool whose buffers may be elsewhere; one of them comes home just before somebody stands in line."""

    coming: Buffer | None = None

    def lend_all(self) -> None:
        """Everything that is here is lent to somebody who soon brings back one."""
        self.coming, *_ = iter(self.request_buffer, None)

    def add_listener(self, listener: Any) -> bool:
        """False where a buffer has come: whoever asks does not stand in line then."""
        if self.coming is not None:
            self.coming.recycle()
            self.coming = None
        return super().add_listener(listener)


class Gate:
    """Channels and the pool they share; what a task has received and not read is in `held`."""

    def __init__(self, part: Any, num_channels: int, num_own: int, num_floating: int) -> None:
        self.pool = NetworkBufferPool(num_channels * num_own + num_floating, _SEGMENT_BYTES)
        self.floating = _FloatingPool(self.pool, 0, num_floating, "floating")
        self.calls = [0] * num_channels
        self.managers = []
        self.held: list[list[Buffer]] = [[] for _ in range(num_channels)]
        for channel in range(num_channels):
            segments = self.pool.request_unpooled(num_own, f"channel {channel}")

            def on_credit(channel: int = channel) -> None:
                self.calls[channel] += 1

            self.managers.append(part(segments, self.pool, self.floating, on_credit))

    def do(self, op: list[Any]) -> dict[str, Any]:
        match op:
            case ["backlog", channel, n]:
                self.managers[channel].on_backlog(n)
            case ["meanwhile", channel, n]:
                self.floating.lend_all()
                self.managers[channel].on_backlog(n)
                self.managers[channel].on_backlog(n)  # who was told that there is one now has asked again by now
            case ["data", channel]:
                buffer = self.managers[channel].request_buffer()
                assert buffer is not None, "data came for which no credit was given"
                self.held[channel].append(buffer)
            case ["read", channel, k]:
                self.held[channel].pop(k).recycle()
            case ["announce", channel]:
                self.managers[channel].credit.announce()
                self.calls[channel] = 0
        return self.seen()

    def seen(self) -> dict[str, Any]:
        groups: dict[str, Any] = {}
        for number, manager in enumerate(self.managers):
            credit = manager.credit
            unannounced = _plain(credit.num_unannounced)
            # Whoever has something to announce must have said so since the last time; oftener does no harm.
            told = unannounced == 0 or self.calls[number] > 0
            groups[f"channel {number}"] = {
                "wanted": _plain(credit.num_required), "own": len(manager.exclusive),
                "floating": len(manager.floating), "unannounced": unannounced,
                "promised": _plain(credit.num_promised), "told": told,
            }  # fmt: skip
        shot = self.floating.snapshot()
        empty = shot.num_max - shot.num_in_use
        return {**groups, "pool": {"free": empty, "line": shot.num_listeners}}


_RECEIVER = {
    "backlog": "on_backlog", "meanwhile": "on_backlog", "data": "request_buffer", "read": "on_recycled",
    "announce": "announce",
}  # fmt: skip


# -- 11.2: the sender ----------------------------------------------------------------------------------


class _View:
    """A subpartition, and what was polled from it since the last look, with the references each had then."""

    def __init__(self) -> None:
        self.subpartition = PipelinedSubpartition(0)
        self.owner = "map-0"
        self.num_queued = 0
        self.polled: list[Any] = []
        self.num_references: list[int] = []

    @property
    def is_data_available(self) -> bool:
        return self.subpartition.is_data_available

    @property
    def is_event_available(self) -> bool:
        return self.subpartition.is_event_available

    @property
    def failure_cause(self) -> str | None:
        return None

    def open(self, on_data_available: Any) -> None:
        self.subpartition.view.open(on_data_available)

    def close(self) -> None:
        self.subpartition.view.close()

    def resume(self) -> None:
        self.subpartition.view.resume()

    def poll(self) -> Any:
        taken = self.subpartition.poll()
        self.polled.append(taken)
        self.num_references.append(0 if taken is None else taken.buffer.parent.num_references)
        return taken

    def forget(self) -> None:
        """Begin to note anew what is polled."""
        self.polled.clear()
        self.num_references.clear()

    def queue(self, data_type: DataType) -> None:
        self.num_queued += 1
        buffer = heap_buffer(bytes([self.num_queued]) * 4, data_type)
        self.subpartition.add(BufferConsumer.of_buffer(buffer))


class Reader:
    """A reader of a view, and what one would see who asks it."""

    def __init__(self, part: Any, credit: int) -> None:
        self.view = _View()
        request = PartitionRequest(_PARTITION, 0, 0, b"\x33" * 16, credit)
        self.reader = part(self.view, request)
        self.view.open(lambda: None)

    def do(self, op: list[Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        match op:
            case ["data"]:
                self.view.queue(DataType.DATA)
            case ["event"]:
                self.view.queue(DataType.EVENT)
            case ["credit", n]:
                self.reader.add_credit(n)
            case ["available"]:
                may = self.reader.is_available
                answer = {"may": _truth(may)}
            case ["next"]:
                self.view.forget()
                has_any = self.view.is_data_available or self.view.is_event_available
                answer = self.spoken(self.reader.poll())
                if not has_any:  # to ask for what is not there takes nothing, and not to ask is as good
                    del answer["asked"]
        return {**({"answer": answer} if answer else {}), "reader": {"credit": _plain(self.reader.credit)}}

    def spoken(self, turn: Any) -> dict[str, Any]:
        """What went out, whether the reader may go on, and how often it asked its view."""
        polled = self.view.polled
        if turn is None:
            went, more = "nothing", False
        elif not isinstance(turn, tuple | list) or len(turn) != 2 or not any(turn[0] is each for each in polled):
            went, more = f"? {_shape(turn, polled)}", False
        elif turn[0] is None:
            went, more = "? a pair with None in it", False
        else:
            taken, more = turn
            index = next(i for i, each in enumerate(polled) if each is taken)
            went = _name(taken.buffer, self.view.num_references[index])
        return {"out": went, "more": _truth(more), "asked": len(polled)}


def _name(buffer: BufferSlice, num_references: int) -> str:
    now = buffer.parent.num_references
    if now != num_references:
        return "with a reference more" if now > num_references else "given back"
    return f"{'data' if buffer.is_buffer else 'event'} {bytes(buffer.data)[0]}"


def _shape(turn: Any, polled: list[Any]) -> str:
    if any(turn is each for each in polled):
        return "what the view gave, alone"
    if isinstance(turn, BufferSlice | Buffer):
        return "a buffer"
    return f"a tuple of {len(turn)}" if isinstance(turn, tuple) else type(turn).__name__[:30]


def _truth(value: object) -> Any:
    """Whether it counts as true where the engine asks; of what is no truth value, what it is."""
    if callable(value):
        return "a method"
    seen = _plain(value)
    return seen if isinstance(seen, str) else bool(seen)


_SENDER = {
    "data": "the queue", "event": "the queue", "credit": "add_credit", "available": "is_available", "next": "poll",
}  # fmt: skip


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    (kind, *given), *rest = case
    first: list[Any] = ["__init__"]
    events.append(first)
    if kind == "channels":
        world: Any = Gate(part, *given)
        where = _RECEIVER
        first.append(world.seen())
    else:
        world = Reader(part, *given)
        where = _SENDER
        first.append(world.do(["look"]))
    for op in rest:
        event: list[Any] = [where[op[0]]]
        events.append(event)
        event.append(world.do(op))
