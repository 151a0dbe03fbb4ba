"""The engine's exchange alone, on two threads: writer, pool, queue, local channel, gate, input.

This is what `ThreadedRun` does for two tasks and one channel, without the tasks: the contract of `refimpl.drivers` in
ninety lines. The monitor is taken for a buffer and never for a record. Several channels end in one gate here, read by
one thread; `ThreadedRun` has a thread for each consumer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from refimpl.config import Config
from refimpl.drivers.threads import Handoff, Waker
from refimpl.job import Parts
from refimpl.memory import NetworkBufferPool
from refimpl.producer import (
    ChannelSelector,
    ForwardSelector,
    max_buffers,
    required_buffers,
)
from refimpl.records import (
    Event,
    RecordBatch,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    TypeSerializer,
)
from refimpl.shortcuts.channels import FastInputGate
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.makers import FastMakers
from refimpl.shortcuts.partition import FastBufferPool, FastLocalInputChannel, FastResultPartition
from refimpl.shortcuts.writer import FastRecordWriter

__all__ = ["SEVERAL", "Exchange", "elements_of", "wait_for_buffers"]

T = TypeVar("T")

REFERENCE = Parts()
SEVERAL = 4


def wait_for_buffers(writer: FastRecordWriter, handoff: Handoff, waker: Waker) -> None:
    """What a task does that has run out of buffers, if it has. Under the monitor."""
    partition = writer.partition
    if not (writer.resume() and partition.is_available):
        handoff.give_turn()
        handoff.yield_turn()
    while not (writer.resume() and partition.is_available):
        partition.pool.call_when_available(waker.wake)
        waker.wait()


def elements_of(source: FastNetworkInput) -> Iterator[RecordBatch | StreamElement | Event]:
    """All that is at hand: batches as they are, everything else one by one."""
    while not source.is_drained:
        if (batch := source.next_batch()) is not None:
            yield batch
        else:
            yield from source.next_records()
        if (element := source.next_other()) is not None:
            yield element


class Exchange:
    """One producer's output and one consumer's input; buffers leave when they are full, not by time.

    Each channel between them has `num_buffers`.
    """

    def __init__(
        self,
        kind: TypeSerializer,
        num_buffers: int,
        parts: Parts = REFERENCE,
        selector: ChannelSelector | None = None,
        takes_batches: bool = False,
        num_channels: int = 1,
        segment_bytes: int = 32_768,
    ) -> None:
        config = Config(
            buffer_timeout_ms=-1,
            buffers_per_channel=num_buffers,
            floating_buffers_per_gate=0,
            segment_size_bytes=segment_bytes,
        )
        elements = StreamElementSerializer(kind)
        self.monitor = threading.RLock()
        self._handoff, self._input_waker, self._output_waker = (
            Handoff(self.monitor),
            Waker(self.monitor),
            Waker(self.monitor),
        )
        self._num_taken = 0
        most = max_buffers(num_channels, config)
        home = NetworkBufferPool(most, config.segment_size_bytes)
        pool = FastBufferPool(home, required_buffers(num_channels), most, "source-0", num_channels)
        self.partition = FastResultPartition("source-0", num_channels, pool, config)
        self.writer = FastRecordWriter(
            self.partition, selector or ForwardSelector(), elements, parts.SpanningRecordSerializer(), self.monitor
        )
        channels = [FastLocalInputChannel(n, self.partition.create_view(n)) for n in range(num_channels)]
        self.gate = FastInputGate("sink-0", channels, on_ready=self._input_waker.wake)
        makers = FastMakers()
        self.input = FastNetworkInput(
            self.gate, elements, lambda: makers.deserializer(parts, config), takes_batches=takes_batches
        )
        self._most = max(1, most * 3 // 4)  # taken at once; the rest is for the producer to go on with
        self._has_failed = False
        with self.monitor:
            self.gate.open()

    def produce_records(self, chunks: Iterable[Sequence[StreamRecord]]) -> None:
        """Write records, a chunk at a time with one call for each; wait when the pool has run dry."""
        emit = self.writer.put

        def write(chunk: Sequence[StreamRecord]) -> None:
            for record in chunk:
                emit(record)

        self._produce(chunks, write)

    def produce_chunks(self, chunks: Iterable[Sequence[StreamRecord]]) -> None:
        """The same with one call for each chunk."""
        self._produce(chunks, self.writer.emit_many)

    def produce_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Write batches of rows; wait when the pool has run dry."""
        self._produce(batches, self.writer.write_batch)

    def _produce(self, items: Iterable[T], write: Callable[[T], None]) -> None:
        writer = self.writer
        try:
            for item in items:
                write(item)
                if not writer.is_available:
                    self._wait_for_buffers()
            writer.finish()
        except BaseException:
            with self.monitor:
                self._has_failed = True
                self._input_waker.wake()
            raise

    def _wait_for_buffers(self) -> None:
        """One hold of the monitor, but for the waits."""
        with self.monitor:
            wait_for_buffers(self.writer, self._handoff, self._output_waker)

    def consume_records(self, process: Callable[[Any, int | None], None]) -> None:
        """Call `process` with the value and the time of every record, to the end, as a task does with its head."""
        source = self.input
        while self._take():
            element: object = source
            while element is not None:
                for value, time in source.next_values():
                    process(value, time)
                if isinstance(element := source.next_element(), StreamRecord):
                    process(element.value, element.timestamp)

    def _take(self) -> bool:
        """Give back what was read and wait for more; false at the end. One hold of the monitor, but for the waits."""
        with self.monitor:
            self.input.recycle()
            if not self.input.is_ready:
                self._handoff.give_turn()
                if self._num_taken >= SEVERAL:
                    self._handoff.yield_turn()
            while not (num_taken := self.input.take(self._most)):
                if self.input.is_finished or self._has_failed:
                    return False
                self._input_waker.wait()
            self._num_taken = num_taken
        return True

    def consume_batches(self, process: Callable[[RecordBatch], None]) -> None:
        """Call `process` with the records of all buffers at hand, to the end."""
        while self._take():
            for element in elements_of(self.input):
                if isinstance(element, StreamRecord):  # too few for a batch
                    fields = [np.array([part]) for part in element.value]
                    element = RecordBatch(fields, np.array([element.timestamp]))
                process(element)
