"""Who is compared over TCP: two processes, a producer in this one and a consumer in a child.

The engine stands at both ends as `ThreadedRun` and `ProcessRun` drive it, without the tasks: writer, pool, queue,
`Carrier`, TCP on loopback, `Carrier`, remote channel, gate, input. Everybody ends in one call per record, batch or
buffer in the child. What is built before the first record (processes, pools, connections) is not timed. CPU seconds
are those of both processes.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Self

import numpy as np
import pyarrow as pa

from refimpl.config import Config
from refimpl.consumer import NetworkInput
from refimpl.drivers import Bell, Carrier, ConsumerEnd, ProducerEnd, connect, listen
from refimpl.job import Deployment, StreamEnvironment
from refimpl.records import BatchCodec, RecordBatch, StreamRecord
from refimpl.task import IterableReader
from tests.bench.contenders import (
    ARROW,
    BATCH,
    BATCH_BUFFERS,
    KIND,
    QUEUE_BATCHES,
    QUEUE_RECORDS,
    RECORD_BUFFERS,
    RECORD_BYTES,
    RECORDS,
    ROWS,
    SCHEMA,
    SEGMENT_BYTES,
    checksum,
    chunks,
    contender,
    cycled,
    expected,
    rows_of,
    whole_batches,
)
from tests.bench.measure import Benchmark, Contender, Ratio, Row, Turn

__all__ = ["BENCHMARKS"]

Spent = tuple[int, float, float]
"""Records moved, wall seconds, CPU seconds of both processes."""

_CONTEXT = multiprocessing.get_context("forkserver")  # a fork of this process would take its threads' locks along
_CONTEXT.set_forkserver_preload([__name__])
_HOST = "127.0.0.1"
_READ_BYTES = 256 * 1024

Ready = Callable[[object], None]


# -- two processes ---------------------------------------------------------------------------------------


def between_processes(
    consume: Callable[..., None], produce: Callable[[Any], None], operator: Any, *given: object
) -> tuple[float, float]:
    """Run `consume(ready, operator, *given)` in a child and `produce` here; return (wall, CPU) seconds.

    The child calls `ready(where)` when it is set up; `produce` gets `where`. The clock runs from there to the
    end of `consume`. What the child's operator has gathered is in `operator` afterwards.
    """
    ours, theirs = _CONTEXT.Pipe()
    child = _CONTEXT.Process(target=_consume, args=(theirs, consume, operator, given), daemon=True)
    child.start()
    theirs.close()
    try:
        where = _heard(ours)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        produce(where)
        child_cpu_s = _heard(ours)
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s + child_cpu_s
        vars(operator).update(_heard(ours))
        ours.send("done")
    finally:
        ours.close()
        child.join()
    return wall_s, cpu_s


def _heard(pipe: Connection) -> Any:
    heard = pipe.recv()
    if isinstance(heard, BaseException):
        raise heard
    return heard


def _consume(pipe: Connection, consume: Callable[..., None], operator: Any, given: Sequence[object]) -> None:
    started_s = [0.0]
    is_over = threading.Event()
    threading.Thread(target=_watch, args=(pipe, is_over), daemon=True).start()

    def ready(where: object) -> None:
        started_s[0] = time.process_time()
        pipe.send(where)

    try:
        ending = consume(ready, operator, *given)
        pipe.send(time.process_time() - started_s[0])
        pipe.send(vars(operator))
        is_over.wait()
        if ending is not None:
            ending()
    except BaseException as error:  # noqa: BLE001 - raised again where the contender was started
        pipe.send(error)


def _watch(pipe: Connection, is_over: threading.Event) -> None:
    """When the parent is gone, so is this process, whatever it waits for."""
    try:
        pipe.recv()
    except EOFError:
        os._exit(1)
    is_over.set()


# -- the engine ------------------------------------------------------------------------------------------


def config_of(num_buffers: int, **options: Any) -> Config:
    """Two buffers of each channel's own, the rest floating, as Flink has it; buffers leave when they are full."""
    base = Config(buffer_timeout_ms=-1, floating_buffers_per_gate=num_buffers - 2, num_buffers=2 * num_buffers + 8)
    return replace(base, **options)


class Station:
    """One TaskManager with one end of one exchange, and no task: the thread that calls it is the task."""

    def __init__(self, config: Config, number: int) -> None:
        environment = StreamEnvironment(config)
        source = environment.source(lambda _subtask, _parallelism: IterableReader([]), type=KIND)
        source.slot_sharing_group("producers").rebalance().sink(print).slot_sharing_group("consumers")
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

    def __init__(self, config: Config) -> None:
        super().__init__(config, 0)
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
        rows = (rows_of(batch) for batch in cycled(ARROW, num_batches))
        self._write(partial(self.writer.write_batch, batch, 0) for batch in rows)

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

    def __init__(self, config: Config, address: tuple[str, int]) -> None:
        super().__init__(config, 1)
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
            while (element := source.next_element()) is not None:
                if isinstance(element, StreamRecord):
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

    def batches(self, process: Callable[[RecordBatch], None]) -> None:
        """As `Exchange.consume_batches`."""
        codec = BatchCodec(KIND)
        rest = b""
        taken: list[Any] = []
        while taken := self._next_buffers([]):
            data = b"".join([rest, *[buffer.data for buffer in taken]])
            with self.monitor:
                self._give_back(taken)
            rows, end = codec.decode(memoryview(data))
            rest = data[end:]
            process(rows)

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


def _receive(ready: Ready, operator: Any, config: Config, address: tuple[str, int], what: str) -> Callable[[], None]:
    station = Receiving(config, address)
    ready(None)
    if what == "records":
        station.records(operator.record)
    elif what == "batches":
        station.batches(lambda rows: operator.columns(rows["timestamp"], rows["f0"], rows["f1"]))
    else:
        station.buffers(operator.piece)
    return partial(station.__exit__, None, None, None)


def _through(config: Config, what: str, amount: int, operator: Any) -> tuple[float, float]:
    with Sending(config) as station:
        station.fill(PIECE)
        produce = getattr(station, what)
        return between_processes(_receive, lambda _: produce(amount), operator, config, station.address, what)


def exchange(num_records: int, operator: Any, **options: Any) -> Spent:
    return num_records, *_through(config_of(RECORD_BUFFERS, **options), "records", num_records, operator)


def exchange_of_batches(num_records: int, operator: Any, **options: Any) -> Spent:
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *_through(config_of(BATCH_BUFFERS, **options), "batches", num_batches, operator)


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

    def produce(port: int) -> None:
        with _connected(port) as connected:
            group = [memoryview(PIECE)] * 16
            for start in range(0, num_pieces, 16):
                _send_all(connected, group[: num_pieces - start])

    return num_pieces * PIECE_ROWS, *between_processes(_receive_pieces, produce, operator)


def _receive_pieces(ready: Ready, operator: Any) -> None:
    with _accepted(ready) as connected:
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
    connected = socket.create_connection((_HOST, port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _accepted(ready: Ready) -> socket.socket:
    with socket.create_server((_HOST, 0)) as listening:
        ready(listening.getsockname()[1])
        return listening.accept()[0]


# -- peers, one record at a time -------------------------------------------------------------------------


def queue_of_records(num_records: int, operator: Any) -> Spent:
    between = _CONTEXT.Queue(QUEUE_RECORDS)

    def produce(_where: object) -> None:
        put = between.put
        for row in cycled(ROWS, num_records):
            put(row)
        put(None)

    return num_records, *between_processes(_get_records, produce, operator, between)


def _get_records(ready: Ready, operator: Any, between: Any) -> None:
    ready(None)
    get, process = between.get, operator.row
    while (row := get()) is not None:
        process(row)


def queue_of_lists(num_records: int, operator: Any) -> Spent:
    between = _CONTEXT.Queue(QUEUE_BATCHES)

    def produce(_where: object) -> None:
        for chunk in chunks(ROWS, num_records, 1024):
            between.put(chunk)
        between.put(None)

    return num_records, *between_processes(_get_lists, produce, operator, between)


def _get_lists(ready: Ready, operator: Any, between: Any) -> None:
    ready(None)
    get, process = between.get, operator.row
    while (rows := get()) is not None:
        for row in rows:
            process(row)


_ROW = struct.Struct("<qqq")


def zmq_of_records(num_records: int, operator: Any) -> Spent:
    def produce(port: int) -> None:
        with _pushing(port) as put:
            pack = _ROW.pack
            for row in cycled(ROWS, num_records):
                put(pack(*row))
            put(b"")

    return num_records, *between_processes(_pull_records, produce, operator)


def _pull_records(ready: Ready, operator: Any) -> None:
    with _pulling(ready) as get:
        unpack, process = _ROW.unpack, operator.row
        while data := get():
            process(unpack(data))


class _pushing:  # noqa: N801
    def __init__(self, port: int) -> None:
        import zmq

        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.connect(f"tcp://{_HOST}:{port}")

    def __enter__(self) -> Any:
        return self._socket.send

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()
        self._context.term()


class _pulling:  # noqa: N801
    def __init__(self, ready: Ready) -> None:
        import zmq

        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        ready(self._socket.bind_to_random_port(f"tcp://{_HOST}"))

    def __enter__(self) -> Any:
        return self._socket.recv

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()
        self._context.term()


# -- peers, many records at a time -----------------------------------------------------------------------

_WIRE = BatchCodec(KIND)


def raw_socket_of_rows(num_records: int, operator: Any) -> Spent:
    """As many bytes as the engine's rows have, 32 KiB at a time, sent as they are; nobody encodes or decodes.

    What is received is the columns of whole batches as raw numbers, filled up to 29 bytes for each record.
    """
    num_batches = whole_batches(num_records)

    def produce(port: int) -> None:
        with _connected(port) as connected:
            for image in cycled(IMAGES, num_batches):
                starts = range(0, len(image), SEGMENT_BYTES)
                _send_all(connected, [image[start : start + SEGMENT_BYTES] for start in starts])

    return num_batches * BATCH, *between_processes(_receive_images, produce, operator)


def _receive_images(ready: Ready, operator: Any) -> None:
    with _accepted(ready) as connected:
        room = memoryview(bytearray(BATCH * RECORD_BYTES))
        while _fill(connected, room):
            operator.columns(*np.frombuffer(room, np.int64, 3 * BATCH).reshape(3, BATCH))


def _image_of(batch: pa.RecordBatch) -> memoryview:
    numbers = np.stack([column.to_numpy() for column in batch.columns])
    return memoryview(numbers.tobytes().ljust(batch.num_rows * RECORD_BYTES, b"\0"))


IMAGES = [_image_of(batch) for batch in ARROW]


def columns_of(batch: pa.RecordBatch) -> list[Any]:
    return [column.to_numpy() for column in batch.columns]


def arrow_stream(num_records: int, operator: Any) -> Spent:
    num_batches = whole_batches(num_records)

    def produce(port: int) -> None:
        with (
            _connected(port) as connected,
            connected.makefile("wb", 1 << 16) as file,
            pa.ipc.new_stream(file, SCHEMA) as writer,
        ):
            for batch in cycled(ARROW, num_batches):
                writer.write_batch(batch)

    return num_batches * BATCH, *between_processes(_read_arrow, produce, operator)


def _read_arrow(ready: Ready, operator: Any) -> None:
    with _accepted(ready) as connected, connected.makefile("rb", 1 << 16) as file:
        for batch in pa.ipc.open_stream(file):
            operator.columns(*columns_of(batch))


def arrow_flight(num_records: int, operator: Any) -> Spent:
    num_batches = whole_batches(num_records)

    def produce(port: int) -> None:
        from pyarrow import flight

        with flight.FlightClient(f"grpc://{_HOST}:{port}") as client:
            writer, reader = client.do_put(flight.FlightDescriptor.for_path("batches"), SCHEMA)
            with writer:
                for batch in cycled(ARROW, num_batches):
                    writer.write_batch(batch)
                writer.done_writing()
                reader.read()

    return num_batches * BATCH, *between_processes(_serve_flight, produce, operator)


def _serve_flight(ready: Ready, operator: Any) -> Callable[[], None]:
    from pyarrow import flight

    has_ended = threading.Event()

    class Server(flight.FlightServerBase):
        def do_put(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
            for chunk in reader:
                operator.columns(*columns_of(chunk.data))
            writer.write(b"done")
            has_ended.set()

    server = Server(f"grpc://{_HOST}:0")
    ready(server.port)
    has_ended.wait()
    return server.shutdown


def zmq_of_columns(num_records: int, operator: Any) -> Spent:
    num_batches = whole_batches(num_records)

    def produce(port: int) -> None:
        with _pushing(port) as put:
            for batch in cycled(ARROW, num_batches):
                put(np.stack(columns_of(batch)), copy=False)
            put(b"")

    return num_batches * BATCH, *between_processes(_pull_columns, produce, operator)


def _pull_columns(ready: Ready, operator: Any) -> None:
    with _pulling(ready) as get:
        while len(message := get(copy=False)):
            operator.columns(*np.frombuffer(message.buffer, np.int64).reshape(3, -1))


def queue_of_columns(num_records: int, operator: Any) -> Spent:
    between = _CONTEXT.Queue(QUEUE_BATCHES)
    num_batches = whole_batches(num_records)

    def produce(_where: object) -> None:
        for batch in cycled(ARROW, num_batches):
            between.put(columns_of(batch))
        between.put(None)

    return num_batches * BATCH, *between_processes(_get_columns, produce, operator, between)


def _get_columns(ready: Ready, operator: Any, between: Any) -> None:
    ready(None)
    while (columns := between.get()) is not None:
        operator.columns(*columns)


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
        (
            Ratio("credits", "raw socket", goal=0.85, floor=0.7),
            Ratio("credits 34", "raw socket", goal=0.85, floor=0.7),
            Ratio("credits", "no credits", goal=0.95, floor=0.88),
            Ratio("credits 34", "no credits 34", goal=0.95, floor=0.88),
        ),
        expected_pieces,
        checksum_of_pieces,
    ),
    Benchmark(
        "remote-record",
        "one record at a time, from process to process",
        (
            contender("credits", "RecordWriter.emit to NetworkInput.next_element over TCP", exchange),
            contender("no credits", "the same, the way before credits", partial(exchange, **WITHOUT)),
            contender("multiprocessing.Queue", "each record pickled; at most 1024 wait", queue_of_records),
            contender("pyzmq", "PUSH and PULL over TCP, 24 bytes packed for each record", zmq_of_records),
            contender("lists", "multiprocessing.Queue of lists of 1024, batched by hand", queue_of_lists),
        ),
        (
            Ratio("credits", "multiprocessing.Queue", goal=15, floor=10),
            Ratio("credits", "pyzmq", goal=2.5, floor=2),
            Ratio("credits", "lists", goal=0.85, floor=0.7),
            Ratio("credits", "no credits", goal=0.95, floor=0.88),
        ),
        expected,
        checksum,
    ),
    Benchmark(
        "remote-batch",
        f"{BATCH} rows of an Arrow batch at a time, from process to process",
        (
            contender("credits", "RecordWriter.write_batch to rows again over TCP: Flink's bytes", exchange_of_batches),
            contender("no credits", "the same, the way before credits", partial(exchange_of_batches, **WITHOUT)),
            contender("raw socket", "as many bytes, sent as they are: the limit", raw_socket_of_rows),
            contender("Arrow IPC", "Arrow's stream format over a socket", arrow_stream),
            contender("Arrow Flight", "DoPut", arrow_flight),
            contender("pyzmq numpy", "PUSH and PULL of stacked columns", zmq_of_columns),
            contender("mp.Queue numpy", "columns pickled", queue_of_columns),
        ),
        (
            Ratio("credits", "raw socket", goal=0.5, floor=0.35),
            Ratio("credits", "Arrow IPC", goal=0.9, floor=0.7),
            Ratio("credits", "Arrow Flight", goal=1.3, floor=1.0),
            Ratio("credits", "pyzmq numpy", goal=1.2, floor=1.0),
            Ratio("credits", "mp.Queue numpy", goal=1.0, floor=0.8),
            Ratio("credits", "no credits", goal=0.95, floor=0.88),
        ),
        expected,
        checksum,
    ),
)  # fmt: skip
