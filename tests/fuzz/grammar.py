"""What the other end may say: frames as they should be, frames with one field gone wrong, and plain noise."""

from __future__ import annotations

import struct
from functools import cache
from random import Random

from refimpl.config import FlinkVersion
from refimpl.exchange import (
    ILLEGAL_STATE,
    PRODUCER_FAILED,
    JavaError,
    ResultPartitionId,
    partition_not_found,
    write_java_error,
)
from refimpl.memory import DataType
from refimpl.records import (
    ALL_WORKERS_DONE,
    Alignment,
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    Event,
    EventAnnouncement,
    StopMode,
    WatermarkEvent,
    event_to_buffer,
)
from tests.fuzz.consumer_end import receiver
from tests.fuzz.inputs import NUM_CHANNELS
from tests.fuzz.java_objects import java_stream
from tests.fuzz.producer_end import PARTITION, UNKNOWN
from tests.fuzz.words import Words, frame, hostile_int, no_frame

__all__ = ["ConsumersWords", "ProducersWords"]

LONG_EVENTS_BYTES = (900, 960, 961, 1_100, 4_032, 4_033, 30_000, 70_000)  # around what a channel may be left with
MORE_THAN_STRANGERS = 1_100  # a consumer bears 1000 receivers it does not know
MORE_THAN_ANSWERS = 4_200  # a producer keeps 4096 errors that nobody fetches

_not_found = cache(partition_not_found)
_error = cache(write_java_error)


class ConsumersWords(Words):
    """What a consumer says."""

    def anything(self) -> bytes:
        """One frame."""
        rng = self.rng
        choice = rng.random()
        if choice < 0.3:
            return self.request(rng.randrange(NUM_CHANNELS))
        if choice < 0.62:
            return self._finished(6, self._int(rng.randrange(1, 4)) + self._someone())
        if choice < 0.72:
            return self._finished(7, self._someone())
        if choice < 0.78:
            return self._finished(4, self._someone())
        if choice < 0.84:
            return self.task_event()
        if choice < 0.845:
            return self._finished(5, b"")
        if choice < 0.93 and self.is_2:
            number = self._int(rng.randrange(1, 9))
            return rng.choice(
                (
                    self._finished(8, self._someone()),
                    self._finished(10, number + self._someone()),
                    self._finished(11, self._int(0) + number + self._someone()),
                )
            )
        if rng.random() < self._wildness:
            return rng.choice(
                (
                    no_frame(rng, rng.randbytes(rng.randrange(60))),
                    ProducersWords(rng, self._version, self._wildness, 1, 8).anything(),
                )
            )
        return self.request(rng.randrange(NUM_CHANNELS))

    def flood(self) -> tuple[bytes, int, int]:
        """A frame that is sent very often, where a number in it may count up, and how often."""
        stranger = receiver(NUM_CHANNELS)
        number = struct.pack(">i", 1)
        partition = self._partition(UNKNOWN)
        return self.rng.choice(
            (
                (frame(6, number + stranger), 9 + 4 + 12, MORE_THAN_ANSWERS),
                (frame(6, number + receiver(0)), 9, MORE_THAN_STRANGERS),
                (frame(7, receiver(0)), 9, MORE_THAN_ANSWERS),
                (frame(2, partition + bytes(8 if self.is_2 else 4) + stranger + number), 9 + 12, MORE_THAN_STRANGERS),
                (frame(3, number * 2 + partition + stranger), 9 + 4, MORE_THAN_ANSWERS),
            )
        )

    def request(self, index: int, is_usual: bool = False) -> bytes:
        """For subpartition `index`, by the channel with that number."""
        rng = self.rng
        is_odd = not is_usual and rng.random() < 0.15
        wanted = rng.choice((PARTITION, UNKNOWN)) if is_odd else PARTITION
        asking = self._someone() if is_odd else receiver(index)
        subpartition = index if is_usual or not is_odd else rng.choice((0, 1, 2, 3, self._or_wild(7)))
        credit = struct.pack(">i", rng.randrange(4)) if is_usual else self._int(rng.randrange(5))
        ends = struct.pack(">i", subpartition)
        if self.is_2:
            ends += self._int(subpartition)
        body = self._partition(wanted) + ends + asking + credit
        return frame(2, body) if is_usual else self._finished(2, body)

    def task_event(self) -> bytes:
        event = self.rng.randbytes(self.rng.randrange(20))
        return self._finished(3, self._int(len(event)) + event + self._partition(PARTITION) + self._someone())

    def _partition(self, partition: ResultPartitionId) -> bytes:
        producer = partition.producer
        found = partition.data_set_id + struct.pack(">i", partition.number) + producer.id
        return found + producer.vertex_id + self._int(0) + self._int(0) if self.is_2 else found


class ProducersWords(Words):
    """What a producer says, mostly with the sequence number that is due and with credit that it has.

    One that `has_nothing` says so most of the time.
    """

    def __init__(self, rng: Random, version: FlinkVersion, wildness: float, credit: int, segment_size: int) -> None:
        super().__init__(rng, version, wildness)
        self._credit = [credit] * (NUM_CHANNELS + 1)
        self._full_credit = credit
        self._due = [0] * (NUM_CHANNELS + 1)
        self._segment_size = segment_size
        self.has_nothing = rng.random() < 0.05
        self._codes = [code for kind in DataType if (code := kind.code(version)) is not None and not kind.is_buffer]
        self._data_code = DataType.DATA.code(version) or 0

    def grant(self) -> None:
        """The consumer has read everything and said so."""
        self._credit = [self._full_credit] * len(self._credit)

    def anything(self) -> bytes:
        """One frame."""
        rng = self.rng
        if self.has_nothing and rng.random() < 0.8:
            return frame(1, _not_found(PARTITION, self._version) + b"\1" + self._someone())
        choice = rng.random()
        index = rng.randrange(NUM_CHANNELS + (rng.random() < self._wildness + 0.02))
        if choice < 0.6:
            return self.data(index) if self._credit[index] or rng.random() < 0.05 else self.event(index)
        if choice < 0.8:
            return self.event(index)
        if choice < 0.88:
            return self.error()
        if choice < 0.92 and self.is_2:
            return self._finished(9, self._int(rng.randrange(1, 9)) + self._someone())
        if choice < 0.94 and rng.random() < self._wildness:
            return rng.choice(
                (
                    no_frame(rng, rng.randbytes(rng.randrange(60))),
                    ConsumersWords(rng, self._version, self._wildness).anything(),
                )
            )
        return self.data(index)

    def flood(self) -> tuple[bytes, int, int]:
        """A frame that is sent very often, where a number in it may count up, and how often."""
        index = self.rng.randrange(NUM_CHANNELS)
        tail = struct.pack(">ii", self._due[index], 0) + bytes((self._data_code, 0))
        event = tail[:-2] + bytes((DataType.EVENT.code(self._version) or 0, 0))
        numbers = bytes(8) if self.is_2 else b""
        error = _not_found(UNKNOWN, self._version)
        return self.rng.choice(
            (
                (
                    frame(0, receiver(index) + numbers + tail + bytes(3) + b"\4data"),
                    25 + len(numbers),
                    MORE_THAN_STRANGERS,
                ),
                (
                    frame(0, receiver(index) + numbers + event + bytes(3) + b"\1e"),
                    25 + len(numbers),
                    MORE_THAN_STRANGERS,
                ),
                (frame(0, receiver(index) + numbers + event + bytes(4)), 25 + len(numbers), MORE_THAN_STRANGERS),
                (frame(0, receiver(NUM_CHANNELS) + numbers + tail + bytes(4)), 9 + 12, MORE_THAN_STRANGERS),
                (frame(1, error + b"\1" + receiver(index)), 9 + error.index(UNKNOWN.data_set_id[:8]), 50),
            )
        )

    def data(self, index: int) -> bytes:
        """User data, up to a segment or now and then more."""
        rng = self.rng
        self._credit[index] = max(0, self._credit[index] - 1)
        size = rng.randrange(self._segment_size + 1) if rng.random() >= self._wildness else rng.randrange(300)
        pieces = self._pieces(size) if self.is_2 and rng.random() < 0.3 else ()
        return self._response(index, self._data_code, rng.randbytes(size), pieces)

    def event(self, index: int) -> bytes:
        """An event, of the right kind or of another, with bytes that need not be one."""
        rng = self.rng
        if rng.random() < 0.02:
            payload, code = bytes(rng.choice(LONG_EVENTS_BYTES)), rng.choice(self._codes)
        elif rng.random() < 0.8:
            buffer = event_to_buffer(self._some_event(), self._version)
            payload, code = bytes(buffer.data), buffer.data_type.code(self._version) or 0
        else:
            payload, code = rng.randbytes(rng.randrange(40)), rng.choice(self._codes)
        if rng.random() < self._wildness:
            code = rng.choice(self._codes) if rng.random() < 0.7 else rng.randrange(256)
            payload = payload if rng.random() < 0.5 else struct.pack(">i", rng.randrange(-1, 14)) + payload[4:]
        is_in_pieces = self.is_2 and rng.random() < 0.1 + self._wildness
        return self._response(index, code, payload, self._pieces(len(payload)) if is_in_pieces else ())

    def error(self) -> bytes:
        """A Java exception for one receiver or for all."""
        rng = self.rng
        if rng.random() < self._wildness:
            error = java_stream(rng)
        elif rng.random() < 0.5:
            error = _not_found(rng.choice((PARTITION, UNKNOWN)), self._version)
        else:
            cause = JavaError(ILLEGAL_STATE, "why") if rng.random() < 0.3 else None
            error = _error(JavaError(rng.choice((ILLEGAL_STATE, PRODUCER_FAILED)), "disk full", cause))
        is_for_all = rng.random() < self._wildness / 2
        return self._finished(1, error + (b"\0" if is_for_all else b"\1" + self._someone()))

    def _some_event(self) -> Event:
        rng = self.rng
        found: list[Event] = [
            EndOfPartition(),
            CancelCheckpointMarker(rng.randrange(9)),
            CheckpointBarrier(rng.randrange(9), 0, alignment=rng.choice((Alignment.ALIGNED, Alignment.AT_LEAST_ONCE))),
            CheckpointBarrier(rng.randrange(9), 0, location=rng.randbytes(rng.randrange(20))),
            ALL_WORKERS_DONE,
        ]
        if self.is_2:
            found += [
                EventAnnouncement(rng.randrange(9), found[2]),
                EndOfData(rng.choice(list(StopMode))),
                WatermarkEvent("w", rng.random() < 0.5, rng.randrange(9)),
            ]
        return rng.choice(found[rng.random() < 0.7 :])

    def _pieces(self, size: int) -> tuple[int, ...]:
        """Sizes that make `size` together, some of them 0, or now and then other sizes."""
        rng = self.rng
        cuts = sorted(rng.randrange(size + 1) for _ in range(rng.randrange(5)))
        pieces = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
        if rng.random() < self._wildness:
            pieces[rng.randrange(len(pieces))] = hostile_int(rng)
        return tuple(pieces)

    def _response(self, index: int, code: int, payload: bytes, pieces: tuple[int, ...]) -> bytes:
        number = self._due[index]
        self._due[index] += max(1, len(pieces))
        backlog = self.rng.choice((0, 0, 1, 2, 9))
        numbers = self._int(number) + self._int(backlog)
        is_compressed = self.rng.random() < self._wildness / 4
        tail = bytes((code, is_compressed)) + self._int(len(payload))
        if self.is_2:
            numbers = self._int(0) + self._int(len(pieces)) + numbers
            tail += struct.pack(f">{len(pieces)}i", *pieces)
        return self._finished(0, receiver(index) + numbers + tail + payload)
