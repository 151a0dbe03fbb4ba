"""The runs behind the figures of lesson 7: one channel by hand, the three ways of data, the price of a buffer timeout.

All but `measured_curve` run in the simulation's own time, so they are the same on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from course.data.statistics import Figures
from course.figures.channels import noting
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.drivers.simulation import Action, Flush, StepTask
from refimpl.job import StreamEnvironment
from refimpl.memory import Buffer, BufferBuilder, MemorySegment
from refimpl.producer import PipelinedSubpartition, SubpartitionQueue
from refimpl.records import LONG
from refimpl.task import IterableReader, Progress
from refimpl.trace import Trace
from widgets import Recording
from widgets.svg import document, element, picture_id, text_element

__all__ = ["Curve", "OneChannel", "local_way", "measured_curve", "slow_reader", "three_ways", "timeout_curve"]

_STEP_MS = 0.01
_TIMEOUTS_MS = (0, 1, 2, 5, 10, 20, -1)


class OneChannel:
    """One channel by hand: a writer with buffers of `capacity` bytes, the queue, and a reader that can be told.

    Each call is one line of the story; `[ab…]` is a buffer still being written, `[ab]` a finished one.
    """

    def __init__(self, capacity: int = 8, rules: type[SubpartitionQueue] = PipelinedSubpartition) -> None:
        self._capacity = capacity
        self._queue = rules(0)
        self._builder: BufferBuilder | None = None
        self._num_told = self._num_home = 0
        self._lines: list[str] = []
        self._queue.view.open(self._on_data_available)

    def _on_data_available(self) -> None:
        self._num_told += 1

    def recycle_segment(self, _segment: MemorySegment) -> None:
        """A buffer has come home."""
        self._num_home += 1

    def open(self, text: str = "") -> Self:
        """The writer closes the buffer it has, puts a new one into the queue, and writes into it."""
        told = self._num_told
        self._close()
        self._builder = BufferBuilder(Buffer(MemorySegment.allocate(self._capacity), self))
        self._queue.add(self._builder.create_consumer())
        self._builder.append_and_commit(text.encode())
        return self._note(f"open, write '{text}'" if text else "open", told)

    def write(self, text: str) -> Self:
        """The writer writes into the buffer it has."""
        assert self._builder is not None, "open a buffer first"
        told = self._num_told
        num_bytes = self._builder.append_and_commit(text.encode())
        return self._note(f"write '{text[:num_bytes]}'", told)

    def flush(self) -> Self:
        """The buffer timeout has passed, or the record was to be sent at once."""
        told = self._num_told
        self._queue.flush()
        return self._note("flush", told)

    def poll(self) -> Self:
        """The reader takes what there is, and gives it back."""
        told = self._num_told
        taken = self._queue.poll()
        words = "poll: nothing"
        if taken is not None:
            words = f"poll: '{bytes(taken.buffer.data).decode()}'"
            taken.buffer.recycle()
        return self._note(words, told)

    def _close(self) -> None:
        if self._builder is not None:
            self._builder.finish()
        self._builder = None

    def _note(self, words: str, told: int) -> Self:
        entries = self._queue.snapshot().queue
        unread = [
            bytes(consumer.buffer.memory[consumer.read_position : consumer.read_position + entry.unread_bytes]).decode()
            for consumer, entry in zip(self._queue.queue, entries, strict=True)
        ]
        ends = ["" if entry.is_finished else "…" for entry in entries]
        drawn = "".join(f"[{text}{end}]" for text, end in zip(unread, ends, strict=True))
        told_now = "TOLD" if self._num_told > told else ""
        mark = "flush mark" if self._queue.is_flush_requested else ""
        line = f"{words:<20} {told_now:<5} {drawn or '(empty)':<20} backlog {self._queue.count_backlog()}  {mark}"
        self._lines.append(line.rstrip())
        return self

    def __repr__(self) -> str:
        head = f"{'':<20} {'':<5} {'unread, head first':<20}"
        return "\n".join([head.rstrip(), *self._lines, f"buffers that came home: {self._num_home}"])


# -- a job whose reader is slow --------------------------------------------------------------------


def slow_reader() -> Recording:
    """A source, and a sink that gets one step for every four of the source: a queue to look at."""
    config = Config(segment_size_bytes=32, num_buffers=8, buffer_timeout_ms=-1, source_batch=1)
    environment = StreamEnvironment(config)
    source = environment.source(lambda *_: IterableReader(range(40)), "readings", LONG)
    source.rebalance().sink(_ignore, "board")
    with Simulation(environment, policy="first") as simulation:
        recording = Recording.of(simulation, max_steps=0)
        while (enabled := simulation.enabled()) and not simulation.is_done:
            is_turn_of_sink = simulation.num_steps % 4 == 3
            action = simulation.step(enabled[-1] if is_turn_of_sink else enabled[0])
            recording.add(simulation.snapshot(), str(action))
        return recording


# -- the way of a record inside one TaskManager ----------------------------------------------------

_STEPS = {
    "idle": "1  the reader asks its gate, finds nothing, and sleeps",
    "written": "2  the writer writes a record into a buffer that stands in the queue",
    "told": "3  what is written is flushed, and the reader is told",
    "awake": "4  the reader wakes",
    "deliver": "5  it takes {bytes} bytes where they lie, and has {records} records again",
    "recycle": "   the buffer has gone home to the pool of the writer: segment {segment}",
}


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in lines."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)


class _LocalWay:
    """The lines of `local_way`: what stepped, and below it what that came to, each thing the first time only."""

    def __init__(self, num_records: int) -> None:
        self.lines: list[str] = []
        self.left = dict(_STEPS)
        self._trace, self._num_seen = Trace(), 0
        environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=8, source_batch=1))
        source = environment.source(lambda *_: IterableReader(range(num_records)), "readings", LONG)
        source.rebalance().sink(_ignore, "board")
        environment = environment.use(PipelinedSubpartition=noting(self._trace))
        self.simulation = Simulation(environment, policy="first", trace=self._trace)

    def ask(self) -> None:
        """Let the reader look for itself, as a thread does that nobody has told anything yet."""
        task = next(each for each in self.simulation.deployment.tasks if each.name == "board-0")
        assert task.step() is Progress.IDLE, "there is nothing to read yet"
        self._tell("step board-0")

    def step(self, action: Action | None = None) -> bool:
        """One step of the run; false if there is none."""
        done = self.simulation.step(action)
        if done is not None:
            self._tell(str(done).partition(" at ")[0])
        return done is not None

    def _tell(self, what: str) -> None:
        self.lines.append(f"{self.simulation.time_ms:>8.2f} ms  {what}")
        events = list(self._trace)[self._num_seen :]
        self._num_seen = self._trace.num_events
        details = {event.kind: event.detail for event in events if event.kind != "idle" or event.subject == "board-0"}
        if "idle" not in self.left and StepTask("board-0") in self.simulation.enabled():
            details["awake"] = {}
        (records,) = (task.num_records_in for task in self.simulation.snapshot().tasks if task.name == "board-0")
        for kind in [kind for kind in details if kind in self.left]:
            self.lines.append(" " * 13 + self.left.pop(kind).format(**details[kind], records=records))


def local_way(num_records: int = 3) -> Story:
    """A job of two tasks in one TaskManager, from its trace: who steps, and which of the five steps that is."""
    way = _LocalWay(num_records)
    with way.simulation as simulation:
        way.ask()
        for _ in range(num_records):
            way.step(StepTask("readings-0"))
        partition = simulation.deployment.partitions[0]
        deadline = partition.next_deadline(simulation.time_ms)  # then nothing comes for a while
        assert deadline is not None, "records wait that nobody was told of"
        simulation.time_ms = deadline
        way.step(Flush(partition.name, deadline))
        while way.left and way.step():
            pass
    return Story(tuple(way.lines))


def three_ways(num_records: int = 1_000) -> Figures:
    """The same records in one chain, between two tasks of a TaskManager, and between two TaskManagers."""
    rows = []
    for name, is_chained, num_task_managers in (
        ("in one chain", True, 1),
        ("in one TaskManager", False, 1),
        ("between two TaskManagers", False, 2),
    ):
        trace = Trace(capacity=100_000)
        environment = StreamEnvironment(Config(segment_size_bytes=1_024, num_buffers=64), parallelism=2)
        stream = environment.source(_numbers(num_records), "readings", LONG)
        (stream if is_chained else stream.rebalance()).sink(_ignore, "board")
        with Simulation(environment, trace=trace, num_task_managers=num_task_managers, check_every=0) as simulation:
            simulation.run()
            writers = [writer for each in simulation.deployments for writer in each.writers.values()]
            kinds = [event.kind for event in trace]
            num_tasks = sum(len(each.tasks) for each in simulation.deployments)
        counts = [num_tasks, sum(w.num_records for w in writers), *map(kinds.count, ("queue", "deliver", "receive"))]
        rows.append((name, *map(str, counts)))
    head = ("", "tasks", "records serialised", "buffers queued", "pieces taken", "pieces over the wire")
    return Figures(f"{num_records} records, parallelism 2, buffers of 1,024 bytes", head, tuple(rows))


def _numbers(num_records: int) -> Callable[[int, int], IterableReader]:
    return lambda subtask, of: IterableReader(range(subtask, num_records, of))


def _ignore(_value: object) -> None: ...


# -- the price of the buffer timeout ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """One run: records for each ms of its time, and how long a record was on its way."""

    timeout_ms: int
    records_per_ms: float
    half_ms: float
    slowest_ms: float
    num_pieces: int

    @property
    def name(self) -> str:
        return "never" if self.timeout_ms < 0 else f"{self.timeout_ms} ms"


class Curve:
    """Throughput and waiting time against the buffer timeout: a table in words, and a picture."""

    def __init__(self, title: str, points: Sequence[Point]) -> None:
        self.title, self.points = title, points

    def __repr__(self) -> str:
        head = ("buffer timeout", "records per ms", "half wait under", "99 % wait under", "pieces")
        rows = tuple(
            (p.name, f"{p.records_per_ms:.1f}", f"{p.half_ms:.2f} ms", f"{p.slowest_ms:.2f} ms", str(p.num_pieces))
            for p in self.points
        )
        return repr(Figures(self.title, head, rows))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def svg(self) -> str:
        """Bars for the throughput, a line for how long 99 % wait at most."""
        left, bottom, tall, step = 70, 210, 160, 84
        most = max(p.records_per_ms for p in self.points)
        longest = max(p.slowest_ms for p in self.points) or 1.0
        parts = [
            text_element(16, 24, "records per ms (bars), and how long 99 % wait at most (line)", "small"),
            element("path", d=f"M{left - 10} {bottom}h{step * len(self.points)}", class_="pole"),
        ]
        line = []
        for number, point in enumerate(self.points):
            x = left + number * step
            height = tall * point.records_per_ms / most
            at = {"x": x, "y": bottom - height, "width": 34, "height": height}
            parts += [element("rect", class_=each, **at) for each in ("level", "edge")]
            parts.append(text_element(x + 17, bottom - height - 6, f"{point.records_per_ms:.0f}", "small mid"))
            parts.append(text_element(x + 17, bottom + 18, point.name, "small mid"))
            y = bottom - tall * point.slowest_ms / longest
            line.append(f"{x + 52:g} {y:.1f}")
            parts.append(element("circle", cx=x + 52, cy=y, r=4, class_="edge"))
            parts.append(text_element(x + 52, y - 8, f"{point.slowest_ms:.1f} ms", "small mid"))
        parts.append(element("path", d="M" + "L".join(line), class_="pole", fill="none"))
        parts.append(text_element(left, bottom + 40, "buffer timeout", "small soft"))
        words = "; ".join(
            f"{p.name}: {p.records_per_ms:.1f} records per ms, 99 % wait at most {p.slowest_ms:.2f} ms"
            for p in self.points
        )
        size = left + step * len(self.points) + 10, bottom + 54
        return document(picture_id("curve", repr(self)), *size, self.title, words, "".join(parts), "facts.css")


def timeout_curve(num_records: int = 4_000, timeouts_ms: Sequence[int] = _TIMEOUTS_MS) -> Curve:
    """A source at full speed, four readers, buffers of 8 KiB; each step of a task takes 10 µs of simulated time."""
    points = [_simulated(num_records, timeout) for timeout in timeouts_ms]
    return Curve("Throughput and waiting time against the buffer timeout", points)


def _simulated(num_records: int, timeout_ms: int) -> Point:
    waits: list[float] = []

    def readings() -> Iterator[int]:
        for _ in range(num_records):
            yield round(simulation.time_ms * 1e6)

    trace = Trace(capacity=100_000)
    environment = _four_readers(readings, timeout_ms, 1, lambda left: waits.append(simulation.time_ms - left / 1e6))
    with Simulation(environment, policy="first", check_every=0, step_ms=_STEP_MS, trace=trace) as simulation:
        simulation.run()
        pieces = sum(event.kind == "deliver" for event in trace)
        return _point(timeout_ms, simulation.time_ms, waits, pieces)


def _point(timeout_ms: int, whole_ms: float, waits: list[float], num_pieces: int) -> Point:
    waits.sort()
    half, slowest = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    return Point(timeout_ms, len(waits) / whole_ms, half, slowest, num_pieces)


def _four_readers(
    readings: Callable[[], Iterator[int]], timeout_ms: int, batch: int, on_reading: Callable[[int], object]
) -> StreamEnvironment:
    config = Config(segment_size_bytes=8_192, num_buffers=64, buffer_timeout_ms=timeout_ms, source_batch=batch)
    environment = StreamEnvironment(config)
    stream = environment.source(lambda *_: IterableReader(readings()), "readings", LONG)
    stream.rebalance().sink(on_reading, "board").set_parallelism(4)
    return environment


def measured_curve(num_records: int = 200_000, timeouts_ms: Sequence[int] = (0, 1, 10, 100, -1)) -> Curve:
    """The same on threads and on this machine's clock; other numbers every time, and the same story."""
    points = [_measured(num_records, timeout_ms) for timeout_ms in timeouts_ms]
    return Curve("Throughput and waiting time against the buffer timeout, on this machine", points)


def _measured(num_records: int, timeout_ms: int) -> Point:
    waits: list[float] = []

    def readings() -> Iterator[int]:
        for _ in range(num_records):
            yield time.perf_counter_ns()

    environment = _four_readers(
        readings, timeout_ms, 64, lambda left: waits.append((time.perf_counter_ns() - left) / 1e6)
    )
    started = time.perf_counter()
    ThreadedRun(environment).run()
    return _point(timeout_ms, (time.perf_counter() - started) * 1e3, waits, 0)
