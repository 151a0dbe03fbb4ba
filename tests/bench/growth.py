"""How cost grows: with channels, record size, parallelism, flushes, buffers in flight, and time.

    python -m tests.bench.growth                            a table; the same as JSON in .cache/bench/growth.json
    python -m tests.bench.growth --picture growth.svg       and as curves
    python -m tests.bench.growth size spanning --rounds 7   some of them, steadier

The points of an experiment take turns, and what is compared is compared within a round. What grows is CPU time, so that
other users of the machine hardly show. Each experiment says what should come of it, and whether it did; nothing fails.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.transport import PlainStream
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, StreamRecord
from refimpl.task import IterableReader
from tests.bench.channels import RECORDS_OF_A_TURN, Channels, Plan
from tests.bench.contenders import BATCH_BUFFERS, KIND, RECORD_BYTES, SEGMENT_BYTES, Adding, Reader
from tests.bench.exchange import Exchange
from tests.bench.measure import Figure, in_two_threads
from tests.bench.pictures import picture_file
from tests.bench.program import run_program
from tests.bench.report import deliver, machine, machine_in_words, number, spread
from widgets import Curve, Panel, PaperFigure

__all__ = ["EXPERIMENTS", "Experiment", "main", "paper", "run"]

FORMAT = "sluice-growth/1"
QUARTILES = ("median", "low", "high")
FILE = Path(__file__).parents[2] / ".cache" / "bench" / "growth.json"
NUM_RECORDS = 200_000
OVERHEAD = 13  # length, tag and time before the bytes of a record
MIB = 1 << 20

Measured = Mapping[str, float]
"""What one turn found, by the name of its curve."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One thing that is varied over `points`, and the curves that come of it.

    `measure(point, scale)` is one turn, of `scale` times the usual work. `judge(curves)` gets the medians of each curve
    in the order of the points and says whether it came as `expected`.
    """

    name: str
    varies: str
    unit: str
    points: Sequence[float]
    measure: Callable[[Any, float], Measured]
    expected: str
    judge: Callable[[Mapping[str, Sequence[float]]], bool]
    is_log: bool = True
    runs_once: bool = False


def scaled(number: int, scale: float) -> int:
    return max(1, int(number * scale))


# -- channels ------------------------------------------------------------------------------------------


def through_channels(plan: Plan, scale: float) -> Measured:
    num_records = scaled(RECORDS_OF_A_TURN, scale)
    channels = Channels(plan)
    wall_s, cpu_s = channels.move(num_records, Adding().record)
    return {"CPU": cpu_s / num_records * 1e9, "flushes per s": channels.flush_clock.num_flushes / wall_s}


def active(num_channels: int, scale: float) -> Measured:
    return {"CPU": through_channels(Plan(num_channels), scale)["CPU"]}


def idle(num_idle: int, scale: float) -> Measured:
    return {f"T={ms} ms": through_channels(Plan(1, num_idle, ms), scale)["CPU"] for ms in (100, 1)}


def flusher(timeout_ms: int, scale: float) -> Measured:
    return {f"{n} channels": through_channels(Plan(n, 0, timeout_ms), scale)["CPU"] for n in (1, 100)}


# -- records -------------------------------------------------------------------------------------------


def of_size(size: int, num_records: int) -> float:
    """CPU ns for each record of so many bytes."""
    engine, arrived = Exchange(BYTES, BATCH_BUFFERS), [0]
    together = max(1, min(64, SEGMENT_BYTES // max(size, 1)))
    piece = [StreamRecord(bytes(size), 0)] * together
    num_records = -(-num_records // together) * together

    def process(value: bytes, _time: int | None) -> None:
        arrived[0] += len(value)

    _, cpu_s = in_two_threads(
        lambda: engine.produce_records(piece for _ in range(num_records // together)),
        lambda: engine.consume_records(process),
    )
    assert arrived[0] == size * num_records, f"{arrived[0]} bytes of {size * num_records} arrived"
    return cpu_s / num_records * 1e9


def size(size: int, scale: float) -> Measured:
    return {"CPU": of_size(size, scaled(min(50_000, 100 * MIB // max(size, 1)), scale))}


def spanning(beyond: int, scale: float) -> Measured:
    return {"CPU": of_size(SEGMENT_BYTES - OVERHEAD + beyond, scaled(3_000, scale))}


# -- jobs ----------------------------------------------------------------------------------------------


def parallelism(parallelism: int, scale: float) -> Measured:
    num_records = scaled(2 * NUM_RECORDS, scale)
    share = -(-num_records // parallelism)
    environment = StreamEnvironment(Config(num_buffers=2_048, buffer_timeout_ms=100), parallelism=parallelism)
    operators = threading.local()

    def add(value: tuple[int, int]) -> None:
        operators.total = getattr(operators, "total", 0) + value[1]

    environment.source(lambda _subtask, _parallelism: Reader(share), type=KIND).rebalance().sink(add)
    started = time.process_time()
    ThreadedRun(environment).run()
    return {"CPU": (time.process_time() - started) / (share * parallelism) * 1e9}


class Counted:
    """A stream that counts how often it is read and written; it takes the place TLS would have."""

    def __init__(self, counts: dict[str, int], stream: PlainStream) -> None:
        self._counts = counts
        self._stream = stream

    def read(self, max_bytes: int) -> bytes:
        self._counts["reads"] += 1
        return self._stream.read(max_bytes)

    def read_into(self, room: memoryview) -> int:
        self._counts["reads"] += 1
        return int(self._stream.read_into(room))

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        self._counts["writes"] += 1
        self._stream.write(pieces)

    def write_at_once(self, pieces: Sequence[bytes | memoryview]) -> int:
        self._counts["writes"] += 1
        return int(self._stream.write_at_once(pieces))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Counting:
    """What is asked for streams when a connection is made."""

    def __init__(self) -> None:
        self.counts = {"reads": 0, "writes": 0}

    def load(self) -> Callable[..., Counted]:
        return lambda stream, **_: Counted(self.counts, stream)


def in_flight(num_buffers: int, scale: float) -> tuple[float, Counting, float]:
    """Records over TCP with so many buffers at each end; return (CPU ns a record, calls, buffers)."""
    num_records, counting = scaled(NUM_RECORDS, scale), Counting()
    config = Config(
        buffer_timeout_ms=-1,
        floating_buffers_per_gate=num_buffers - 2,
        max_buffers_per_channel=num_buffers,
        num_buffers=4 * num_buffers,
    )
    environment = StreamEnvironment(config)
    source = environment.source(lambda _subtask, _parallelism: Reader(num_records), type=KIND)
    source.slot_sharing_group("producers").rebalance().sink(Adding().value).slot_sharing_group("consumers")
    started = time.process_time()
    ThreadedRun(environment, num_task_managers=2, security=counting).run()
    cpu_s = time.process_time() - started
    return cpu_s / num_records * 1e9, counting, max(1.0, num_records * RECORD_BYTES / SEGMENT_BYTES)


def credit(num_buffers: int, scale: float) -> Measured:
    return {"CPU": in_flight(num_buffers, scale)[0]}


def syscalls(num_buffers: int, scale: float) -> Measured:
    _, counting, sent = in_flight(num_buffers, scale)
    return {name: count / sent for name, count in counting.counts.items()}


class Depth:
    """A job whose producer is far faster than its consumer, and its memory over time; it runs once."""

    def __init__(self) -> None:
        self._samples: dict[float, float] = {}

    def __call__(self, second: float, scale: float) -> Measured:
        if second not in self._samples:
            self._run(scale)
        return {"memory": self._samples.pop(second)}

    def _run(self, scale: float) -> None:
        has_ended = threading.Event()
        record = bytes(SEGMENT_BYTES // 8)

        def endless(_subtask: int, _parallelism: int) -> IterableReader:
            return IterableReader(iter(lambda: None if has_ended.is_set() else record, None))

        environment = StreamEnvironment(Config(num_buffers=64))
        environment.source(endless, type=BYTES).rebalance().sink(lambda _: has_ended.wait(0.001))
        process = psutil.Process()
        with ThreadedRun(environment) as threads:
            threads.start()
            has_ended.wait(min(1.0, 10 * scale))  # buffers are full, and all code has run
            before, started = process.memory_info().rss, time.monotonic()
            for second in SECONDS_OF_DEPTH:
                has_ended.wait(max(0.0, started + second * scale - time.monotonic()))
                self._samples[second] = process.memory_info().rss / before
            has_ended.set()


SECONDS_OF_DEPTH = (0, 5, 10, 20, 30, 40, 50, 60)


def flat(most: float) -> Callable[[Mapping[str, Sequence[float]]], bool]:
    """No point of any curve takes more than `most` times what the first one does."""
    return lambda curves: all(max(curve) <= most * curve[0] for curve in curves.values())


def is_linear(curves: Mapping[str, Sequence[float]]) -> bool:
    """A record of 1 MiB costs at most 40 times one of 32 KiB."""
    at_32k, at_1m = curves["CPU"][-3], curves["CPU"][-1]
    return at_1m <= 40 * at_32k


def has_no_cliff(curves: Mapping[str, Sequence[float]]) -> bool:
    curve = curves["CPU"]
    return all(max(a, b) <= 2 * min(a, b) for a, b in pairwise(curve))


EXPERIMENTS: Mapping[str, Experiment] = {
    made.name: made
    for made in (
        Experiment(
            "active",
            "channels that get records in turn",
            "CPU, ns a record",
            (1, 10, 100, 1_000),
            active,
            "1000 at most 1.5 times as dear as 1",
            flat(1.5),
        ),
        Experiment(
            "idle",
            "idle channels beside a busy one",
            "CPU, ns a record",
            (1, 10, 100, 1_000),
            idle,
            "1000 at most 1.18 times as dear as 1",
            flat(1 / 0.85),
        ),
        Experiment(
            "size",
            "bytes in a record",
            "CPU, ns a record",
            (1, 16, 256, 1_024, 4_096, 32_768, 262_144, MIB),
            size,
            "1 MiB at most 40 times 32 KiB",
            is_linear,
        ),
        Experiment(
            "spanning",
            "bytes a record is longer than a buffer",
            "CPU, ns a record",
            (-8, -4, -2, -1, 0, 1, 2, 4, 8),
            spanning,
            "no neighbours differ twofold",
            has_no_cliff,
            is_log=False,
        ),
        Experiment(
            "parallelism",
            "subtasks on each side, all to all",
            "CPU, ns a record",
            (1, 2, 4, 8, 16),
            parallelism,
            "16 at most 1.4 times as dear as 1",
            flat(1.4),
        ),
        Experiment(
            "flusher",
            "buffer timeout, ms",
            "CPU, ns a record",
            (100, 10, 1),
            flusher,
            "1 ms at most 1.67 times as dear as 100 ms",
            flat(1 / 0.6),
        ),
        Experiment(
            "credits",
            "buffers in flight, over TCP",
            "CPU, ns a record",
            (34, 10, 4, 2),
            credit,
            "10 at most 1.43 times as dear as 34",
            lambda curves: curves["CPU"][1] <= curves["CPU"][0] / 0.7,
        ),
        Experiment(
            "syscalls",
            "buffers in flight, over TCP",
            "calls a buffer",
            (34, 10, 4, 2),
            syscalls,
            "at most one write a buffer with 34",
            lambda curves: curves["writes"][0] <= 1,
        ),
        Experiment(
            "depth",
            "seconds, with a producer ten times too fast",
            "memory, of that after warm-up",
            SECONDS_OF_DEPTH,
            Depth(),
            "at most 1.05",
            flat(1.05),
            is_log=False,
            runs_once=True,
        ),
    )
}


# -- running and showing -------------------------------------------------------------------------------


def run(
    experiments: Sequence[Experiment], rounds: int, scale: float, say: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Let the points of each experiment take turns; return the curves and the verdicts."""
    found = []
    for experiment in experiments:
        turns: dict[str, list[list[float]]] = {}
        num_rounds = 1 if experiment.runs_once else rounds
        for at in range(num_rounds):
            for index, point in list(enumerate(experiment.points))[:: -1 if at % 2 else 1]:
                say(f"{experiment.name}: round {at + 1} of {num_rounds}, {point:g}")
                gc.collect()
                for name, value in experiment.measure(point, scale).items():
                    curve = turns.setdefault(name, [[] for _ in experiment.points])
                    curve[index].append(value)
        medians = {name: [statistics.median(values) for values in curve] for name, curve in turns.items()}
        found.append(
            {
                "name": experiment.name,
                "varies": experiment.varies,
                "unit": experiment.unit,
                "points": list(experiment.points),
                "curves": {name: [spread(Figure.of(values)) for values in curve] for name, curve in turns.items()},
                "expected": experiment.expected,
                "came": experiment.judge(medians),
            }
        )
    return found


def as_table(found: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for each in found:
        lines.append(f"{each['name']}: {each['unit']}, by {each['varies']}")
        lines.append(f"  {'':16}" + "".join(f"{point:>10}" for point in each["points"]))
        for name, curve in each["curves"].items():
            lines.append(f"  {name:16}" + "".join(f"{number(value['median']):>10}" for value in curve))
        lines.append(f"  {each['expected']}: {'yes' if each['came'] else 'NO'}\n")
    return "\n".join(lines)


def paper(found: Sequence[Mapping[str, Any]]) -> PaperFigure:
    """Curves with the middle half of the rounds."""
    return PaperFigure(
        "How cost grows",
        [
            Panel(
                each["varies"],
                each["unit"],
                [
                    Curve(name, each["points"], *([value[key] for value in curve] for key in QUARTILES), look)
                    for look, (name, curve) in enumerate(each["curves"].items())
                ],
                each["name"],
                is_log_x=EXPERIMENTS[each["name"]].is_log,
                is_log_y=each["name"] == "size",
            )
            for each in found
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.growth", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each point (5)")
    parser.add_argument("--quick", action="store_true", help="1 round of a tenth of the work")
    drawn = "draw the curves as .svg, .png or .pdf, and print them in words"
    parser.add_argument("--picture", type=picture_file, metavar="FILE", help=drawn)
    parser.add_argument("--json", metavar="FILE", help=f"write it there, not to {FILE.name}; - prints it instead")
    chosen = parser.parse_args(arguments)
    for name in chosen.names:
        if name not in EXPERIMENTS:
            close = difflib.get_close_matches(name, EXPERIMENTS, 1)
            parser.error(f"there is no experiment {name!r}" + (f"; did you mean {close[0]}?" if close else ""))
    if chosen.rounds < 1:
        parser.error("at least 1 round")
    load = os.getloadavg()[0]
    experiments = [each for name, each in EXPERIMENTS.items() if not chosen.names or name in chosen.names]
    rounds, scale = (1, 0.1) if chosen.quick else (chosen.rounds, 1.0)
    found = run(experiments, rounds, scale, partial(print, file=sys.stderr))
    answer = {"format": FORMAT, "rounds": rounds, "machine": machine(load), "experiments": found}
    file = deliver(answer, chosen.json, FILE)
    if chosen.picture:
        paper(found).save(chosen.picture)
    if file is None:
        return 0
    print(as_table(found), machine_in_words(answer["machine"]), f"All of it: {file}", sep="\n")
    if chosen.picture:
        print(f"{chosen.picture}: {paper(found).alt}")
    return 0


if __name__ == "__main__":
    run_program(main)
