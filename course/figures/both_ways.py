"""The runs behind the figures of lesson 8: a result that is read when it is finished, by hand and in a job.

All run in the simulation's own time, so they are the same on every machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from course.data.statistics import Figures
from refimpl.batch_options import Compression, ExchangeMode, ExecutionMode
from refimpl.cluster.restart import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.codecs import codec_of
from refimpl.drivers.simulation import Costs
from refimpl.errors import ConfigError, LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.memory import Buffer, BufferBuilder, DataType, MemorySegment
from refimpl.producer import (
    BlockingSubpartition,
    BoundedBlockingSubpartition,
    BoundedBlockingView,
    MemoryBoundedData,
    pack_entry_header,
)
from refimpl.records import LONG
from refimpl.records.compression import compressed_block
from refimpl.task import IterableReader
from widgets.svg import document, element, picture_id, text_element

__all__ = ["BothWays", "OneResult", "Run", "begins_again", "both_ways", "entries_on_disk", "how_it_runs"]

# -- one result by hand ------------------------------------------------------------------------------------


class _File(MemoryBoundedData):
    """What is kept, as one reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        super().write(data, data_type, is_compressed)
        self.kept.append(bytes(data).decode() if data_type is DataType.DATA else "END")


class OneResult:
    """One blocking channel by hand: a writer with buffers of `capacity` bytes, the file, and any number of readers.

    Each call is one line of the story; `[ab…]` is a buffer still being written.
    """

    def __init__(self, capacity: int = 8, rules: type[BlockingSubpartition] = BoundedBlockingSubpartition) -> None:
        self._capacity = capacity
        self._file = _File()
        self._channel = rules(0, "map-0", self._file)
        self._builder: BufferBuilder | None = None
        self._views: list[BoundedBlockingView] = []
        self._num_home = 0
        self._lines: list[str] = []

    def recycle_segment(self, _segment: MemorySegment) -> None:
        """A buffer has come home."""
        self._num_home += 1

    def open(self, text: str = "") -> Self:
        """The writer closes the buffer it has, adds a new one, and writes into it."""
        self._close()
        self._builder = BufferBuilder(Buffer(MemorySegment.allocate(self._capacity), self))
        self._channel.add(self._builder.create_consumer())
        self._builder.append_and_commit(text.encode())
        return self._note(f"open, write '{text}'")

    def write(self, text: str) -> Self:
        """The writer writes into the buffer it has."""
        assert self._builder is not None, "open a buffer first"
        num_bytes = self._builder.append_and_commit(text.encode())
        return self._note(f"write '{text[:num_bytes]}'")

    def flush(self) -> Self:
        """What there is goes into the file."""
        self._channel.flush()
        return self._note("flush")

    def finish(self) -> Self:
        """The rest, the end, and the file is closed for writing."""
        self._close()
        self._channel.finish()
        return self._note("finish")

    def reader(self) -> Self:
        """Somebody wants to read."""
        try:
            self._views.append(self._channel.create_view())
        except LocalUsageError:
            return self._note("a reader: refused")
        return self._note(f"a reader: it is number {len(self._views)}")

    def read(self, number: int) -> Self:
        """A reader reads the next piece."""
        taken = self._views[number - 1].poll()
        if taken is None:
            return self._note(f"reader {number}: nothing")
        words = f"'{bytes(taken.buffer.data).decode()}'" if taken.buffer.is_buffer else "END"
        taken.buffer.recycle()
        return self._note(f"reader {number}: {words}")

    def _close(self) -> None:
        if self._builder is not None:
            self._builder.finish()
        self._builder = None

    def _note(self, words: str) -> Self:
        current = self._channel.current
        memory = ""
        if current is not None:
            unread = bytes(current.unread).decode() if current.is_buffer else "event"
            memory = f"[{unread}{'' if self._builder is None else '…'}]"
        file = "".join(f"[{each}]" for each in self._file.kept) or "(empty)"
        self._lines.append(f"{words:<24} {memory:<10} {file:<26} home {self._num_home}")
        return self

    def __repr__(self) -> str:
        return "\n".join([f"{'':<24} {'in memory':<10} {'in the file':<26} buffers", *self._lines])


def entries_on_disk() -> Figures:
    """Entries as they stand in the file: kind, compressed, and size, each in the machine's own order of bytes."""
    try:
        codec = codec_of(Compression.LZ4)
    except ConfigError:
        codec = None
    rows = []
    for name, data in (("'ab'", b"ab"), ("2,000 bytes, all alike", bytes(2_000)), ("2,000 bytes by chance", _chance())):
        block = None if codec is None else compressed_block(codec, memoryview(data))
        size = len(data) if block is None else len(block)
        header = pack_entry_header(DataType.DATA, size, block is not None)
        rows.append((name, header.hex(" ", 2), str(size), "no" if block is None else "yes"))
    end = pack_entry_header(DataType.EVENT, 4)
    rows.append(("the end", end.hex(" ", 2), "4", "never"))
    head = ("", "kind  compressed  size", "bytes behind it", "compressed")
    return Figures("Entries of a result with compression lz4", head, tuple(rows))


def _chance() -> bytes:
    number, found = 8, bytearray()
    for _ in range(2_000):
        number = (number * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        found.append(number >> 16 & 255)
    return bytes(found)


# -- the same job both ways --------------------------------------------------------------------------------

NUM_READINGS = 60
_COSTS = Costs({"readings": 1.0, "sums": 1.0, "board": 0.5})


@dataclass(frozen=True, slots=True)
class Run:
    """One run: from when to when each task worked, and what it took."""

    name: str
    spans: tuple[tuple[str, float, float], ...]
    first_ms: float
    end_ms: float
    most_buffers: int
    most_kept_bytes: int
    num_slots: int

    @property
    def title(self) -> str:
        """What tells it from the others."""
        return f"{self.name}, {self.num_slots} slot{'s' * (self.num_slots > 1)}"


@dataclass(frozen=True, slots=True)
class BothWays:
    """The same job as a stream and as a batch, above each other, and what each takes."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        names = [name for name, _, _ in self.runs[0].spans]
        rows = []
        for name in names:
            spans = [next((a, b) for each, a, b in run.spans if each == name) for run in self.runs]
            rows.append((name, *(f"{a:.0f} to {b:.0f} ms" for a, b in spans)))
        rows += [
            ("first result after", *(f"{run.first_ms:.0f} ms" for run in self.runs)),
            ("last result after", *(f"{run.end_ms:.0f} ms" for run in self.runs)),
            ("buffers in use at most", *(str(run.most_buffers) for run in self.runs)),
            ("bytes in files at most", *(f"{run.most_kept_bytes:,}" for run in self.runs)),
        ]
        head = ("", *(run.title for run in self.runs))
        return repr(Figures(f"{NUM_READINGS} readings through three steps", head, tuple(rows)))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def svg(self) -> str:
        """A lane for each task; the flag is the first result."""
        left, wide, lane = 110, 560, 24
        longest = max(run.end_ms for run in self.runs)
        parts, y = [], 0
        for run in self.runs:
            y += 30
            kept = f"{run.most_buffers} buffers in use and {run.most_kept_bytes:,} bytes in files at most"
            parts.append(text_element(16, y, f"{run.title}: {kept}", "small"))
            for name, start, end in run.spans:
                y += lane
                x, width = left + wide * start / longest, max(3.0, wide * (end - start) / longest)
                at = {"x": round(x, 1), "y": y - 15, "width": round(width, 1), "height": 16}
                parts += [element("rect", class_=each, **at) for each in ("level", "edge")]
                parts.append(text_element(left - 8, y - 2, name, "small end"))
            first = round(left + wide * run.first_ms / longest, 1)
            top = y - lane * len(run.spans)
            parts.append(element("path", d=f"M{first} {y + 4}V{top}l12 5l-12 5", class_="pole"))
            parts.append(text_element(first + 16, top + 8, f"first result, {run.first_ms:.0f} ms", "small"))
        size = left + wide + 30, y + 20
        return document(
            picture_id("bothways", repr(self)), *size, "The same job both ways", repr(self), "".join(parts), "facts.css"
        )


def both_ways() -> BothWays:
    """A job of three steps, two subtasks each and one at the end; a record takes 1 ms, and half of that at the end."""
    return BothWays(
        (
            _run("pipelined", ExchangeMode.ALL_PIPELINED),
            _run("blocking", ExecutionMode.BATCH),
            _run("blocking", ExecutionMode.BATCH, num_slots=1),
        )
    )


def _job(mode: ExecutionMode | ExchangeMode, on_result: Callable[[int], object]) -> StreamEnvironment:
    config = Config(
        segment_size_bytes=64, num_buffers=32, execution_mode=mode, source_batch=1, buffer_timeout_ms=5
    )  # fmt: skip
    environment = StreamEnvironment(config, 2)
    source = environment.source(lambda i, n: IterableReader(range(i, NUM_READINGS, n)), "readings", LONG)
    sums = source.rebalance().map(lambda value: value, "sums")
    sums.rebalance().sink(on_result, "board").set_parallelism(1)
    return environment


def _run(name: str, mode: ExecutionMode | ExchangeMode, num_slots: int | None = None) -> Run:
    times: list[float] = []
    spans: dict[str, tuple[float, float]] = {}
    most_buffers = most_kept = 0
    environment = _job(mode, lambda _value: times.append(simulation.time_ms))
    with Simulation(environment, policy="timed", check_every=0, costs=_COSTS, num_slots=num_slots) as simulation:
        while (action := simulation.step()) is not None:
            what, _, subject = str(action).partition(" ")
            if what == "step":
                spans[subject] = spans.get(subject, (simulation.time_ms, 0.0))[0], simulation.time_ms
            parts = [each for manager in simulation.snapshot().task_managers for each in manager.partitions]
            most_buffers = max(most_buffers, sum(each.pool.num_requested - each.pool.num_idle for each in parts))
            most_kept = max(most_kept, simulation.regions.num_result_bytes if simulation.regions else 0)
    ordered = tuple((task, *spans[task]) for task in ("readings-0", "readings-1", "sums-0", "sums-1", "board-0"))
    slots = num_slots or 2
    return Run(name, ordered, times[0], times[-1], most_buffers, most_kept, slots)


# -- what a job says of itself -----------------------------------------------------------------------------


class HowItRuns:
    """What `explain` says of the exchanges of a job, for each mode."""

    def __init__(self, modes: Sequence[ExecutionMode | ExchangeMode]) -> None:
        self.lines: list[str] = []
        for mode in modes:
            said = _job(mode, print).explain().splitlines()
            self.lines += [mode.name, *said[said.index("exchanges:") + 1 :]]

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def how_it_runs() -> HowItRuns:
    """The job of `both_ways` as a stream and as a batch."""
    return HowItRuns((ExchangeMode.ALL_PIPELINED, ExecutionMode.BATCH))


# -- a failure ---------------------------------------------------------------------------------------------


def begins_again() -> Figures:
    """The job of `both_ways` as a batch, whose last task fails once: how often each begins."""
    num_begun: Counter[str] = Counter()
    results: list[int] = []
    config = Config(segment_size_bytes=64, num_buffers=32, execution_mode=ExecutionMode.BATCH, source_batch=1)
    environment = StreamEnvironment(config, 2)

    def readings(subtask: int, of: int) -> Iterator[int]:
        num_begun[f"readings-{subtask} begins to read"] += 1
        yield from range(subtask, NUM_READINGS, of)

    def summed(value: int) -> int:
        num_begun["sums get the first reading"] += value == 0
        return value

    def shown(value: int) -> None:
        results.append(value)
        num_begun["board-0 gets the first reading"] += value == 0
        if len(results) == NUM_READINGS // 2:
            raise RuntimeError("the board has no room")

    source = environment.source(lambda i, n: IterableReader(readings(i, n)), "readings", LONG)
    source.rebalance().map(summed, "sums").rebalance().sink(shown, "board").set_parallelism(1)
    with Simulation(environment, check_every=0, policy="first", restart=FixedDelayRestart(1, 100.0)) as simulation:
        simulation.run()
    rows = tuple((name, str(times)) for name, times in sorted(num_begun.items(), key=_by_step))
    title = f"board-0 fails after {NUM_READINGS // 2} of {NUM_READINGS} readings"
    return Figures(title, ("", "how often"), rows)


def _by_step(begun: tuple[str, int]) -> tuple[int, str]:
    """The order of a job's steps."""
    name, _ = begun
    return ("readings", "sums", "board").index(re.split("[- ]", name)[0]), name
