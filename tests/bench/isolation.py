"""Four channels on one connection, and one reader that becomes 100 times slower: what is left to the other three?

    python -m tests.bench.isolation                         table: with credits, and the way before them
    python -m tests.bench.isolation --picture FILE.svg      and what happens over time

Four sources on one TaskManager, each read by a sink on another one, over one TCP connection of loopback. A sink takes
`PACE_S` for each buffer, so that the machine is not the limit. After a while the first one takes 100 times as long.
Both ways run in turn, several times; a ratio compares the three others before and after within one run.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES
from refimpl.task import IterableReader
from tests.bench.pictures import picture_file
from tests.bench.program import run_program
from widgets import Curve, Panel, PaperFigure

PACE_S = 0.002
SLOWER = 100
SEGMENT_BYTES = 1024
RECORD = bytes(SEGMENT_BYTES - 13)  # with its length, tag and time it fills a buffer
NUM_CHANNELS = 4
SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """At `time_s` after the slow reader became slow, how many buffers each sink has read."""

    time_s: float
    counts: tuple[int, ...]


class Readers:
    """The sinks: each counts what it reads and takes its time; the first one may be slow."""

    def __init__(self) -> None:
        self.counts = [0] * NUM_CHANNELS
        self.is_slow = False
        self.has_ended = threading.Event()

    def read(self, channel: int, _value: object) -> None:
        self.counts[channel] += 1
        self.has_ended.wait(PACE_S * (SLOWER if self.is_slow and channel == 0 else 1))


def job(readers: Readers, *, credit_based: bool) -> StreamEnvironment:
    """A source in one slot-sharing group and a sink in another, so on two TaskManagers, each in four subtasks.

    It is one exchange, as before credits only the channels of one exchange share a connection.
    """
    config = Config(segment_size_bytes=SEGMENT_BYTES, num_buffers=200, credit_based=credit_based)
    environment = StreamEnvironment(config, parallelism=NUM_CHANNELS)

    def endless(subtask: int, _parallelism: int) -> IterableReader:
        record = bytes([subtask]) + RECORD[1:]
        return IterableReader(iter(lambda: None if readers.has_ended.is_set() else record, None))

    source = environment.source(endless, "source", BYTES).slot_sharing_group("producers")
    source.sink(lambda value: readers.read(value[0], value)).slot_sharing_group("consumers")
    return environment


def run(*, credit_based: bool, seconds: float) -> list[Sample]:
    """One run: `seconds` at full pace, then as long with a slow reader."""
    readers = Readers()
    samples: list[Sample] = []
    with ThreadedRun(job(readers, credit_based=credit_based), num_task_managers=2) as threads:
        threads.start()
        while min(readers.counts) < 20:  # everything flows
            time.sleep(SAMPLE_S)
        started_s = time.monotonic() + seconds
        while (now_s := time.monotonic() - started_s) < seconds:
            readers.is_slow = now_s >= 0
            samples.append(Sample(now_s, tuple(readers.counts)))
            time.sleep(SAMPLE_S)
        readers.has_ended.set()
    return samples


def rates(samples: Sequence[Sample], *, slow: bool) -> list[float]:
    """Buffers per second of each reader, before or after; the second after the change is left to settle."""
    span = [sample for sample in samples if (sample.time_s > 1 if slow else sample.time_s < 0)]
    first, last = span[0], span[-1]
    return [(b - a) / (last.time_s - first.time_s) for a, b in zip(first.counts, last.counts, strict=True)]


def spread(values: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return f"{middle:.2f} [{low:.2f} .. {high:.2f}]"


def table(runs: dict[bool, list[list[Sample]]]) -> dict[str, object]:
    """What the runs come to, as data: medians over rounds."""
    found: dict[str, object] = {}
    for credit_based, rounds in runs.items():
        before = [statistics.mean(rates(samples, slow=False)[1:]) for samples in rounds]
        after = [statistics.mean(rates(samples, slow=True)[1:]) for samples in rounds]
        found["with credits" if credit_based else "without credits"] = {
            "others_before_per_s": statistics.median(before),
            "others_after_per_s": statistics.median(after),
            "slow_after_per_s": statistics.median(rates(samples, slow=True)[0] for samples in rounds),
            "kept": [b / a for a, b in zip(before, after, strict=True)],
        }
    return found


def as_table(found: dict[str, object]) -> str:
    """The same for a terminal."""
    lines = [
        f"{NUM_CHANNELS} channels, one connection; CPython {platform.python_version()}, {platform.machine()}",
        f"{'':16} {'others before':>14} {'others after':>14} {'slow one':>10}   kept (median, quartiles)",
    ]
    for name, row in found.items():
        lines.append(
            f"{name:16} {row['others_before_per_s']:>12.0f}/s {row['others_after_per_s']:>12.0f}/s "
            f"{row['slow_after_per_s']:>8.1f}/s   {spread(row['kept'])}"
        )
    return "\n".join(lines)


def paper(runs: dict[bool, list[list[Sample]]]) -> PaperFigure:
    """The first round of each way: buffers per second of each reader, over time."""
    panels = []
    for credit_based, rounds in runs.items():
        pairs = list(zip(rounds[0], rounds[0][4:], strict=False))
        times = [(a.time_s + b.time_s) / 2 for a, b in pairs]
        curves = [
            Curve(
                "the three others" if channel else "the slow reader",
                times,
                [(b.counts[channel] - a.counts[channel]) / (b.time_s - a.time_s) for a, b in pairs],
                look=0 if channel else 1,
            )
            for channel in range(NUM_CHANNELS)
        ]
        title = "with credits" if credit_based else "before credits: one jam for all"
        label = f"seconds after one reader became {SLOWER} times slower"
        panels.append(Panel(label, "buffers read per second", curves, title, marks=[(0, "slow")]))
    return PaperFigure("Four readers on one connection, of which one becomes slow", panels, is_y_shared=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.isolation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="runs of each way (5)")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="before and after the change, each (3)")
    parser.add_argument("--picture", type=picture_file, metavar="FILE", help="draw the first round; .svg, .png or .pdf")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.seconds < 2:
        parser.error("at least 1 round of 2 seconds")
    runs: dict[bool, list[list[Sample]]] = {True: [], False: []}
    for number in range(chosen.rounds):
        for credit_based in runs:
            print(f"round {number + 1} of {chosen.rounds}", file=sys.stderr)
            runs[credit_based].append(run(credit_based=credit_based, seconds=chosen.seconds))
    found = table(runs)
    if chosen.json:
        print(json.dumps({"python": platform.python_version(), "numpy": version("numpy"), "rows": found}, indent=1))
    else:
        print(as_table(found))
    if chosen.picture:
        paper(runs).save(chosen.picture)
    return 0


if __name__ == "__main__":
    run_program(main)
