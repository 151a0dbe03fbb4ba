"""The engine over TCP: two processes, a producer in this one and a consumer in another.

It stands at both ends as `ThreadedRun` and `ProcessRun` drive it, without the tasks: writer, pool, queue, `Carrier`,
TCP on loopback, `Carrier`, remote channel, gate, input. What is built before the first record (processes, pools,
connections) is not timed. CPU seconds are those of both processes.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from refimpl.config import Config
from refimpl.consumer import NetworkInput
from refimpl.drivers import Bell, Carrier, ConsumerEnd, ProducerEnd, connect, listen
from refimpl.job import Deployment, StreamEnvironment
from refimpl.records import LONG, ColumnarType, RecordBatch, StreamElement, StreamRecord, TypeSerializer, Vectorized
from refimpl.task import IterableReader
from tests.bench.contenders import (
    ARROW,
    BATCH,
    BATCH_BUFFERS,
    KIND,
    RECORD_BUFFERS,
    RECORDS,
    ROWS,
    SEGMENT_BYTES,
    checksum,
    chunks,
    columns_of,
    contender,
    cycled,
    expected,
    whole_batches,
)
from tests.bench.measure import Benchmark, Contender, Row, Turn
from tests.bench.pair import across
from tests.bench.peers import LOOPBACK, accepted

__all__ = ["BENCHMARKS"]

Spent = tuple[int, float, float]
"""Records moved, wall seconds, CPU seconds of both processes."""

Ready = Callable[[object], None]
COLUMNS = ColumnarType(LONG, LONG, LONG)
_READ_BYTES = 256 * 1024


# -- the engine ------------------------------------------------------------------------------------------


def config_of(num_buffers: int, **options: Any) -> Config:
    """Two buffers of each channel's own, the rest floating, as Flink has it; buffers leave when they are full."""
    base = Config(buffer_timeout_ms=-1, floating_buffers_per_gate=num_buffers - 2, num_buffers=2 * num_buffers + 8)
    return replace(base, **options)


class Station:
    """One TaskManager with one end of one exchange, and no task: the thread that calls it is the task."""

    takes_batches = False

    def __init__(self, config: Config, number: int, kind: TypeSerializer) -> None:
        environment = StreamEnvironment(config)
        source = environment.source(lambda _subtask, _parallelism: IterableReader([]), type=kind)
        sink = Vectorized(print, print) if self.takes_batches else print
        source.slot_sharing_group("producers").rebalance().sink(sink).slot_sharing_group("consumers")
        self.monitor = threading.RLock()
        self.deployment = Deployment(environment, None, self.monitor, number, 2)
        self.error: BaseException | None = None
        self.bell = Bell(self.monitor)
        self._carrier: Carrier | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._carrier is not None:
            with self.monitor:
                self._carrier.stop()
            self._carrier.join(5)
        with self.monitor:
            self.deployment.close()

    def lets_speak(self, carrier: Carrier) -> bool:
        return False

    def fail(self, error: BaseException) -> None:
        with self.monitor:
            self.error = error
            self.bell.ring()

    def wait(self) -> None:
        """For whoever has been told of `bell`. Under the monitor."""
        self.bell.wait()
        if self.error is not None:
            raise self.error

    def _start(self, carrier: Carrier) -> None:
        self._carrier = carrier
        carrier.start()


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
            self._start(Carrier(self, end, partial(incoming.open, 5.0), incoming.close))

    def __exit__(self, *exc: object) -> None:
        self._listener.close()
        super().__exit__(*exc)

    def records(self, num_records: int) -> None:
        self._write(partial(self.writer.emit_many, chunk) for chunk in chunks(RECORDS, num_records, 64))

    def batches(self, num_batches: int) -> None:
        self._write(partial(self.writer.write_batch, columns_of(batch)) for batch in cycled(ARROW, num_batches))

    def columns(self, num_batches: int) -> None:
        batches = (RecordBatch([column.to_numpy() for column in batch.columns]) for batch in cycled(ARROW, num_batches))
        self._write(partial(self.writer.emit, StreamRecord(batch)) for batch in batches)

    def _write(self, writes: Iterable[Callable[[], None]]) -> None:
        writer = self.writer
        for write in writes:
            write()
            if not writer.is_available:
                with self.monitor:
                    while not (writer.resume() and writer.is_available):
                        self._wait_for_buffer()
        writer.finish()

    def _wait_for_buffer(self) -> None:
        self.partition.pool.call_when_available(self.bell.ring)
        self.wait()

    def fill(self, content: bytes) -> None:
        """The same bytes into all segments: what `buffers` sends is written before the clock runs."""
        for segment in self.deployment.pool.segments:
            segment.put(0, content)

    def buffers(self, num_buffers: int) -> None:
        """Whole buffers, as they are."""
        partition = self.partition
        for _ in range(num_buffers):
            with self.monitor:
                while (builder := partition.request_builder(0)) is None:
                    self._wait_for_buffer()
                partition.add(builder.create_consumer(), 0)
                builder.advance(SEGMENT_BYTES)
                builder.finish()
        with self.monitor:
            partition.finish()


class Receiving(Station):
    """The end that reads."""

    _is_giving_back = False

    def lets_speak(self, carrier: Carrier) -> bool:
        return self._is_giving_back

    def _give_back(self, buffers: Sequence[Any]) -> None:
        """As a task does at the end of a step: all at once, and then the credit for all. Under the monitor."""
        self._is_giving_back = True
        for buffer in buffers:
            buffer.recycle()
        self._is_giving_back = False
        if self._carrier is not None and self._carrier.end.has_data_to_send:
            self._carrier.speak()

    def __init__(self, config: Config, kind: TypeSerializer, address: tuple[str, int], takes_batches: bool) -> None:
        self.takes_batches = takes_batches
        super().__init__(config, 1, kind)
        source = self.deployment.tasks[0].input
        assert isinstance(source, NetworkInput)
        self.input = source
        self.gate = source.gate
        self.gate.on_ready = self.bell.ring
        self._most = max(1, config.floating_buffers_per_gate + 2)
        (connection_id,) = self.deployment.shuffle.remote_reads
        connection = self.deployment.shuffle.connect(connection_id, "to the producer")
        stream = connect(*address, None, 5.0)
        self._start(Carrier(self, ConsumerEnd(connection), lambda: stream))

    def records(self, process: Callable[[StreamRecord], None]) -> None:
        source = self.input
        while self._take():
            while not source.is_drained:
                for record in source.next_records():
                    process(record)
                if isinstance(element := source.next_element(), StreamRecord):
                    process(element)

    def elements(self, process: Callable[[StreamElement], None]) -> None:
        source = self.input
        while self._take():
            while (element := source.next_element()) is not None:
                process(element)

    def _take(self) -> bool:
        source = self.input
        with self.monitor:
            self._give_back([source])
            while not source.take(self._most):
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
                while len(taken) < self._most and (arrived := gate.poll_next()) is not None:
                    if arrived.buffer is not None:
                        taken.append(arrived.buffer)
                if not taken and not gate.is_finished:
                    self.wait()
        return taken


def _receive(ready: Ready, shared: tuple[Config, tuple[str, int], str], operator: Any) -> None:
    config, address, what = shared
    station = Receiving(config, _kind(what), address, what == "batches")
    ready(None)
    if what == "records":
        station.records(operator.record)
    elif what == "batches":
        station.elements(partial(_columns, operator))
    elif what == "columns":
        station.records(lambda record: operator.columns(*record.value.columns))
    else:
        station.buffers(operator.piece)


def _kind(what: str) -> TypeSerializer:
    return COLUMNS if what == "columns" else KIND


def _columns(operator: Any, element: StreamElement) -> None:
    if isinstance(element, StreamRecord):  # too few for a batch
        fields = [np.array([part]) for part in (element.timestamp, *element.value)]
        operator.columns(*fields)
    elif isinstance(element, RecordBatch):
        operator.columns(element.timestamps, *element.columns)


def _through(config: Config, what: str, amount: int, operator: Any) -> tuple[float, float]:
    with Sending(config, _kind(what)) as station:
        station.fill(PIECE)
        produce = getattr(station, what)
        return across(_receive, lambda *_: produce(amount), operator, (config, station.address, what))


def exchange(num_records: int, operator: Any, **options: Any) -> Spent:
    return num_records, *_through(config_of(RECORD_BUFFERS, **options), "records", num_records, operator)


def exchange_of_batches(num_records: int, operator: Any, **options: Any) -> Spent:
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *_through(config_of(BATCH_BUFFERS, **options), "batches", num_batches, operator)


def exchange_of_columns(num_records: int, operator: Any) -> Spent:
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *_through(config_of(BATCH_BUFFERS), "columns", num_batches, operator)


def exchange_of_buffers(num_records: int, operator: Any, *, num_buffers: int = RECORD_BUFFERS, **options: Any) -> Spent:
    num_pieces = whole_pieces(num_records)
    return num_pieces * PIECE_ROWS, *_through(config_of(num_buffers, **options), "buffers", num_pieces, operator)


WITHOUT = {"credit_based": False}


# -- whole buffers: what is moved when nobody encodes ----------------------------------------------------

PIECE_ROWS = 1_024
_FIRST = struct.Struct("q")
_COLUMNS = np.array(ROWS[:PIECE_ROWS], np.int64)
PIECE_SUM = int(_COLUMNS[:, 2].sum())
PIECE = (_FIRST.pack(PIECE_SUM) + _COLUMNS.T.tobytes()).ljust(SEGMENT_BYTES, b"\0")
"""A full buffer: the sum of the values, then three columns. So a consumer that looks at nothing but the
first number of each buffer can still be checked, and one that is checked can read it all."""


class AddingPieces:
    def __init__(self) -> None:
        self.total = 0

    def piece(self, piece: memoryview) -> None:
        self.total += _FIRST.unpack_from(piece)[0]


class KeepingPieces:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def piece(self, piece: memoryview) -> None:
        columns = np.frombuffer(piece, np.int64, 3 * PIECE_ROWS, _FIRST.size).reshape(3, PIECE_ROWS)
        self.rows.extend(zip(*columns.tolist(), strict=True))


def whole_pieces(num_records: int) -> int:
    return max(1, -(-num_records // PIECE_ROWS))


def expected_pieces(num_records: int) -> list[Row]:
    return ROWS[:PIECE_ROWS] * (num_records // PIECE_ROWS)


def checksum_of_pieces(num_records: int) -> int:
    return PIECE_SUM * (num_records // PIECE_ROWS)


def contender_of_pieces(name: str, meaning: str, move: Callable[[int, Any], Spent]) -> Contender:
    def run(num_records: int) -> Turn:
        operator = AddingPieces()
        return Turn(*move(num_records, operator), operator.total)

    def deliver(num_records: int) -> tuple[int, list[Row]]:
        operator = KeepingPieces()
        return move(num_records, operator)[0], operator.rows

    return Contender(name, meaning, run, deliver)


def raw_socket(num_records: int, operator: Any) -> Spent:
    """The limit: one thread sends buffers of 32 KiB, sixteen a call, another receives them into one."""
    num_pieces = whole_pieces(num_records)

    def produce(port: int, _shared: object) -> None:
        with _connected(port) as connected:
            group = [memoryview(PIECE)] * 16
            for start in range(0, num_pieces, 16):
                _send_all(connected, group[: num_pieces - start])

    return num_pieces * PIECE_ROWS, *across(_receive_pieces, produce, operator)


def _receive_pieces(ready: Ready, _shared: object, operator: Any) -> None:
    with accepted(ready) as connected:
        room = memoryview(bytearray(_READ_BYTES))
        while _fill(connected, room):
            for start in range(0, _filled[0], SEGMENT_BYTES):
                operator.piece(room[start : start + SEGMENT_BYTES])


_filled = [0]


def _fill(connected: socket.socket, room: memoryview) -> bool:
    """Fill `room`, or as much as there is before the end."""
    _filled[0] = 0
    while _filled[0] < len(room) and (got := connected.recv_into(room[_filled[0] :])):
        _filled[0] += got
    return _filled[0] > 0


def _send_all(connected: socket.socket, pieces: list[memoryview]) -> None:
    sent = connected.sendmsg(pieces)
    while sent < sum(map(len, pieces)):
        while sent >= len(pieces[0]):
            sent -= len(pieces[0])
            pieces = pieces[1:]
        pieces = [pieces[0][sent:], *pieces[1:]]
        sent = connected.sendmsg(pieces)


def _connected(port: int) -> socket.socket:
    connected = socket.create_connection((LOOPBACK, port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


BENCHMARKS = (
    Benchmark(
        "remote-buffer",
        "whole buffers of 32 KiB, from process to process",
        (
            contender_of_pieces("credits", "subpartition to gate, 10 buffers at each end", exchange_of_buffers),
            contender_of_pieces("no credits", "the same, before credits", partial(exchange_of_buffers, **WITHOUT)),
            contender_of_pieces("credits 34", "34 buffers at each end", partial(exchange_of_buffers, num_buffers=34)),
            contender_of_pieces("no credits 34", "both", partial(exchange_of_buffers, num_buffers=34, **WITHOUT)),
            contender_of_pieces("raw socket", "sixteen buffers a call, one thread at each end: the limit", raw_socket),
        ),
        (),
        expected_pieces,
        checksum_of_pieces,
    ),
    Benchmark(
        "remote-record",
        "one record at a time, from process to process",
        (
            contender("credits", "RecordWriter.emit to NetworkInput.next_records over TCP", exchange),
            contender("no credits", "the same, the way before credits", partial(exchange, **WITHOUT)),
        ),
        (),
        expected,
        checksum,
    ),
    Benchmark(
        "remote-batch",
        f"{BATCH} rows of an Arrow batch at a time, from process to process",
        (
            contender("credits", "RecordWriter.write_batch to batches again: Flink's bytes", exchange_of_batches),
            contender("no credits", "the same, the way before credits", partial(exchange_of_batches, **WITHOUT)),
            contender("columnar", "each batch one record, ColumnarType", exchange_of_columns),
        ),
        (),
        expected,
        checksum,
    ),
)  # fmt: skip
