"""Runs one case of lesson 5, against a selector or against a channel copy, and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. For a selector:

    ["new", m, n, type]        m key groups, n channels; type is "INT" or None
    ["call", METHOD, key]      an event is [METHOD, {"answer": …}], as in drive_calls; a list is a tuple

For a copy, a real writer with a real pool and real queues, which copies with it:

    ["writer", channels, segment, buffers, timeout]
    ["emit", channel, data]    a record of these bytes (hex) to one channel
    ["broadcast", data]        to every channel
    ["take", channel]          a buffer is read, and comes home
    ["resume"]                 the writer goes on with what waits

An event is [op] before and [op, fields] after it:

    answer    what `resume` said, or why a buffer could not be taken
    queues    of each channel the buffers in its queue, as hex with "|" behind one that is closed
    told      of each channel, whether its reader has been told of something to read
    free, blocked, pruned    buffers of the pool, whether the writer waits, whether it has no record
    after     how many records were said to be in
"""

from __future__ import annotations

from functools import partial
from typing import Any

from course.grading.kinds import whole
from refimpl.config import Config
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    ChannelCopy,
    KeyGroupSelector,
    PipelinedSubpartition,
    RecordWriter,
    ResultPartition,
    RoundRobinSelector,
)
from refimpl.records import INT, SpanningRecordSerializer, StreamElementSerializer, StreamRecord

__all__ = ["WATCHED", "key_of", "run_case"]

WATCHED = (KeyGroupSelector, ChannelCopy, RecordWriter, ResultPartition, PipelinedSubpartition)
"""The engine's classes that are lent to a part; it leaves them as they are."""


def key_of(written: object) -> object:
    """A key as the job has it: a list stands for a tuple, which plain data has none of."""
    return tuple(map(key_of, written)) if isinstance(written, list) else written


def _plain(value: Any) -> list[str]:
    if (number := whole(value)) is not None:
        return ["int", str(number)[:80]]
    if type(value) in (type(None), bool, float, str):
        return [type(value).__name__, str(value)[:80]]
    return ["object", type(value).__name__[:40]]


class _Payload:
    """Values that are their own bytes, but for the first, whose place the element's tag takes."""

    name = "payload"
    struct_format = None

    def serialize(self, value: bytes, target: bytearray) -> None:
        target += value[1:]


class _Serializer(SpanningRecordSerializer):
    """Remembers whether the record has been pruned."""

    is_pruned = True

    def serialize_record(self, record: bytes) -> None:
        super().serialize_record(record)
        self.is_pruned = False

    def prune(self) -> None:
        super().prune()
        self.is_pruned = True


class _Bench:
    """A writer with real pools, and a part that copies."""

    def __init__(self, part: type[ChannelCopy], channels: int, segment: int, buffers: int, timeout: int) -> None:
        config = Config(segment_size_bytes=segment, num_buffers=buffers, buffer_timeout_ms=timeout)
        self.pool = NetworkBufferPool(buffers, segment)
        pool = LocalBufferPool(self.pool, 1, buffers, num_channels=channels)
        pool.set_num_buffers(buffers)
        self.partition = ResultPartition("map-0", channels, pool, config)
        self.told = [False] * channels
        for channel, queue in enumerate(self.partition.subpartitions):
            queue.view.open(partial(self.tell, channel))
        self.serializer = _Serializer()
        elements = StreamElementSerializer(_Payload())  # type: ignore[arg-type]  # this needs no more of a type
        self.writer = RecordWriter(self.partition, RoundRobinSelector(), elements, self.serializer)
        self.writer.swap_copy(part)
        self.num_after = 0  # how often the copy was told that a record is in
        after_record = self.writer.copy.after_record

        def count(channel: int) -> None:
            self.num_after += 1
            after_record(channel)

        self.writer.copy.after_record = count  # type: ignore[method-assign]  # each call is counted

    def tell(self, channel: int) -> None:
        self.told[channel] = True

    def do(self, name: str, rest: list[Any]) -> object:
        match name:
            case "emit":
                self.writer.emit_to(StreamRecord(bytes.fromhex(rest[1]), None), rest[0])
            case "broadcast":
                self.writer.broadcast(StreamRecord(bytes.fromhex(rest[0]), None))
            case "take":
                try:
                    taken = self.partition.subpartitions[rest[0]].poll()
                except AssertionError:  # the queue's own law: only its last buffer may be open
                    return "an open buffer in the way"
                if taken is not None:
                    taken.buffer.recycle()
            case "resume":
                return bool(self.writer.resume())
        return None

    def state(self) -> dict[str, Any]:
        queues = []
        for queue in self.partition.subpartitions:
            entries = []
            for consumer, entry in zip(queue.queue, queue.snapshot().queue, strict=True):
                data = bytes(consumer.buffer.memory[: entry.written_bytes])
                entries.append(data.hex() + ("|" if entry.is_finished else ""))
            queues.append(entries)
        return {
            "queues": queues, "told": [*self.told], "free": self.pool.num_free, "blocked": self.writer.is_blocked,
            "pruned": self.serializer.is_pruned, "after": self.num_after,
        }  # fmt: skip


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    bench: Any = None
    selector: Any = None
    for name, *rest in case:
        event: list[Any] = [rest[0] if name == "call" else name]
        events.append(event)
        if name == "new":
            selector = part(lambda value: value, rest[0], INT if rest[2] else None)
            selector.setup(rest[1])
            event.append({"answer": ["made", ""]})
        elif name == "call":
            event.append({"answer": _plain(getattr(selector, rest[0])(key_of(rest[1])))})
        elif name == "writer":
            bench = _Bench(part, *rest)
            event.append({"answer": None, **bench.state()})
        else:
            answer = bench.do(name, rest)
            event.append({"answer": answer, **bench.state()})
