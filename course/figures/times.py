"""The runs behind the figures of lesson 13: when flights were due, when they came, and how far time had come.

Times of day are those of the airports' own winter clock, five hours behind UTC; the engine reckons in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from course.data.flights import PARQUET, verified_path
from course.data.flights_job import DelayTotals
from course.data.oracle import HOUR_MS
from course.data.sample import sample_flights
from course.data.statistics import Figures
from refimpl.config import Config
from refimpl.consumer import StatusWatermarkValve
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import StepTask
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, Field, StreamElement, StreamElementSerializer, StreamRecord, StreamStatus, Watermark
from refimpl.task import BoundedOutOfOrderness, IterableReader, TumblingWindows
from widgets import Recording
from widgets.svg import document, element, picture_id, text_element
from widgets.view_models import topology

__all__ = ["Arrivals", "Closings", "arrivals", "clock", "closings", "elements_on_the_wire", "quiet_airport",
           "told_to_the_valve"]  # fmt: skip

MINUTE_MS = 60_000
_AIRPORTS = ("EWR", "JFK", "LGA")
_UTC_OFFSET_MS = -5 * HOUR_MS
_DAY_MS = 24 * HOUR_MS


def clock(time_ms: int) -> str:
    """The time of day at the airports, as 08:05."""
    minutes = (time_ms + _UTC_OFFSET_MS) % _DAY_MS // MINUTE_MS
    return f"{minutes // 60:02}:{minutes % 60:02}"


# -- flights in the order they came --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Flight:
    due_ms: int
    came_ms: int
    airport: str
    watermark_ms: int  # before it came; of nothing the first flight's own
    is_late: bool

    @property
    def is_behind(self) -> bool:
        return self.due_ms <= self.watermark_ms


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Flights in the order they came, and the watermark of a bound; who is late finds the window of its hour closed."""

    bound_min: int
    flights: tuple[_Flight, ...]

    @property
    def late(self) -> tuple[_Flight, ...]:
        return tuple(each for each in self.flights if each.is_late)

    def __repr__(self) -> str:
        behind = sum(each.is_behind for each in self.flights)
        counts = f"{behind} came behind the watermark, {len(self.late)} of them too late for their hour"
        title = f"{len(self.flights)} flights, bound {self.bound_min} min: {counts}"
        rows = tuple(
            (clock(each.due_ms), each.airport, clock(each.came_ms), clock(each.watermark_ms), _fate(each))
            for each in self.flights
            if each.is_behind
        )
        head = ("due", "from", "came", "watermark", "")
        return repr(Figures(title, head, rows)) if rows else title

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def svg(self) -> str:
        """A disc for each flight, a cross for a late one, and the watermark as a line below."""
        left, top, wide, tall = 76, 40, 640, 300
        first, last = self.flights[0].came_ms, self.flights[-1].came_ms
        dues = [each.due_ms for each in self.flights] + [self.flights[0].watermark_ms]
        low, high = min(dues), max(dues)

        def x(came_ms: int) -> float:
            return left + wide * (came_ms - first) / (last - first)

        def y(due_ms: int) -> float:
            return top + tall * (1 - (due_ms - low) / (high - low))

        parts = [
            text_element(16, 20, "event time (due) upwards, arrival to the right; the line is the watermark", "small")
        ]
        for hour in range(-(-low // HOUR_MS), high // HOUR_MS + 1):
            at = y(hour * HOUR_MS)
            parts.append(element("path", d=f"M{left} {at:.1f}h{wide}", class_="grid"))
            parts.append(text_element(left - 10, at + 4, clock(hour * HOUR_MS), "small end"))
        hours = [hour * HOUR_MS for hour in range(-(-first // HOUR_MS), last // HOUR_MS + 1)]
        parts += [text_element(x(hour), top + tall + 22, clock(hour), "small mid") for hour in hours]
        line = f"M{x(first):.1f} {y(self.flights[0].watermark_ms):.1f}"
        for each in self.flights[1:]:
            line += f"H{x(each.came_ms):.1f}V{y(each.watermark_ms):.1f}"
        parts.append(element("path", d=line, class_="pole"))
        parts += [_dot(x(each.came_ms), y(each.due_ms), each) for each in self.flights]
        parts.append(
            text_element(left, top + tall + 44, "● in time   ◇ behind the watermark   ✕ too late for its hour", "small")
        )
        words = f"Each flight by arrival and event time. {self!r}"
        size = left + wide + 30, top + tall + 58
        return document(
            picture_id("arrivals", repr(self)), *size, "Flights and the watermark", words, "".join(parts), "facts.css"
        )


def _fate(flight: _Flight) -> str:
    return "too late: its hour is closed" if flight.is_late else "its hour is still open"


def _dot(x: float, y: float, flight: _Flight) -> str:
    if flight.is_late:
        return element("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10", class_="pole")
    if flight.is_behind:
        return element("path", d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", class_="box")
    return element("circle", cx=round(x, 1), cy=round(y, 1), r=3, class_="cursor")


def arrivals(bound_min: int, first: int = 200, num_flights: int = 90) -> Arrivals:
    """Flights of New Year's Day 2013, from number `first` on, and who comes too late with this bound.

    The watermark is the engine's own, asked behind each flight.
    """
    import pyarrow.parquet as pq

    columns = ["event_time_ms", "arrival_ms", "origin"]
    with pq.ParquetFile(verified_path(PARQUET)) as file:
        (batch,) = islice(file.iter_batches(first + num_flights, columns=columns), 1)
    generator = BoundedOutOfOrderness(bound_min * MINUTE_MS)
    said = _Said()
    found = []
    for row in batch.to_pylist():
        due_ms = row["event_time_ms"]
        before = said.time_ms if said.time_ms is not None else due_ms - bound_min * MINUTE_MS - 1
        is_late = due_ms // HOUR_MS * HOUR_MS + HOUR_MS - 1 <= before
        found.append(_Flight(due_ms, row["arrival_ms"], row["origin"], before, is_late))
        generator.on_event(row, due_ms, said)
        generator.on_periodic_emit(said)
    return Arrivals(bound_min, tuple(found[first:]))


class _Said:
    """An output that keeps the last watermark."""

    time_ms: int | None = None

    def emit_watermark(self, watermark: Watermark) -> None:
        self.time_ms = watermark.timestamp

    def mark_idle(self) -> None:
        """Keep nothing."""


# -- a few times, and three bounds ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Closings:
    """What became of records with these times, by the bound; windows are as long as one step of time."""

    times: tuple[int, ...]
    rows: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]

    def __repr__(self) -> str:
        lines = [f"records        {'  '.join(f'{each:>3}' for each in self.times)}"]
        for bound, watermarks, late in self.rows:
            lost = ", ".join(map(str, late)) or "nobody"
            lines.append(f"W, bound {bound}     {'  '.join(f'{each:>3}' for each in watermarks)}   too late: {lost}")
        return "\n".join(lines)


def closings(times: Sequence[int], bounds: Sequence[int]) -> Closings:
    """Let records with these times through windows of length 1, once for each bound; a watermark W follows each."""
    rows = []
    for bound in bounds:
        results: list[Any] = []
        environment = StreamEnvironment()
        source = environment.source(lambda *_: IterableReader([(time, 0) for time in times]), "times")
        timed = source.assign_timestamps(Field(0), bound, every=1)
        timed.key_by(0).window(TumblingWindows(1)).aggregate(DelayTotals()).sink(results.append)
        with Simulation(environment, check_every=0) as simulation:
            simulation.run()
        generator, said, watermarks = BoundedOutOfOrderness(bound), _Said(), []
        for time in times:
            generator.on_event(time, time, said)
            generator.on_periodic_emit(said)
            watermarks.append(said.time_ms or 0)
        counted = {key for key, *_ in results}
        rows.append((bound, tuple(watermarks), tuple(time for time in times if time not in counted)))
    return Closings(tuple(times), tuple(rows))


def elements_on_the_wire() -> Figures:
    """What may stand between two records, and its bytes."""
    serializer = StreamElementSerializer(LONG)
    elements: dict[str, StreamElement] = {
        "record 7, due at 11": StreamRecord(7, 11), "record 7, no time": StreamRecord(7), "watermark 11": Watermark(11),
        "status IDLE": StreamStatus.IDLE,
    }  # fmt: skip
    rows = tuple((name, bytes(serializer.serialize(each)).hex(" ")) for name, each in elements.items())
    return Figures("the first byte, the tag, says what it is", ("element", "bytes"), rows)


# -- several channels ----------------------------------------------------------------------------------


def quiet_airport(num_flights: int = 24) -> Recording:
    """A source for each airport, and one task that counts; LaGuardia's stands still until nothing else can move."""
    flights = sample_flights(40 * num_flights)
    of_airport = [[each for each in flights if each["origin"] == name][:num_flights] for name in _AIRPORTS]
    environment = StreamEnvironment(
        Config(segment_size_bytes=512, source_batch=2, buffer_timeout_ms=-1), len(_AIRPORTS)
    )
    source = environment.source(lambda subtask, _of: IterableReader(of_airport[subtask]), "airport")
    timed = source.assign_timestamps(Field("event_time_ms"), 30 * MINUTE_MS, every=4)
    windows = timed.key_by(Field("origin")).window(TumblingWindows(HOUR_MS))
    windows.aggregate(_Count(), name="hourly").set_parallelism(1).sink(_ignore, "results").set_parallelism(1)
    quiet = StepTask("airport → timestamps-2")
    with Simulation(environment, policy="round_robin", check_every=0) as simulation:
        start = simulation.snapshot()
        recording = Recording(topology(start))
        recording.add(start, "start")
        while rest := [action for action in simulation.enabled() if action != quiet]:
            simulation.step(rest[0])
            recording.add(simulation.snapshot(), str(rest[0]))
        while (action := simulation.step()) is not None:
            recording.add(simulation.snapshot(), str(action))
    return recording


class _Count:
    def create_accumulator(self) -> int:
        return 0

    def add(self, _value: object, total: int) -> int:
        return total + 1

    def get_result(self, total: int) -> int:
        return total


def _ignore(_value: object) -> None: ...


def told_to_the_valve(*told: str, num_channels: int = 3) -> Figures:
    """A line for each thing that a channel says, such as "0 at 10" and "2 idle": who counts, and what goes out."""
    valve = StatusWatermarkValve(num_channels)
    rows = []
    for words in told:
        channel, what, *time = words.split()
        index = int(channel)
        if what == "at":
            out = valve.input_watermark(Watermark(int(*time)), index)
        else:
            out = valve.input_status(StreamStatus[what.upper()], index)
        said = ", ".join(f"watermark {each.timestamp}" if isinstance(each, Watermark) else each.name for each in out)
        rows.append((f"channel {words}", *(_standing(valve, each) for each in range(num_channels)), said or "-"))
    head = ("", *(f"channel {each}" for each in range(num_channels)), "goes out")
    return Figures("the valve of one task; in brackets: does not count", head, tuple(rows))


def _standing(valve: StatusWatermarkValve, index: int) -> str:
    mark = valve.channel_watermarks[index]
    words = "none yet" if mark < 0 else str(mark)
    counts = index not in valve.idle_channels and mark >= valve.current_watermark
    return words if counts else f"({words})"
