"""Records across buffers: a length, the payload, and cuts wherever a buffer is full.

On the stream a record is four bytes with the payload's length, big-endian, then the payload. There is no other
mark. A buffer ends where it is full, be it inside a payload or a length, and the next goes on with the next byte.

Copying a record into a buffer answers two questions, not one:

                            the buffer has room     the buffer is full
    the record is finished  FULL_RECORD             FULL_RECORD_MEMORY_SEGMENT_FULL
    there is more of it     (cannot happen)         PARTIAL_RECORD_MEMORY_SEGMENT_FULL

Flink up to 1.11 has these three results as a class; later versions keep the cases and dropped it.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from refimpl.config import Config
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferBuilder
from refimpl.records.serialization_result import SerializationResult
from refimpl.records.spill_file import SpillFile

__all__ = [
    "LENGTH_BYTES",
    "DeserializationResult",
    "RecordDeserializer",
    "RecordSerializer",
    "SpanningRecordSerializer",
    "SpillingAdaptiveSpanningRecordDeserializer",
]

LENGTH_BYTES = 4
_PRUNE_THRESHOLD_BYTES = 5 * 1024 * 1024
_MAX_RECORD_BYTES = 2**31 - 1


class RecordSerializer(Protocol):
    """The seam of exercise 3.1: cuts one record at a time into buffers."""

    def serialize_record(self, record: bytes) -> None:
        """Take the next record: `record` is its payload, possibly empty."""

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy on from where the last copy of this record stopped, as far as `builder` has room."""

    def reset(self) -> None:
        """Start over with the same record, for the next channel it goes to."""

    def prune(self) -> None:
        """Let go of the record, and of memory that grew for it."""


class SpanningRecordSerializer:
    """Cuts one record at a time into buffers, wherever a buffer happens to end.

    `serialize_record` once, then `copy_to_buffer_builder` with one builder after another until the
    result says the record is full. For a further channel, `reset` and copy again; the record is
    serialised only once. `prune` when all channels have it.

    Flink:   SpanningRecordSerializer (runtime.io.network.api.serialization), 1.11.4
    Differs: takes the payload as bytes; Flink lets the record write itself.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._position = 0

    @property
    def has_serialized_data(self) -> bool:
        """Whether bytes of the record are still to be copied."""
        return self._position < len(self._data)

    def serialize_record(self, record: bytes) -> None:
        """Keep the record's length and payload, ready to be copied from its first byte.

        Raises:
            LocalUsageError: the record before has not been copied to its end, or this one is too
                long for a length of four bytes.
        """
        if self.has_serialized_data:
            raise LocalUsageError("the record before this one has not been copied to its end")
        if len(record) > _MAX_RECORD_BYTES:
            raise LocalUsageError(f"{len(record)} B do not fit a length of four bytes")
        self._data.clear()
        self._data += len(record).to_bytes(LENGTH_BYTES, "big")
        self._data += record
        self._position = 0

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        """Copy as much as `builder` has room for and commit it; say what became of both."""
        self._position += builder.append(self._data, self._position)
        builder.commit()
        if self.has_serialized_data:
            return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        if builder.is_full:
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD

    def reset(self) -> None:
        """Go back to the first byte of the same record, its length included."""
        self._position = 0

    def prune(self) -> None:
        """Forget the record; memory that grew past 5 MiB for it is given back."""
        if len(self._data) > _PRUNE_THRESHOLD_BYTES:
            self._data = bytearray()
        else:
            self._data.clear()
        self._position = 0


class DeserializationResult(Enum):
    """What one look into the current buffer brought; "last" means last in this buffer, not in the stream."""

    PARTIAL_RECORD = "PARTIAL_RECORD"
    INTERMEDIATE_RECORD_FROM_BUFFER = "INTERMEDIATE_RECORD_FROM_BUFFER"
    LAST_RECORD_FROM_BUFFER = "LAST_RECORD_FROM_BUFFER"

    @property
    def is_full_record(self) -> bool:
        return self is not DeserializationResult.PARTIAL_RECORD

    @property
    def is_buffer_consumed(self) -> bool:
        return self is not DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER


class RecordDeserializer(Protocol):
    """Puts records together again; one for each channel, since each channel is cut by itself."""

    def set_next_buffer(self, buffer: Buffer | BufferSlice) -> None: ...
    def get_next_record(self) -> tuple[DeserializationResult, memoryview | None]: ...
    def get_current_buffer(self) -> Buffer | BufferSlice | None: ...
    def get_unconsumed(self) -> bytes: ...
    def clear(self) -> None: ...


class SpillingAdaptiveSpanningRecordDeserializer:
    """Puts together the records of one channel, however they were cut.

    A record that lies wholly in its buffer is shown in place, without a copy; one that spans
    buffers is gathered, in memory or, above `config.spill_threshold_bytes`, in a file.

    Ownership: a buffer given with `set_next_buffer` stays the caller's to recycle: when a result
    says the buffer is consumed, take it back with `get_current_buffer`. A record is valid until the
    next call here, in place or gathered: the caller reads it at once, or copies it.

    Raises:
        RemoteProtocolError: a length is negative.
        SpillError: a long record cannot be kept on disk.

    Flink:   SpillingAdaptiveSpanningRecordDeserializer, NonSpanningWrapper, SpanningWrapper
             (runtime.io.network.api.serialization), 1.11.4
    Differs: memory that a record was gathered in stays for the next; Flink lets go of it.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or Config()
        self._buffer: Buffer | BufferSlice | None = None
        self._view = memoryview(b"")
        self._position = 0
        self._length_bytes = bytearray()
        self._record_length = -1
        self._memory = bytearray()
        self._num_gathered = 0
        self._spill_file: SpillFile | None = None

    @property
    def has_unfinished_data(self) -> bool:
        """Whether bytes of a record are held for which more must come, or that were not asked for."""
        return bool(self._length_bytes) or self._position < len(self._view)

    def set_next_buffer(self, buffer: Buffer | BufferSlice) -> None:
        """Read on in `buffer`; the one before must be consumed."""
        self._buffer = buffer
        self._view = buffer.data
        self._position = 0
        if self._length_bytes:
            self._gather()

    def get_current_buffer(self) -> Buffer | BufferSlice | None:
        """Hand the buffer back to the caller, who recycles it; `None` if it has been handed back."""
        buffer, self._buffer = self._buffer, None
        self._view = memoryview(b"")
        self._position = 0
        return buffer

    def get_next_record(self) -> tuple[DeserializationResult, memoryview | None]:
        """The next record's payload, or `None` with `PARTIAL_RECORD` if no record ends in what is left of the buffer.

        A record comes with `LAST_RECORD_FROM_BUFFER` if it ends the buffer, else `INTERMEDIATE_RECORD_FROM_BUFFER`.
        """
        if self._length_bytes:
            if self._num_gathered != self._record_length:
                return DeserializationResult.PARTIAL_RECORD, None
            return self._result(), self._take_gathered()
        start = self._position + LENGTH_BYTES
        if start <= len(self._view):
            length = self._check_length(self._view[self._position : start])
            if start + length <= len(self._view):
                self._position = start + length
                return self._result(), self._view[start : self._position]
        if self._position < len(self._view):
            self._gather()
        return DeserializationResult.PARTIAL_RECORD, None

    def get_unconsumed(self) -> bytes:
        """Everything held and not handed out: the record begun, from its length, and what follows."""
        payload = self._payload
        if self._spill_file is not None:
            payload = self._spill_file.read_all() if self._num_gathered else memoryview(b"")
        return b"".join((self._length_bytes, payload, self._view[self._position :]))

    def clear(self) -> None:
        """Forget the record begun; recycle the buffer at hand, give up the file."""
        if (buffer := self.get_current_buffer()) is not None and not buffer.is_recycled:
            buffer.recycle()
        self._forget_gathered()

    # -- gathering a record that spans buffers ------------------------------------------------------

    @property
    def _payload(self) -> memoryview:
        return memoryview(self._memory)[: self._num_gathered]

    def _result(self) -> DeserializationResult:
        if self._position < len(self._view):
            return DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER
        return DeserializationResult.LAST_RECORD_FROM_BUFFER

    def _gather(self) -> None:
        """Take what this buffer has of the record: length bytes first, then payload."""
        num_missing = LENGTH_BYTES - len(self._length_bytes)
        if num_missing:
            self._length_bytes += self._take(num_missing)
            if len(self._length_bytes) < LENGTH_BYTES:
                return
            self._record_length = self._check_length(memoryview(self._length_bytes))
            if self._record_length > self._config.spill_threshold_bytes:
                self._spill_file = SpillFile(self._record_length, self._config.spill_path)
            else:
                self._memory = _memory_for(self._record_length, self._memory)
        chunk = self._take(self._record_length - self._num_gathered)
        start, self._num_gathered = self._num_gathered, self._num_gathered + len(chunk)
        if self._spill_file is not None:
            self._spill_file.write(chunk)
        else:
            self._memory[start : self._num_gathered] = chunk

    def _take(self, num_bytes: int) -> memoryview:
        chunk = self._view[self._position : self._position + num_bytes]
        self._position += len(chunk)
        return chunk

    def _take_gathered(self) -> memoryview:
        payload = self._payload if self._spill_file is None else self._spill_file.read_all()
        self._forget_gathered()
        return payload

    def _forget_gathered(self) -> None:
        if self._spill_file is not None:
            self._spill_file.close()
            self._spill_file = None
        self._length_bytes.clear()
        self._record_length, self._num_gathered = -1, 0

    def _check_length(self, prefix: memoryview) -> int:
        length = int.from_bytes(prefix, "big", signed=True)
        if length < 0:
            raise RemoteProtocolError(f"a record cannot have a length of {length} bytes")
        return length


def _memory_for(num_bytes: int, memory: bytearray) -> bytearray:
    """The same memory again, or new if it is too short or much too long: a system has to clear new pages."""
    return memory if num_bytes <= len(memory) <= 2 * num_bytes else bytearray(num_bytes)
