"""The engine over TCP: two processes, a producer in this one and a consumer in another.

Records, batches, columns and whole buffers, and what the system makes of the same bytes. What is built before the
first record (processes, pools, connections; see `stations`) is not timed. CPU seconds are those of both processes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from refimpl.config import Config
from refimpl.records import LONG, RecordBatch, StreamElement, StreamRecord, TypeSerializer
from refimpl.shortcuts.columnar_type import ColumnarType
from tests.bench.contenders import (
    BATCH,
    KIND,
    LARGE_BYTES,
    RECORD_BUFFERS,
    REMOTE_BUFFERS,
    ROWS,
    SEGMENT_BYTES,
    checksum,
    contender,
    expected,
    whole_batches,
)
from tests.bench.measure import Benchmark, Contender, Row, Turn
from tests.bench.pair import across, cores, kept_on, lacking_cores
from tests.bench.peers import LOOPBACK, accepted
from tests.bench.stations import Receiving, Sending

__all__ = ["BENCHMARKS", "exchange_of_batches", "take_element"]

Spent = tuple[int, float, float]
"""Records moved, wall seconds, CPU seconds of both processes."""

Ready = Callable[[object], None]
COLUMNS = ColumnarType(LONG, LONG, LONG)
_READ_BYTES = 256 * 1024


# -- the engine ------------------------------------------------------------------------------------------


def config_of(num_buffers: int, **options: Any) -> Config:
    """Two buffers of each channel's own, the rest floating, as Flink has it; buffers leave when they are full.

    One channel may have them all, at both ends: the default of ten would hold the producer back.
    """
    base = Config(
        buffer_timeout_ms=-1,
        floating_buffers_per_gate=num_buffers - 2,
        max_buffers_per_channel=num_buffers,
        num_buffers=2 * num_buffers + 8,
    )
    return replace(base, **options)


def _receive(ready: Ready, shared: tuple[Config, tuple[str, int], str], operator: Any) -> None:
    config, address, what = shared
    station = Receiving(config, _kind(what), address, what == "batches")
    ready(None)
    if what == "records":
        station.records(operator.record)
    elif what == "batches":
        station.elements(partial(take_element, operator))
    elif what == "columns":
        station.records(lambda batch, _time: operator.columns(*batch.columns))
    else:
        station.buffers(operator.piece)


def _kind(what: str) -> TypeSerializer:
    return COLUMNS if what == "columns" else KIND


def take_element(operator: Any, element: RecordBatch | StreamElement) -> None:
    """Give the operator the columns of what an input hands out."""
    if isinstance(element, StreamRecord):  # too few for a batch
        fields = [np.array([part]) for part in (element.timestamp, *element.value)]
        operator.columns(*fields)
    elif isinstance(element, RecordBatch):
        operator.columns(element.timestamps, *element.columns)


def _through(config: Config, what: str, amount: int, operator: Any, core: int | None = None) -> tuple[float, float]:
    with Sending(config, _kind(what)) as station:
        station.fill(PIECE)
        produce = getattr(station, what)
        return across(_receive, lambda *_: produce(amount), operator, (config, station.address, what), core)


def exchange(num_records: int, operator: Any, **options: Any) -> Spent:
    return num_records, *_through(config_of(RECORD_BUFFERS, **options), "records", num_records, operator)


def exchange_of_batches(
    num_records: int, operator: Any, *, num_buffers: int = REMOTE_BUFFERS, core: int | None = None, **options: Any
) -> Spent:
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *_through(config_of(num_buffers, **options), "batches", num_batches, operator, core)


def exchange_of_columns(num_records: int, operator: Any, *, num_buffers: int = REMOTE_BUFFERS, **options: Any) -> Spent:
    num_batches = whole_batches(num_records)
    return num_batches * BATCH, *_through(config_of(num_buffers, **options), "columns", num_batches, operator)


def exchange_of_buffers(
    num_records: int, operator: Any, *, num_buffers: int = REMOTE_BUFFERS, core: int | None = None, **options: Any
) -> Spent:
    """As much on the way as Linux lets the raw socket have."""
    num_pieces = whole_pieces(num_records)
    return num_pieces * PIECE_ROWS, *_through(config_of(num_buffers, **options), "buffers", num_pieces, operator, core)


def kept_apart(move: Callable[..., Spent], num_records: int, operator: Any) -> Spent:
    """The same with a core for each process, and all its threads on that."""
    here, *_, there = cores()
    with kept_on(here):
        return move(num_records, operator, core=there)


WITHOUT = {"credit_based": False}
LARGE = {"segment_size_bytes": LARGE_BYTES, "num_buffers": REMOTE_BUFFERS * SEGMENT_BYTES // LARGE_BYTES}


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


def raw_socket(num_records: int, operator: Any, group: int = 1) -> Spent:
    """The limit: one thread sends buffers of 32 KiB, so many a call, another receives them."""
    num_pieces = whole_pieces(num_records)

    def produce(port: int, _shared: object) -> None:
        with _connected(port) as connected:
            pieces = [memoryview(PIECE)] * group
            for start in range(0, num_pieces, group):
                _send_all(connected, pieces[: num_pieces - start])

    return num_pieces * PIECE_ROWS, *across(_receive_pieces, produce, operator, min(group * SEGMENT_BYTES, _READ_BYTES))


def _receive_pieces(ready: Ready, num_bytes: int, operator: Any) -> None:
    with accepted(ready) as connected:
        room = memoryview(bytearray(num_bytes))
        while num_bytes := _fill(connected, room):
            for start in range(0, num_bytes, SEGMENT_BYTES):
                operator.piece(room[start : start + SEGMENT_BYTES])


def _fill(connected: socket.socket, room: memoryview) -> int:
    """Fill `room`, or as much as there is before the end; how many bytes that is."""
    num_bytes = 0
    while num_bytes < len(room) and (got := connected.recv_into(room[num_bytes:])):
        num_bytes += got
    return num_bytes


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
            contender_of_pieces("credits", "subpartition to gate, 128 buffers at each end", exchange_of_buffers),
            replace(
                contender_of_pieces("credits, a core each", "on one core", partial(kept_apart, exchange_of_buffers)),
                lacking=lacking_cores,
            ),
            contender_of_pieces("no credits", "the same, before credits", partial(exchange_of_buffers, **WITHOUT)),
            contender_of_pieces("credits 10", "10 buffers at each end", partial(exchange_of_buffers, num_buffers=10)),
            contender_of_pieces("no credits 10", "both", partial(exchange_of_buffers, num_buffers=10, **WITHOUT)),
            contender_of_pieces("raw socket", "a buffer a call, one thread at each end: the limit", raw_socket),
            contender_of_pieces("raw socket, 16", "sixteen buffers a call", partial(raw_socket, group=16)),
        ),
        (),
        expected_pieces,
        checksum_of_pieces,
    ),
    Benchmark(
        "remote-record",
        "one record at a time, from process to process",
        (
            contender("credits", "RecordWriter.emit to NetworkInput.next_values over TCP", exchange),
            contender("no credits", "the same, the way before credits", partial(exchange, **WITHOUT)),
        ),
        (),
        expected,
        checksum,
    ),
    Benchmark(
        "remote-batch",
        f"{BATCH} rows at a time, from process to process",
        (
            contender("credits", "RecordWriter.write_batch to batches again: Flink's bytes", exchange_of_batches),
            replace(
                contender("credits, a core each", "on one core", partial(kept_apart, exchange_of_batches)),
                lacking=lacking_cores,
            ),
            contender("credits 10", "ten buffers, Flink's default", partial(exchange_of_batches, num_buffers=10)),
            contender("no credits", "the same, the way before credits", partial(exchange_of_batches, **WITHOUT)),
            contender("large", "buffers of 128 KiB", partial(exchange_of_batches, **LARGE)),
            contender("columnar", "each batch one record, ColumnarType", exchange_of_columns),
            contender("columnar, large", "both", partial(exchange_of_columns, **LARGE)),
        ),
        (),
        expected,
        checksum,
    ),
)  # fmt: skip
