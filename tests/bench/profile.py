"""Where the nanoseconds of a record go: one layer after the other is put on, and each costs what it adds.

    python -m tests.bench.profile                 a table; the same as JSON in .cache/bench/profile.json
    python -m tests.bench.profile --rounds 21     steadier

A profiler that looks at every call makes calls dear, and calls are what most layers are made of. So the same records
are moved by programs of which each does what the one before does and one thing more, in turns, in one process. What a
layer costs is the difference of two neighbours in the same round, in CPU time of all threads.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.memory import BufferBuilder, LocalBufferPool, NetworkBufferPool
from refimpl.producer import ForwardSelector, Lanes
from refimpl.records import (
    LENGTH_BYTES,
    RecordUnpacker,
    StreamRecord,
)
from refimpl.records.element_serializer import TAG_RECORD_WITH_TIMESTAMP
from tests.bench import contenders
from tests.bench.channels import hand_out
from tests.bench.contenders import (
    KIND,
    RECORD_BUFFERS,
    RECORD_BYTES,
    RECORDS,
    SEGMENT_BYTES,
    Adding,
    Reader,
    checksum,
    chunks,
    cycled,
)
from tests.bench.exchange import Exchange
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.program import run_program
from tests.bench.report import deliver, machine, machine_in_words, spread

__all__ = ["LAYERS", "Layer", "main", "profile"]

FORMAT = "sluice-profile/1"
FILE = Path(__file__).parents[2] / ".cache" / "bench" / "profile.json"
UNPACKER = RecordUnpacker(KIND)
PER_SEGMENT = SEGMENT_BYTES // RECORD_BYTES
PER_LOOK = 64


@dataclass(frozen=True, slots=True)
class Layer:
    """What the program `move` does more than the one before, and where in the engine that stands.

    `move(n)` moves n records and returns the sum of their values, or `None` where none arrive.
    """

    name: str
    where: str
    move: Callable[[int], int | None]


def pieces(num_records: int) -> Iterator[list[StreamRecord]]:
    """As many records as fit into a segment, over and over."""
    records = cycled(RECORDS, num_records)
    while piece := list(islice(records, PER_SEGMENT)):
        yield piece


# -- one thread, layer by layer ------------------------------------------------------------------------


def loop(num_records: int) -> None:
    for piece in pieces(num_records):
        for _record in piece:
            pass


def select(num_records: int) -> None:
    selector = ForwardSelector()
    selector.setup(1)
    choose = selector.select_channel
    for piece in pieces(num_records):
        for record in piece:
            choose(record.value)


def pack(num_records: int) -> None:
    """The bytes alone: length, tag, time and value into memory, at a position that moves."""
    import struct

    selector = ForwardSelector()
    selector.setup(1)
    choose = selector.select_channel
    layout = struct.Struct(f">iBq{KIND.struct_format}")
    put, width, length = layout.pack_into, layout.size, layout.size - LENGTH_BYTES
    segment = bytearray(SEGMENT_BYTES)
    for piece in pieces(num_records):
        position = 0
        for record in piece:
            choose(record.value)
            put(segment, position, length, TAG_RECORD_WITH_TIMESTAMP, record.timestamp, *record.value)
            position += width


def segments(num_records: int) -> Iterator[memoryview]:
    """Records packed into buffers of a pool, each shown when it is full."""
    pool = LocalBufferPool(NetworkBufferPool(1, SEGMENT_BYTES), 1, 1, "profile", 1)
    selector = ForwardSelector()
    selector.setup(1)
    lanes = Lanes(KIND, 1, lambda record, _channel: None)
    choose, write = selector.select_channel, lanes.put[0]
    for piece in pieces(num_records):
        builder = pool.request_builder(0)
        assert isinstance(builder, BufferBuilder)
        consumer = builder.create_consumer()
        lanes.open(0, builder)
        for record in piece:
            choose(record.value)
            write(record)
        builder.finish()
        filled = consumer.build()
        yield filled.data
        filled.recycle()
        consumer.close()


def build(num_records: int) -> None:
    for _data in segments(num_records):
        pass


def unpacked(data: memoryview) -> Iterable[tuple[Any, int | None]]:
    """The values with their times."""
    _, values, times = UNPACKER.unpack(data)
    return zip(values, times, strict=True)


def decode(num_records: int) -> int:
    total = 0
    for data in segments(num_records):
        for value, _time in unpacked(data):
            total += value[1]
    return total


def operate(num_records: int) -> int:
    operator = Adding()
    process = operator.record
    for data in segments(num_records):
        for value, at in unpacked(data):
            process(value, at)
    return operator.total


def exchange(num_records: int) -> int:
    """The engine's writer, queue, channel, gate and input; the one thread writes and reads in turn."""
    engine, operator = Exchange(KIND, RECORD_BUFFERS), Adding()
    writer, source, process = engine.writer, engine.input, operator.record

    def take() -> int:
        with engine.monitor:
            source.recycle()
            return source.take(RECORD_BUFFERS)

    def read() -> None:
        while take():
            hand_out(source, process)

    write = writer.emit
    for piece in chunks(RECORDS, num_records, PER_LOOK):
        for record in piece:
            write(record)
        while not writer.is_available:
            read()
            with engine.monitor:
                writer.resume()
    writer.finish()
    read()
    return operator.total


# -- two threads ---------------------------------------------------------------------------------------


def threads(num_records: int) -> int:
    operator = Adding()
    contenders.exchange(num_records, operator)
    return operator.total


def job(num_records: int, *, has_map: bool) -> int:
    operator = Adding()
    environment = StreamEnvironment(
        Config(buffer_timeout_ms=-1, num_buffers=64, source_batch=PER_LOOK, object_reuse=True)
    )
    stream = environment.source(lambda _subtask, _parallelism: Reader(num_records), type=KIND).rebalance()
    if has_map:
        stream = stream.map(lambda value: value, type=KIND)
    stream.sink(operator.value)
    ThreadedRun(environment).run()
    return operator.total


LAYERS: Sequence[Layer] = (
    Layer("loop", "taking a record from a list", loop),
    Layer("selector", "producer/selector.py", select),
    Layer("pack", "struct.pack_into: length, tag, time, value", pack),
    Layer("builder and commit", "producer/lanes.py, memory/builder.py", build),
    Layer("decode", "records/packing.py RecordUnpacker, columns to Python's numbers", decode),
    Layer("operator", "a call for each record, which adds up", operate),
    Layer("writer, queue, gate", "producer/record_writer.py to consumer/network_input.py", exchange),
    Layer("hand-over", "to another thread: monitor, waiting, waking", threads),
    Layer("tasks", "task/ and drivers/task_threads.py: a job of a source and a sink", lambda n: job(n, has_map=False)),
    Layer("one operator more", "task/chain.py: a map chained before the sink", lambda n: job(n, has_map=True)),
)


def profile(rounds: int, num_records: int, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Let all programs take turns; return what each layer adds, in ns of CPU time a record.

    Raises:
        WrongAnswerError: a program lost something.
    """
    spent: list[list[float]] = []
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        turn = [cpu_ns(layer, num_records) for layer in LAYERS]
        if number:
            spent.append(turn)
    lines = [
        {"layer": layer.name, "where": layer.where, "adds_ns": spread(added), "total_ns": spread(total)}
        for layer, (added, total) in zip(LAYERS, differences(spent), strict=True)
    ]
    return {"format": FORMAT, "rounds": rounds, "num_records": num_records, "layers": lines, "turns": spent}


def differences(turns: Sequence[Sequence[float]]) -> list[tuple[Figure, Figure]]:
    """For each program what it takes more than the one before in the same round, and what it takes."""
    return [
        (
            Figure.of([turn[index] - (turn[index - 1] if index else 0) for turn in turns]),
            Figure.of([turn[index] for turn in turns]),
        )
        for index in range(len(turns[0]))
    ]


def cpu_ns(layer: Layer, num_records: int) -> float:
    gc.collect()
    started = time.process_time_ns()
    total = layer.move(num_records)
    spent = time.process_time_ns() - started
    if total is not None and total != checksum(num_records):
        raise WrongAnswerError(f"the program {layer.name!r} came to {total}, not to {checksum(num_records)}")
    return spent / num_records


def as_table(found: dict[str, Any]) -> str:
    """The layers with what they add, and with what all up to there take."""
    width = max(len(line["layer"]) for line in found["layers"])
    lines = [f"{'layer':<{width}}  {'adds, ns':>8}  {'middle half':>14}  {'so far':>7}  where"]
    for line in found["layers"]:
        added, total = line["adds_ns"], line["total_ns"]
        half = f"{added['low']:.0f} .. {added['high']:.0f}"
        lines.append(
            f"{line['layer']:<{width}}  {added['median']:>8.0f}  {half:>14}  {total['median']:>7.0f}  {line['where']}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(
        prog="make profile ARGS='…'" if "MAKELEVEL" in os.environ else "python -m tests.bench.profile",
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="turns of each program (9)")
    parser.add_argument("--records", type=int, default=200_000, metavar="N", help="records of a turn (200000)")
    parser.add_argument("--json", metavar="FILE", help=f"write it there, not to {FILE.name}; - prints it instead")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.records < 1:
        parser.error("at least 1 round of 1 record")
    load = os.getloadavg()[0]
    found = profile(chosen.rounds, chosen.records, lambda text: print(text, file=sys.stderr))
    found["machine"] = machine(load)
    file = deliver(found, chosen.json, FILE)
    if file is None:
        return 0
    print(as_table(found), machine_in_words(found["machine"]), f"All of it: {file}", sep="\n\n")
    return 0


if __name__ == "__main__":
    run_program(main)
