"""The figures of lesson 4: a stream read buffer by buffer, and where a long record waits for its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.memory import NetworkBufferPool
from refimpl.memory.buffer import Buffer
from refimpl.records import RecordDeserializer, SpillingAdaptiveSpanningRecordDeserializer
from widgets import copies_of

__all__ = ["Reading", "Waiting", "reading", "where_it_waits"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a deserializer answered, call by call: lines of text."""

    title: str
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.lines])


def _buffers(records: Iterable[bytes], segment_size: int) -> list[bytes]:
    """What is in each buffer when the engine's serializer has cut these records."""
    found: dict[int, bytes] = {}
    for copy in copies_of(records, segment_size):
        found[copy.buffer] = found.get(copy.buffer, b"") + copy.written
    return list(found.values())


def reading(
    records: Iterable[bytes],
    segment_size: int,
    make: Callable[[], RecordDeserializer] = SpillingAdaptiveSpanningRecordDeserializer,
    num_segments: int = 2,
) -> Reading:
    """Read the buffers of these records as a task does, out of a pool of so many segments, and write down each call."""
    records = list(records)
    pool = NetworkBufferPool(num_segments, segment_size)
    deserializer, lines = make(), []
    for number, data in enumerate(_buffers(records, segment_size)):
        segment = pool.request_segment()
        assert segment is not None, "each segment came home before the next was needed"
        assert segment.view is not None, "it is not freed"
        segment.view[: len(data)] = data
        deserializer.set_next_buffer(Buffer(segment, pool, size=len(data)))
        lines.append(f"buffer {number}   {data.hex(' ')}")
        is_consumed = False
        while not is_consumed:
            result, record = deserializer.get_next_record()
            shown = f"{bytes(record)!r}" if record is not None else _gathered(deserializer)
            is_consumed = result.is_buffer_consumed
            home = ""
            if is_consumed and (buffer := deserializer.get_current_buffer()) is not None:
                del record
                buffer.recycle()
                home = f"home: {pool.num_free} of {num_segments} free"
            lines.append(f"   {result.name:<31} {shown:<42} {home}".rstrip())
    sizes = ", ".join(str(len(record)) for record in records)
    return Reading(f"records of {sizes} bytes, buffers of {segment_size}:", tuple(lines))


def _gathered(deserializer: RecordDeserializer) -> str:
    return f"kept {deserializer.get_unconsumed().hex(' ')}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Of a record that is half here: how many bytes wait in memory, and how many in a file."""

    record_bytes: int
    in_memory: int
    in_file: int

    def __repr__(self) -> str:
        return (
            f"a record of {self.record_bytes:>11,} bytes, half of it here: {self.in_memory:>10,} in memory, "
            f"{self.in_file:>10,} in a file"
        )


class _Watched(SpillingAdaptiveSpanningRecordDeserializer):
    """The engine's own, which also tells where it keeps a record begun."""

    def waiting(self) -> Waiting:
        is_spilled = self._spill_file is not None
        here = self._num_gathered
        return Waiting(self._record_length, 0 if is_spilled else here, here if is_spilled else 0)


def where_it_waits(record_bytes: int, segment_size: int = 32_768) -> Waiting:
    """Bring half of a record of so many bytes, in buffers of this size."""
    pool = NetworkBufferPool(1, segment_size)
    watched = _Watched(Config())
    stream = record_bytes.to_bytes(4, "big") + bytes(record_bytes // 2)
    for start in range(0, len(stream), segment_size):
        piece = stream[start : start + segment_size]
        segment = pool.request_segment()
        assert segment is not None, "each buffer is copied and goes home at once"
        assert segment.view is not None, "it is not freed"
        segment.view[: len(piece)] = piece
        buffer = Buffer(segment, pool, size=len(piece))
        watched.set_next_buffer(buffer)
        watched.get_next_record()
        watched.get_current_buffer()
        buffer.recycle()
    found = watched.waiting()
    watched.clear()
    return found
