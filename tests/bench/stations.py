"""The two ends of one exchange between processes, each without a task: the thread that calls an end is its task.

They are driven as `ThreadedRun` and `ProcessRun` drive them, with as many buffers at a time: writer, pool, queue,
`ConnectionIO`, TCP on loopback, `ConnectionIO`, remote channel, gate, input. The monitor is held for what a task holds
it for, and for nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self

from refimpl.config import Config
from refimpl.drivers.makers import makers_of
from refimpl.drivers.threads import BUFFERS_PER_STEP, ConnectionIO, LeaderFollowers, Waker
from refimpl.drivers.transport import ConsumerEnd, ProducerEnd, connect, listen
from refimpl.job import Deployment, StreamEnvironment
from refimpl.memory import BufferConsumer
from refimpl.records import RecordBatch, StreamRecord, TypeSerializer, Vectorized
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.partition import add_full, request_buffers
from refimpl.task import IterableReader
from tests.bench.contenders import COLUMNS, RECORDS, SEGMENT_BYTES, batches, chunks, cycled
from tests.bench.exchange import elements_of

__all__ = ["Receiving", "Sending"]


class Station:
    """One TaskManager with one end of one exchange, and no task: the thread that calls it is the task."""

    def __init__(self, config: Config, number: int, kind: TypeSerializer, takes_batches: bool = False) -> None:
        environment = StreamEnvironment(config)
        source = environment.source(lambda _subtask, _parallelism: IterableReader([]), type=kind)
        sink = Vectorized(print, print) if takes_batches else print
        source.slot_sharing_group("producers").rebalance().sink(sink).slot_sharing_group("consumers")
        self.monitor = threading.RLock()
        graph = environment.execution_graph(2)
        self.deployment = Deployment(graph, number, exclusion=self.monitor, makers=makers_of(environment.config))
        self.error: BaseException | None = None
        self.waker = Waker(self.monitor)
        self.leader_followers = LeaderFollowers(self.monitor, {"": self.waker})
        threading.Thread(target=self.leader_followers.guard, daemon=True).start()
        self._carrier: ConnectionIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        with self.monitor:
            self.leader_followers.close()
        if self._carrier is not None:
            with self.monitor:
                self._carrier.stop()
            self._carrier.join(5)
        with self.monitor:
            self.deployment.close()

    def fail(self, error: BaseException) -> None:
        with self.monitor:
            self.error = error
            self.waker.wake()

    def wait(self) -> None:
        """For whoever has been told of `waker`. Under the monitor."""
        self.leader_followers.wait(self.waker)
        self.leader_followers.promote()
        if self.error is not None:
            raise self.error

    def _start(self, io: ConnectionIO) -> None:
        self._carrier = io
        io.start()


class Sending(Station):
    """The end that is read from."""

    def __init__(self, config: Config, kind: TypeSerializer) -> None:
        super().__init__(config, 0, kind)
        self.writer = self.deployment.writers[0, 0]
        self.partition = self.writer.partition
        self._listener = listen()
        self.address = self._listener.address
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        incoming = self._listener.accept()
        self._listener.close()
        if incoming is not None:
            shuffle = self.deployment.shuffle
            end = ProducerEnd(shuffle.accept("to the consumer"), shuffle)
            self._start(ConnectionIO(self, end, partial(incoming.open, 5.0), incoming.close))

    def __exit__(self, *exc: object) -> None:
        self._listener.close()
        super().__exit__(*exc)

    def records(self, num_records: int) -> None:
        self._write(partial(self.writer.emit_many, chunk) for chunk in chunks(RECORDS, num_records, 64))

    def batches(self, num_batches: int) -> None:
        self._write(partial(self.writer.write_batch, batch) for batch in batches(num_batches))

    def columns(self, num_batches: int) -> None:
        records = (StreamRecord(RecordBatch(columns)) for columns in cycled(COLUMNS, num_batches))
        self._write(partial(self.writer.put, record) for record in records)

    def _write(self, writes: Iterable[Callable[[], None]]) -> None:
        writer = self.writer
        for write in writes:
            write()
            if self.leader_followers.is_due:
                with self.monitor:
                    self.leader_followers.poll_if_due()
            if not writer.is_available:
                with self.monitor:
                    while not (writer.resume() and writer.is_available):
                        self._wait_for_buffer()
        writer.finish()
        with self.monitor:
            self.leader_followers.close()

    def _wait_for_buffer(self) -> None:
        self.partition.pool.call_when_available(self.waker.wake)
        self.wait()

    def fill(self, content: bytes) -> None:
        """The same bytes into all segments: what `buffers` sends is written before the clock runs."""
        for segment in self.deployment.pool.segments:
            segment.put(0, content)

    def buffers(self, num_buffers: int) -> None:
        """Whole buffers, as they are, and as `write_batch` queues them; those there are in one hold of the monitor."""
        partition = self.partition
        with self.monitor:
            while num_buffers:
                while not (buffers := request_buffers(partition, 0, min(num_buffers, BUFFERS_PER_STEP))):
                    self._wait_for_buffer()
                for buffer in buffers:
                    buffer.size = SEGMENT_BYTES
                add_full(partition, [BufferConsumer.of_buffer(buffer) for buffer in buffers], 0)
                num_buffers -= len(buffers)
            partition.finish()
            self.leader_followers.close()


class Receiving(Station):
    """The end that reads."""

    def __init__(self, config: Config, kind: TypeSerializer, address: tuple[str, int], takes_batches: bool) -> None:
        super().__init__(config, 1, kind, takes_batches)
        source = self.deployment.tasks[0].input
        assert isinstance(source, FastNetworkInput)
        self.input = source
        source.takes_batches = takes_batches
        self.gate = source.gate
        self.gate.on_ready = self.waker.wake
        (connection_id,) = self.deployment.shuffle.remote_reads
        connection = self.deployment.shuffle.connect(connection_id, "to the producer")
        stream = connect(*address, None, 5.0)
        self._start(ConnectionIO(self, ConsumerEnd(connection), lambda: stream))

    def _give_back(self, buffers: Sequence[Any]) -> None:
        """As a task does at the end of a step: all at once, and then the credit for all. Under the monitor."""
        with self.leader_followers.writes:
            for buffer in buffers:
                buffer.recycle()

    def records(self, process: Callable[[Any, int | None], None]) -> None:
        source = self.input
        while self._take():
            while not source.is_drained:
                for value, time in source.next_values():
                    process(value, time)
                if isinstance(element := source.next_element(), StreamRecord):
                    process(element.value, element.timestamp)

    def elements(self, process: Callable[[Any], None]) -> None:
        while self._take():
            for element in elements_of(self.input):
                process(element)

    def _take(self) -> bool:
        source = self.input
        with self.monitor:
            self._give_back([source])
            while not source.take(BUFFERS_PER_STEP):
                if source.is_finished:
                    return False
                self.wait()
        return True

    def buffers(self, process: Callable[[memoryview], None]) -> None:
        taken: list[Any] = []
        while taken := self._next_buffers(taken):
            for buffer in taken:
                process(buffer.data)

    def _next_buffers(self, read: Sequence[Any]) -> list[Any]:
        """Give back those that were read and take all there are; none at the end. One hold of the monitor."""
        gate = self.gate
        taken: list[Any] = []
        with self.monitor:
            self._give_back(read)
            while not taken and not gate.is_finished:
                taken += gate.poll_run(BUFFERS_PER_STEP - 1)[1]
                while len(taken) < BUFFERS_PER_STEP and (arrived := gate.poll_next()) is not None:
                    if arrived.buffer is not None:
                        taken.append(arrived.buffer)
                if not taken and not gate.is_finished:
                    self.wait()
        return taken
