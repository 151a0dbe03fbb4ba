"""Inputs of a task that hand out records many at a time: runs of them, or batches of columns.

A run is records that stand next to each other in a buffer. Their bytes are compared at once, and their values are
made one by one when somebody takes them, see `fixed_width`. For a head that takes batches the records of several
buffers become columns, see `columns`. All else, such as a watermark, a record that is cut in two or the records of
a learner's deserializer, comes as it does without shortcuts: one by one.

What is not taken from an iterator stays in the input. A batch is taken apart where records are asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from operator import length_hint

from refimpl.config import CheckpointingMode
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.network_input import InputElement, NetworkInput
from refimpl.consumer.two_inputs import TwoInputs
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.memory.buffer import BufferSlice
from refimpl.records.element_serializer import StreamElementSerializer
from refimpl.records.elements import MAX_WATERMARK, RecordBatch, StreamElement, StreamRecord
from refimpl.records.spanning import RecordDeserializer
from refimpl.shortcuts.channels import FastInputGate, FastUnionInputGate
from refimpl.shortcuts.columns import BatchCodec
from refimpl.shortcuts.deserializer import FastDeserializer
from refimpl.shortcuts.fixed_width import RecordUnpacker
from refimpl.task.source import SourceInput, SourceReader

__all__ = ["FastNetworkInput", "FastSourceInput", "FastTwoInputs"]

MIN_RECORDS_AT_ONCE = 8
"""Fewer records are read one by one: numpy's calls for a batch take as long as eight records do (`batch_layers`)."""

_MOST_BETWEEN_LOOKS = 1023
"""A look that finds no batch costs about as much as reading ten records: at most one hundredth of a thousand."""

_MOST_BYTES_AT_ONCE = 512 * 1024
"""What 16 buffers of 32 KiB hold. Columns of much more are pages that the system has to clear, each time anew."""


class FastNetworkInput(NetworkInput):
    """Reads the records at hand in a buffer at once.

    Stands for `NetworkInput.take`, which polls the gate for each buffer, and `NetworkInput.next_element`, which reads
    each record by itself. It does so too where the gate or the deserializer of a channel is not a fast one.
    """

    takes_batches: bool
    """Whether whoever reads asks for batches: `FastTask` says so before each step."""

    num_taken: int
    """Buffers or events of the last `take` that brought some."""

    is_flowing = False
    """Whether there is probably more to take that nobody else puts there; here others put in what comes."""

    def __init__(
        self,
        gate: InputGate | UnionInputGate,
        element_serializer: StreamElementSerializer,
        make_deserializer: Callable[[], RecordDeserializer],
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
        takes_batches: bool = False,
    ) -> None:
        super().__init__(gate, element_serializer, make_deserializer, mode)
        self.takes_batches = takes_batches
        self.num_taken = 0
        self._codec = BatchCodec.of(element_serializer.value_type)
        self._num_between_looks = self._num_until_look = 0
        self._unpacker = RecordUnpacker.of(element_serializer.value_type)
        # At most one of a run and a batch is at hand; it comes before what is decoded.
        self._times: Iterator[int | None] = iter(())  # of the records of the run that nobody has taken
        self._run: Iterator[tuple[object, int | None]] = iter(())
        self._batch: RecordBatch | None = None

    @property
    def is_drained(self) -> bool:
        is_any_at_hand = self._decoded or length_hint(self._times) or self._batch is not None
        return not (self._taken or is_any_at_hand) and self._active is None

    def take(self, limit: int = 1) -> int:
        num_run = 0
        if isinstance(self.gate, FastInputGate | FastUnionInputGate):
            index, run = self.gate.poll_run(limit - 1)
            if run:
                num_run = len(run)
                self._taken.extend([(index, buffer) for buffer in run])
        if num_taken := num_run + super().take(limit - num_run):
            self.num_taken = num_taken
        return num_taken

    def next_element(self) -> InputElement | None:
        for value, time in self.next_values():
            return StreamRecord(value, time)
        return self._decoded.popleft() if self._decoded else None

    def next_values(self) -> Iterator[tuple[object, int | None]]:
        """The values that come next, with their times, up to what is no record; maybe none."""
        self._find()
        if self._batch is not None:
            self._take_apart(self._batch)
        return self._run

    def next_records(self) -> Iterator[StreamRecord]:
        """The records around these values."""
        return starmap(StreamRecord, self.next_values())

    def next_batch(self) -> RecordBatch | None:
        """The batch that comes next, if it is one."""
        self._find()
        batch, self._batch = self._batch, None
        return batch

    def next_other(self) -> InputElement | None:
        """The element that comes next and is in no run or batch, if it is one."""
        return self._decoded.popleft() if self._decoded else None

    def recycle(self) -> None:
        """Give back the buffers of which every record has been handed out. Under exclusion."""
        if self._consumed and self._active is None and length_hint(self._times):
            last = self._consumed.pop()  # its records are still being taken
            super().recycle()
            self._consumed.append(last)
        else:
            super().recycle()

    def close(self) -> None:
        self._times, self._run, self._batch = iter(()), iter(()), None
        super().close()

    # -- helpers -----------------------------------------------------------------------------------

    def _decoded_ahead(self) -> Iterable[InputElement]:
        """The records of the run or the batch that nobody has taken, which are still here then, and what is decoded."""
        if self._batch is not None:
            yield from self._batch.records()
        elif length_hint(self._times):
            rest = list(self._run)
            self._times = iter([time for _, time in rest])
            self._run = zip([value for value, _ in rest], self._times, strict=True)
            yield from starmap(StreamRecord, rest)
        yield from self._decoded

    def _find(self) -> None:
        """Read on until something is at hand or nothing is left to read."""
        while (
            not (self._decoded or length_hint(self._times))
            and self._batch is None
            and (self._active is not None or self._next_buffer())
        ):
            if self._active is not None:
                self._read(self._active)

    def _take_apart(self, batch: RecordBatch) -> None:
        self._batch = None
        times = None if batch.timestamps is None else batch.timestamps.tolist()
        self._times = iter([None] * len(batch) if times is None else times)
        self._run = zip(batch.values(), self._times, strict=True)

    def _read(self, channel: int) -> None:
        """Read a batch or a run from the buffer of the active channel, or else one record."""
        deserializer = self._deserializers[channel]
        if isinstance(deserializer, FastDeserializer):
            if self.takes_batches and self._codec is not None:
                self._read_batch(self._codec, channel, deserializer)
            elif self._read_run(deserializer):
                return
        super()._read(channel)

    def _read_run(self, deserializer: FastDeserializer) -> bool:
        """Read the plain records that come next; false if there are none. What is wrong behind them can wait."""
        source = deserializer.peek()
        num_bytes, values, times = self._unpacker.unpack(source)
        self._times = iter(times)
        self._run = zip(values, self._times, strict=True)
        if 0 < num_bytes == len(source):
            self._leave(deserializer.leave_buffer())
        else:
            deserializer.skip(num_bytes)
        return num_bytes > 0

    def _read_batch(self, codec: BatchCodec, channel: int, deserializer: FastDeserializer) -> None:
        """Make one batch of the records at hand that are equally wide.

        After a look that finds none, records are read one by one until the next look, twice as many each time.
        """
        if self._num_until_look:
            self._num_until_look -= 1
            return
        pieces = deserializer.peek_pieces()
        num_here = sum(map(len, pieces))
        following = self._following(channel) if num_here else []
        pieces += [buffer.data for buffer in following]
        batch, end = codec.decode(codec.joined(pieces, num_here), MIN_RECORDS_AT_ONCE)
        if batch is None:
            self._num_between_looks = self._num_until_look = min(2 * self._num_between_looks + 1, _MOST_BETWEEN_LOOKS)
            return
        self._num_between_looks = 0
        self._batch = batch
        self._skip(end, num_here, following, deserializer)

    def _skip(
        self, num_bytes: int, num_here: int, following: Sequence[BufferSlice], deserializer: FastDeserializer
    ) -> None:
        """Go on reading behind `num_bytes`, of which `num_here` are in the buffer at hand."""
        num_read = 0  # of the buffers that follow, all wholly read but the last
        while num_bytes > num_here:
            num_bytes -= num_here
            num_here = following[num_read].size
            num_read += 1
        if num_read:
            read = deserializer.leave_buffer()
            assert read is not None, f"{self.gate}: there is no buffer to read on from"
            self._consumed += [read, *following[: num_read - 1]]
            self._active_buffer = following[num_read - 1]
            if num_read == len(self._taken):
                self._taken.clear()
            else:
                gone = set(map(id, following[:num_read]))
                self._taken = deque(each for each in self._taken if id(each[1]) not in gone)
            deserializer.set_next_buffer(self._active_buffer)
        deserializer.skip(num_bytes)

    def _following(self, channel: int) -> list[BufferSlice]:
        """The buffers taken from a channel, up to its next event, but for what is too much to be read at once."""
        following, num_left = list[BufferSlice](), _MOST_BYTES_AT_ONCE
        for index, item in self._taken:
            if index == channel:
                if not isinstance(item, BufferSlice) or item.size > num_left:
                    break
                num_left -= item.size
                following.append(item)
        return following


class FastTwoInputs(TwoInputs, FastNetworkInput):
    """Reads runs of records of one input, then of the other; batches of columns it leaves to the runs.

    Stands for `NetworkInput.next_element`, as `FastNetworkInput` does.
    """

    def __init__(
        self,
        gate: UnionInputGate,
        element_serializers: Sequence[StreamElementSerializer],
        make_deserializer: Callable[[], RecordDeserializer],
        mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE,
    ) -> None:
        super().__init__(gate, element_serializers, make_deserializer, mode)
        self._codec = None
        self._unpackers = [RecordUnpacker.of(each.value_type) for each in element_serializers]

    def _turn_to(self, side: int) -> None:
        super()._turn_to(side)
        self._unpacker = self._unpackers[side]


class FastSourceInput(SourceInput):
    """Hands on what the reader has read as it is, be it a list or a batch.

    Stands for `SourceInput.next_element`.
    """

    takes_batches = False

    def __init__(self, name: str, subtask: int, reader: SourceReader, batch_size: int) -> None:
        super().__init__(name, subtask, reader, batch_size)
        self.num_taken = 0
        # At most one of a run and a batch is at hand; it comes before the elements.
        self._run: Iterator[StreamRecord] = iter(())
        self._batch: RecordBatch | None = None

    @property
    def is_flowing(self) -> bool:
        """Whether the reader has probably more, which nobody else takes."""
        return not (self._has_ended or self._num_empty_reads)

    @property
    def is_drained(self) -> bool:
        return not (self._has_turn or self._elements or length_hint(self._run)) and self._batch is None

    def take(self, limit: int = 1) -> int:
        if num_taken := super().take(limit):
            self.num_taken = num_taken
        return num_taken

    def next_element(self) -> StreamElement | None:
        for record in self.next_records():
            return record
        return self.next_other()

    def next_records(self) -> Iterator[StreamRecord]:
        """The records that come next, maybe none. What is not taken from the iterator stays here."""
        if (batch := self.next_batch()) is not None:
            self._run = iter(list(batch.records()))
        return self._run

    def next_values(self) -> Iterator[tuple[object, int | None]]:
        """The values of these records with their times."""
        return ((record.value, record.timestamp) for record in self.next_records())

    def next_batch(self) -> RecordBatch | None:
        """The batch that comes next, if it is one."""
        if self._has_turn:
            self._has_turn = False
            self._read()
        batch, self._batch = self._batch, None
        return batch

    def next_other(self) -> StreamElement | None:
        """The element that comes next and is in no run or batch, if it is one."""
        return self._elements.popleft() if self._elements else None

    def close(self) -> None:
        """Close the reader, once."""
        self._run, self._batch = iter(()), None
        super().close()

    @property
    def _num_at_hand(self) -> int:
        num_in_batch = 0 if self._batch is None else len(self._batch)
        return len(self._elements) + length_hint(self._run) + num_in_batch

    def _read(self) -> None:
        records = self._read_now()
        if records is None:
            self._has_ended = True
            self._elements.append(MAX_WATERMARK)
        elif isinstance(records, RecordBatch):
            self._batch = records
        elif set(map(type, records)) == {StreamRecord}:
            self._run = iter(list(records))
        else:
            self._elements.extend(self._checked(records))
