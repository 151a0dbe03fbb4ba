"""The engine's exchange alone, on two threads: writer, pool, queue, local channel, gate, input.

This is what `ThreadedRun` does for two tasks and one channel, without the tasks: the contract of `refimpl.drivers` in
eighty lines. The monitor is taken for a buffer and never for a record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel, NetworkInput
from refimpl.job import Parts
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    ChannelSelector,
    ForwardSelector,
    RecordWriter,
    ResultPartition,
    max_buffers,
    required_buffers,
)
from refimpl.records import (
    RecordBatch,
    StreamElementSerializer,
    StreamRecord,
    TypeSerializer,
)

__all__ = ["Exchange"]


REFERENCE = Parts()


class Exchange:
    """One producer's output and one consumer's input; buffers of 32 KiB leave when they are full, not by time."""

    def __init__(
        self, kind: TypeSerializer, num_buffers: int, parts: Parts = REFERENCE,
        selector: ChannelSelector | None = None, takes_batches: bool = False,
    ) -> None:  # fmt: skip
        config = Config(buffer_timeout_ms=-1, buffers_per_channel=num_buffers, floating_buffers_per_gate=0)
        elements = StreamElementSerializer(kind)
        self.monitor = threading.Condition()
        home = NetworkBufferPool(max_buffers(1, config), config.segment_size_bytes)
        pool = LocalBufferPool(home, required_buffers(1), max_buffers(1, config), "source-0", 1)
        self.partition = ResultPartition("source-0", 1, pool, config)
        self.writer = RecordWriter(
            self.partition, selector or ForwardSelector(), elements, parts.SpanningRecordSerializer(), self.monitor
        )
        channel = LocalInputChannel(0, self.partition.subpartitions[0])
        self.gate = InputGate("sink-0", [channel], on_ready=self.monitor.notify)
        make = parts.SpillingAdaptiveSpanningRecordDeserializer
        self.input = NetworkInput(self.gate, elements, lambda: make(config), takes_batches)
        self._most = max(1, num_buffers * 3 // 4)  # taken at once; the rest is for the producer to go on with
        self._has_failed = False
        with self.monitor:
            self.gate.open()

    def produce_records(self, chunks: Iterable[Sequence[StreamRecord]]) -> None:
        """Write records, a chunk at a time with one call for each; wait when the pool has run dry."""
        self._produce((lambda chunk=chunk: self._emit_each(chunk)) for chunk in chunks)

    def produce_chunks(self, chunks: Iterable[Sequence[StreamRecord]]) -> None:
        """The same with one call for each chunk."""
        self._produce((lambda chunk=chunk: self.writer.emit_many(chunk)) for chunk in chunks)

    def _emit_each(self, chunk: Sequence[StreamRecord]) -> None:
        emit = self.writer.emit
        for record in chunk:
            emit(record)

    def produce_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Write batches of rows; wait when the pool has run dry."""
        self._produce((lambda batch=batch: self.writer.write_batch(batch)) for batch in batches)

    def _produce(self, writes: Iterable[Callable[[], None]]) -> None:
        writer = self.writer
        try:
            for write in writes:
                write()
                if not writer.is_available:
                    self._wait_for_buffers()
            writer.finish()
        except BaseException:
            with self.monitor:
                self._has_failed = True
                self.monitor.notify()
            raise

    def _wait_for_buffers(self) -> None:
        with self.monitor:
            while not (self.writer.resume() and self.partition.is_available):
                self.monitor.wait()

    def consume_records(self, process: Callable[[StreamRecord], None]) -> None:
        """Call `process` with every record, to the end."""
        source = self.input
        while self._take():
            element: object = source
            while element is not None:
                for record in source.next_records():
                    process(record)
                if isinstance(element := source.next_element(), StreamRecord):
                    process(element)

    def _take(self) -> bool:
        """Give back what was read and wait for more; false at the end. One hold of the monitor."""
        with self.monitor:
            self.input.recycle()
            self.monitor.notify()
            while not self.input.take(self._most):
                if self.input.is_finished or self._has_failed:
                    return False
                self.monitor.wait()
        return True

    def consume_batches(self, process: Callable[[RecordBatch], None]) -> None:
        """Call `process` with the records of all buffers at hand, to the end."""
        source = self.input
        while self._take():
            while (element := source.next_element()) is not None:
                if isinstance(element, StreamRecord):  # too few for a batch
                    fields = [np.array([part]) for part in element.value]
                    element = RecordBatch(fields, np.array([element.timestamp]))
                process(element)
