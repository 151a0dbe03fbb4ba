"""The engine's exchange alone, on two threads: writer, pool, queue, local channel, gate, input.

This is what `ThreadedRun` does for two tasks and one channel, without the tasks: the contract of `refimpl.drivers` in
eighty lines. The monitor is taken for a buffer and never for a record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from refimpl.config import Config
from refimpl.consumer import BufferOrEvent, InputGate, LocalInputChannel, NetworkInput
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ForwardSelector, RecordWriter, ResultPartition, max_buffers, required_buffers
from refimpl.records import (
    BatchCodec,
    RecordBatch,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    TypeSerializer,
)

__all__ = ["Exchange"]


class Exchange:
    """One producer's output and one consumer's input; buffers of 32 KiB leave when they are full, not by time."""

    def __init__(self, kind: TypeSerializer, num_buffers: int) -> None:
        config = Config(buffer_timeout_ms=-1, buffers_per_channel=num_buffers, floating_buffers_per_gate=0)
        elements = StreamElementSerializer(kind)
        self.monitor = threading.Condition()
        home = NetworkBufferPool(max_buffers(1, config), config.segment_size_bytes)
        pool = LocalBufferPool(home, required_buffers(1), max_buffers(1, config), "source-0", 1)
        self.partition = ResultPartition("source-0", 1, pool, config)
        self.writer = RecordWriter(self.partition, ForwardSelector(), elements, exclusion=self.monitor)
        channel = LocalInputChannel(0, self.partition.subpartitions[0])
        self.gate = InputGate("sink-0", [channel], on_ready=self.monitor.notify)
        self.input = NetworkInput(
            self.gate, elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(config)
        )
        self._kind = kind
        self._most = max(1, num_buffers * 3 // 4)  # taken at once; the rest is for the producer to go on with
        self._has_failed = False
        with self.monitor:
            self.gate.open()

    def produce_records(self, chunks: Iterable[Sequence[StreamRecord]]) -> None:
        """Write records, a chunk at a time; wait when the pool has run dry."""
        self._produce((lambda chunk=chunk: self.writer.emit_many(chunk)) for chunk in chunks)

    def produce_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Write batches of rows; wait when the pool has run dry."""
        self._produce((lambda batch=batch: self.writer.write_batch(batch, 0)) for batch in batches)

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

    def consume_records(self, process: Callable[[StreamElement], None]) -> None:
        """Call `process` with every record, to the end."""
        source = self.input
        while self._take():
            while (element := source.next_element()) is not None:
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
        """Call `process` with the rows of all buffers at hand, to the end.

        The engine's input hands out single elements, so this reads its gate with its codec. Bytes of several buffers
        are put together first: for numpy one large array costs less than some small ones and a record cut in two.
        """
        codec, rest = BatchCodec(self._kind), b""
        while taken := self._take_buffers():
            data = b"".join([rest, *(arrived.buffer.data for arrived in taken if arrived.buffer is not None)])
            self._give_back(taken)
            rows, end = codec.decode(memoryview(data))
            rest = data[end:]
            process(rows)

    def _take_buffers(self) -> list[BufferOrEvent]:
        taken: list[BufferOrEvent] = []
        with self.monitor:
            while not taken and not self.gate.is_finished and not self._has_failed:
                while len(taken) < self._most and (arrived := self.gate.poll_next()) is not None:
                    taken.append(arrived)
                if not taken and not self.gate.is_finished:
                    self.monitor.wait()
        return taken

    def _give_back(self, taken: Sequence[BufferOrEvent]) -> None:
        with self.monitor:
            for arrived in taken:
                if arrived.buffer is not None:
                    arrived.buffer.recycle()
            self.monitor.notify()
