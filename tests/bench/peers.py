"""What a user takes today between two processes, and what the machine allows at most: none of it is ours.

Everyone moves the records of `contenders.py` from this process to an operator in another one, and ends in one call per
record or per batch. What it takes to start a process, to listen and to connect is not timed, the work of both is.
Nobody is made slow: buffers and limits are the libraries' own, and batches are as large as the engine's.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.contenders import (
    BATCH,
    COLUMNS,
    QUEUE_BATCHES,
    QUEUE_RECORDS,
    REMOTE_BATCHES,
    ROWS,
    SCHEMA,
    SEGMENT_BYTES,
    arrow_batches,
    chunks,
    contender,
    cycled,
    image_of,
    whole_batches,
)
from tests.bench.measure import Contender, Row, timed
from tests.bench.pair import CONTEXT, across

__all__ = ["PEERS"]

LOOPBACK = "127.0.0.1"
LIST = 1_024  # records in a list that a user puts together by hand
ROW = struct.Struct(">qqq")
LENGTH = struct.Struct(">q")
Moved = tuple[int, float, float]


# -- one record at a time ------------------------------------------------------------------------------


def queue_of_records(num_records: int, operator: Any) -> Moved:
    def produce(_address: object, between: Any) -> None:
        put = between.put
        for row in cycled(ROWS, num_records):
            put(row)
        put(None)

    return num_records, *across(take_rows, produce, operator, CONTEXT.Queue(QUEUE_RECORDS))


def take_rows(ready: Callable[[object], None], between: Any, operator: Any) -> None:
    ready(None)
    get, process = between.get, operator.row
    while (row := get()) is not None:
        process(row)


def queue_of_lists(num_records: int, operator: Any) -> Moved:
    def produce(_address: object, between: Any) -> None:
        for rows in chunks(ROWS, num_records, LIST):
            between.put(rows)
        between.put(None)

    return num_records, *across(take_lists, produce, operator, CONTEXT.Queue(QUEUE_BATCHES))


def take_lists(ready: Callable[[object], None], between: Any, operator: Any) -> None:
    ready(None)
    process = operator.row
    while (rows := between.get()) is not None:
        for row in rows:
            process(row)


def pipe_of_records(num_records: int, operator: Any) -> Moved:
    there, here = CONTEXT.Pipe(duplex=False)

    def produce(_address: object, _shared: object) -> None:
        send = here.send
        for row in cycled(ROWS, num_records):
            send(row)
        send(None)

    with there, here:
        return num_records, *across(take_from_pipe, produce, operator, there)


def take_from_pipe(ready: Callable[[object], None], between: Any, operator: Any) -> None:
    ready(None)
    receive, process = between.recv, operator.row
    while (row := receive()) is not None:
        process(row)


def zmq_of_records(num_records: int, operator: Any) -> Moved:
    def produce(port: int, _shared: object) -> Callable[[], None]:
        context, out = zmq_connected(port)
        send, pack = out.send, ROW.pack
        for row in cycled(ROWS, num_records):
            send(pack(*row))
        send(b"")
        return partial(end_zmq, context, out)

    return num_records, *across(take_from_zmq, produce, operator)


def zmq_connected(port: int) -> tuple[Any, Any]:
    import zmq

    context = zmq.Context()
    out = context.socket(zmq.PUSH)
    out.linger = 0  # closed after all has arrived, or after a failure; neither is to wait
    out.connect(f"tcp://{LOOPBACK}:{port}")
    return context, out


def end_zmq(context: Any, out: Any) -> None:
    out.close()
    context.term()


def take_from_zmq(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    import zmq

    source = zmq.Context().socket(zmq.PULL)
    ready(source.bind_to_random_port(f"tcp://{LOOPBACK}"))
    receive, process, unpack = source.recv, operator.row, ROW.unpack
    while message := receive():
        process(unpack(message))


# -- many records at a time ----------------------------------------------------------------------------


def queue_of_numpy(num_records: int, operator: Any) -> Moved:
    num_batches = whole_batches(num_records)

    def produce(_address: object, between: Any) -> None:
        for columns in cycled(COLUMNS, num_batches):
            between.put(columns)
        between.put(None)

    return num_batches * BATCH, *across(take_columns, produce, operator, CONTEXT.Queue(REMOTE_BATCHES))


def take_columns(ready: Callable[[object], None], between: Any, operator: Any) -> None:
    ready(None)
    while (columns := between.get()) is not None:
        operator.columns(*columns)


def zmq_of_numpy(num_records: int, operator: Any) -> Moved:
    num_batches = whole_batches(num_records)

    def produce(port: int, _shared: object) -> Callable[[], None]:
        context, out = zmq_connected(port)
        for columns in cycled(COLUMNS, num_batches):
            out.send(np.stack(columns), copy=False)
        out.send(b"")
        return partial(end_zmq, context, out)

    return num_batches * BATCH, *across(take_numpy_from_zmq, produce, operator)


def take_numpy_from_zmq(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    import zmq

    source = zmq.Context().socket(zmq.PULL)
    ready(source.bind_to_random_port(f"tcp://{LOOPBACK}"))
    while message := source.recv(copy=False).buffer:
        operator.columns(*np.frombuffer(message, np.int64).reshape(3, -1))


def arrow_stream(num_records: int, operator: Any, is_ready: bool = False) -> Moved:
    num_batches = whole_batches(num_records)
    made = arrow_batches(num_batches, is_ready)

    def produce(port: int, _shared: object) -> None:
        with (
            socket.create_connection((LOOPBACK, port)) as out,
            out.makefile("wb", 1 << 16) as file,
            pa.ipc.new_stream(file, SCHEMA) as writer,
        ):
            for batch in made:
                writer.write_batch(batch)

    return num_batches * BATCH, *across(take_arrow_stream, produce, operator)


def take_arrow_stream(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    with accepted(ready) as source, source.makefile("rb", 1 << 16) as file:
        for batch in pa.ipc.open_stream(file):
            operator.columns(*(column.to_numpy() for column in batch.columns))


def arrow_flight(num_records: int, operator: Any, is_ready: bool = False) -> Moved:
    from pyarrow import flight

    num_batches = whole_batches(num_records)
    made = arrow_batches(num_batches, is_ready)

    def produce(port: int, _shared: object) -> Callable[[], None]:
        client = flight.FlightClient(f"grpc://{LOOPBACK}:{port}")
        writer, reader = client.do_put(flight.FlightDescriptor.for_path("records"), SCHEMA)
        for batch in made:
            writer.write_batch(batch)
        writer.done_writing()
        reader.read()
        writer.close()
        return client.close

    return num_batches * BATCH, *across(take_flight, produce, operator)


def take_flight(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    from pyarrow import flight

    has_all = threading.Event()

    class Server(flight.FlightServerBase):
        def do_put(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
            for chunk in reader:
                operator.columns(*(column.to_numpy() for column in chunk.data.columns))
            writer.write(b"done")
            has_all.set()

    server = Server(f"grpc://{LOOPBACK}:0")
    ready(server.port)
    has_all.wait()


def raw_socket(num_records: int, operator: Any) -> Moved:
    """29 bytes for each record over loopback, 32 KiB at a time, and nobody looks at them: the limit.

    The bytes are whole batches, their columns one after the other as raw numbers, as in `copied_segments`.
    """
    num_batches = whole_batches(num_records)
    pieces = [
        [image[start : start + SEGMENT_BYTES] for start in range(0, len(image), SEGMENT_BYTES)]
        for image in map(image_of, COLUMNS)
    ]

    def produce(port: int, _shared: object) -> None:
        with socket.create_connection((LOOPBACK, port)) as out:
            out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            send = out.sendall
            for batch in cycled(pieces, num_batches):
                for piece in batch:
                    send(piece)

    return num_batches * BATCH, *across(take_raw, produce, operator)


def take_raw(ready: Callable[[object], None], _shared: object, operator: Any) -> None:
    arrived = memoryview(bytearray(len(image_of(COLUMNS[0]))))
    numbers = np.frombuffer(arrived, np.int64, 3 * BATCH).reshape(3, BATCH)
    position = 0
    with accepted(ready) as source:
        while received := source.recv_into(arrived[position:]):
            position += received
            if position == len(arrived):
                position = 0
                operator.columns(*numbers)


def accepted(ready: Callable[[object], None]) -> socket.socket:
    """Listen, say where, and return the one connection that comes."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        ready(listener.getsockname()[1])
        connected, _ = listener.accept()
    return connected


# -- another dataflow engine ---------------------------------------------------------------------------


def bytewax_keyed(num_records: int, operator: Any) -> Moved:
    """A sequence keyed by one of its numbers, a state for each key: the engine's nearest relative in Python."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import DynamicSource, StatelessSourcePartition
    from bytewax.outputs import DynamicSink, StatelessSinkPartition
    from bytewax.testing import run_main

    class Part(StatelessSourcePartition[Row]):
        def __init__(self) -> None:
            self._pieces: Iterator[Any] = chunks(ROWS, num_records, LIST)

        def next_batch(self) -> list[Row]:
            try:
                return list(next(self._pieces))
            except StopIteration:
                raise StopIteration from None

    class Source(DynamicSource[Row]):
        def build(self, _step: str, _worker: int, _workers: int) -> Part:
            return Part()

    class SinkPart(StatelessSinkPartition[Any]):
        def write_batch(self, items: list[Any]) -> None:
            process = operator.row
            for _key, row in items:
                process(row)

    class Sink(DynamicSink[Any]):
        def build(self, _step: str, _worker: int, _workers: int) -> SinkPart:
            return SinkPart()

    flow = Dataflow("keyed")
    keyed = op.key_on("key", op.input("source", flow, Source()), lambda row: str(row[1] & 1023))
    op.output("sink", op.stateful_map("state", keyed, lambda state, row: ((state or 0) + 1, row)), Sink())
    return num_records, *timed(lambda: run_main(flow))


def lacking(package: str) -> str | None:
    """Why a peer cannot run here, if it cannot."""
    if find_spec(package) is not None:
        return None
    return f"{package} is not installed; `make bench` installs it where there is a wheel for this Python"


NEEDS = {"pyzmq": "zmq", "pyzmq numpy": "zmq", "bytewax": "bytewax"}

PEERS: dict[str, Contender] = {
    name: replace(
        contender(name, meaning, move),
        is_ordered=name != "bytewax",  # it deals a batch out by key
        lacking=partial(lacking, NEEDS.get(name, "pyarrow")),
    )
    for name, meaning, move in (
        ("mp.Queue", "multiprocessing.Queue(1024), an object for each put", queue_of_records),
        ("mp.Queue of lists", f"multiprocessing.Queue of lists of {LIST}: batched by hand", queue_of_lists),
        ("mp.Pipe", "multiprocessing.Pipe, an object for each send", pipe_of_records),
        ("pyzmq", "PUSH and PULL over TCP, a message of 24 bytes for each record", zmq_of_records),
        ("raw socket", "29 bytes a record over loopback, 32 KiB at a time, nothing encoded: the limit", raw_socket),
        ("Arrow IPC stream", "record batches in Arrow's own format over a socket, 24 bytes a record", arrow_stream),
        ("Arrow IPC stream, ready", "the same of Arrow's batches", partial(arrow_stream, is_ready=True)),
        ("Arrow Flight", "record batches put to a Flight server", arrow_flight),
        ("Arrow Flight, ready", "the same of Arrow's batches", partial(arrow_flight, is_ready=True)),
        ("pyzmq numpy", "PUSH and PULL over TCP, columns of a batch in one message, not copied", zmq_of_numpy),
        ("mp.Queue numpy", "multiprocessing.Queue of a batch's columns as numpy arrays", queue_of_numpy),
        ("bytewax", "stateful_map after key_on, in batches of 1024 from the source; one worker", bytewax_keyed),
    )
}
