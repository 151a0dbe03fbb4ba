"""Where the time of a record goes, or that of a batch: layers are put on one by one, and each costs what it adds.

    python -m tests.bench.profile                 a table; the same as JSON in .cache/bench/profile.json
    python -m tests.bench.profile batch           of 4096 rows in columns, also between processes
    python -m tests.bench.profile --rounds 21     steadier

A profiler that looks at every call makes calls dear, and calls are what most layers are made of. So the same records
are moved by programs of which each does what another does and one thing more, in turns. What a layer costs is the
difference of the two in the same round, in CPU time of all threads, and of both processes where there are two.
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
from refimpl.producer import ForwardSelector
from refimpl.records import LENGTH_BYTES, StreamRecord
from refimpl.records.element_serializer import TAG_RECORD_WITH_TIMESTAMP
from refimpl.shortcuts.fixed_width import RecordPacker, RecordUnpacker
from refimpl.shortcuts.lanes import Lanes
from tests.bench import batch_layers, contenders
from tests.bench.channels import hand_out
from tests.bench.contenders import (
    BATCH,
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
from tests.bench.layers import Layer, Outcome
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.program import run_program
from tests.bench.report import deliver, machine, machine_in_words, spread

__all__ = ["LAYERS", "UNITS", "Unit", "main", "profile"]

FORMAT = "sluice-profile/2"
FILE = Path(__file__).parents[2] / ".cache" / "bench" / "profile.json"
UNPACKER = RecordUnpacker(KIND)
PER_SEGMENT = SEGMENT_BYTES // RECORD_BYTES
PER_LOOK = 64


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
    lanes = Lanes(RecordPacker.of(KIND), 1, lambda record, _channel: None)
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


def decode(num_records: int) -> Outcome:
    total = 0
    for data in segments(num_records):
        for value, _time in unpacked(data):
            total += value[1]
    return Outcome(num_records, total)


def operate(num_records: int) -> Outcome:
    operator = Adding()
    process = operator.record
    for data in segments(num_records):
        for value, at in unpacked(data):
            process(value, at)
    return Outcome(num_records, operator.total)


def exchange(num_records: int) -> Outcome:
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

    write = writer.put
    for piece in chunks(RECORDS, num_records, PER_LOOK):
        for record in piece:
            write(record)
        while not writer.is_available:
            read()
            with engine.monitor:
                writer.resume()
    writer.finish()
    read()
    return Outcome(num_records, operator.total)


# -- two threads ---------------------------------------------------------------------------------------


def threads(num_records: int) -> Outcome:
    operator = Adding()
    contenders.exchange(num_records, operator)
    return Outcome(num_records, operator.total)


def job(num_records: int, *, has_map: bool) -> Outcome:
    operator = Adding()
    environment = StreamEnvironment(
        Config(buffer_timeout_ms=-1, num_buffers=64, source_batch=PER_LOOK, object_reuse=True)
    )
    stream = environment.source(lambda _subtask, _parallelism: Reader(num_records), type=KIND).rebalance()
    if has_map:
        stream = stream.map(lambda value: value, type=KIND)
    stream.sink(operator.value)
    ThreadedRun(environment).run()
    return Outcome(num_records, operator.total)


LAYERS: Sequence[Layer] = (
    Layer("loop", "taking a record from a list", loop),
    Layer("selector", "producer/selector.py", select),
    Layer("pack", "struct.pack_into: length, tag, time, value", pack),
    Layer("builder and commit", "shortcuts/lanes.py, memory/builder.py", build),
    Layer("decode", "shortcuts/fixed_width.py RecordUnpacker, columns to Python's numbers", decode),
    Layer("operator", "a call for each record, which adds up", operate),
    Layer("writer, queue, gate", "shortcuts/writer.py to consumer/network_input.py", exchange),
    Layer("hand-over", "to another thread: monitor, waiting, waking", threads),
    Layer(
        "tasks",
        "task/ and drivers/threads/task_manager.py: a job of a source and a sink",
        lambda n: job(n, has_map=False),
    ),
    Layer("one operator more", "task/chain.py: a map chained before the sink", lambda n: job(n, has_map=True)),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is profiled: its layers, how many records it has and how many a turn moves; figures have `sign`, of `ns`."""

    layers: Sequence[Layer]
    num_records: int
    num_of_turn: int
    sign: str
    ns: int


UNITS = {
    "record": Unit(LAYERS, 1, 200_000, "ns", 1),
    "batch": Unit(batch_layers.LAYERS, BATCH, 2_000 * BATCH, "us", 1_000),
}


def profile(unit: Unit, rounds: int, num_records: int, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Let all programs take turns; return what each layer adds, in ns or us of CPU time.

    Raises:
        WrongAnswerError: a program lost something.
    """
    spent: list[list[float]] = []
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        turn = [cpu_ns(layer, num_records) * unit.num_records / unit.ns for layer in unit.layers]
        if number:
            spent.append(turn)
    lines = [
        {"layer": layer.name, "where": layer.where, "after": layer.after, "adds": spread(added), "total": spread(total)}
        for layer, (added, total) in zip(unit.layers, differences(spent, before(unit.layers)), strict=True)
    ]
    return {
        "format": FORMAT,
        "rounds": rounds,
        "num_records": num_records,
        "unit": unit.sign,
        "layers": lines,
        "turns": spent,
    }


def before(layers: Sequence[Layer]) -> list[int | None]:
    """For each layer the place of the one it is put on; the first has none."""
    places = {layer.name: place for place, layer in enumerate(layers)}
    return [places[layer.after] if layer.after else place - 1 if place else None for place, layer in enumerate(layers)]


def differences(turns: Sequence[Sequence[float]], on: Sequence[int | None]) -> list[tuple[Figure, Figure]]:
    """For each program what it takes more, in the same round, than the one it is put `on`; and what it takes."""
    return [
        (
            Figure.of([turn[index] - (0 if below is None else turn[below]) for turn in turns]),
            Figure.of([turn[index] for turn in turns]),
        )
        for index, below in enumerate(on)
    ]


def cpu_ns(layer: Layer, num_records: int) -> float:
    gc.collect()
    started = time.process_time_ns()
    outcome = layer.move(num_records)
    spent: float = time.process_time_ns() - started
    if outcome is None:
        return spent / num_records
    if outcome.total != (right := checksum(outcome.num_records)):
        raise WrongAnswerError(f"the program {layer.name!r} came to {outcome.total}, not to {right}")
    return (spent if outcome.cpu_s is None else outcome.cpu_s * 1e9) / outcome.num_records


def as_table(found: dict[str, Any]) -> str:
    """The layers with what they add, and with what all up to there take."""
    width = max(len(line["layer"]) for line in found["layers"])
    adds = f"adds, {found['unit']}"
    lines = [f"{'layer':<{width}}  {adds:>8}  {'middle half':>14}  {'so far':>7}  where"]
    for line in found["layers"]:
        added, total = line["adds"], line["total"]
        half = f"{added['low']:.0f} .. {added['high']:.0f}"
        where = f"{line['where']}, after {line['after']!r}" if line["after"] else line["where"]
        lines.append(f"{line['layer']:<{width}}  {added['median']:>8.0f}  {half:>14}  {total['median']:>7.0f}  {where}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(
        prog="make profile ARGS='…'" if "MAKELEVEL" in os.environ else "python -m tests.bench.profile",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("unit", nargs="?", choices=UNITS, default="record", help="what is profiled (record)")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="turns of each program (9)")
    turns = " or ".join(f"{unit.num_of_turn}" for unit in UNITS.values())
    parser.add_argument("--records", type=int, metavar="N", help=f"records of a turn ({turns})")
    parser.add_argument("--json", metavar="FILE", help=f"write it there, not to {FILE.name}; - prints it instead")
    chosen = parser.parse_args(arguments)
    unit = UNITS[chosen.unit]
    num_records = unit.num_of_turn if chosen.records is None else chosen.records
    if chosen.rounds < 1 or num_records < 1:
        parser.error("at least 1 round of 1 record")
    load = os.getloadavg()[0]
    found = profile(unit, chosen.rounds, num_records, lambda text: print(text, file=sys.stderr))
    found["machine"] = machine(load)
    file = deliver(found, chosen.json, FILE)
    if file is None:
        return 0
    print(as_table(found), machine_in_words(found["machine"]), f"All of it: {file}", sep="\n\n")
    return 0


if __name__ == "__main__":
    run_program(main)
