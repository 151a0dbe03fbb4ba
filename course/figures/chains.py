"""The runs behind the figures of lesson 6: the graph that folds, what a chain saves, and which output goes where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from course.curriculum.parts import to_departure
from course.data.flights_job import flights_job
from course.data.sample import reader_of_flights, sample_flights
from course.data.statistics import Figures
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import DataStream, JobGraph, StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.task import Operator, Output, OutputTag
from refimpl.trace import Trace

__all__ = ["eight_outputs", "flights_graph", "folded", "price_of_edges", "two_branches", "very_late_flights"]

_FLIGHTS = 600


@dataclass(frozen=True, slots=True)
class Folded:
    """A job as its tasks: a box for each chain, and what lies between the boxes."""

    graph: JobGraph

    def __repr__(self) -> str:
        num_operators = len(self.graph.stream_graph.nodes)
        lines = [f"{num_operators} operators in {len(self.graph.vertices)} tasks"]
        for vertex in self.graph.vertices.values():
            lines.append(f"  [ {vertex.name} ] × {vertex.parallelism}")
            for edge in self.graph.out_edges(vertex.id):
                target = self.graph.vertices[edge.target].name
                lines.append(f"      └─ {edge.partitioner.name}: bytes in buffers, to [ {target} ]")
        return "\n".join(lines)


def folded(environment: StreamEnvironment) -> Folded:
    """How the job's operators fold into tasks."""
    return Folded(JobGraph(environment.graph, environment.config, environment.parts))


def flights_graph(*, chaining: bool = True, object_reuse: bool = False) -> StreamEnvironment:
    """The job of the course, not run."""
    config = Config(segment_size_bytes=1_024, num_buffers=512, chaining=chaining, object_reuse=object_reuse)
    flights = reader_of_flights(sample_flights(_FLIGHTS))
    return flights_job(flights, lambda _result: None, config, 2, to_departure)


def price_of_edges() -> Figures:
    """The same flights with chaining and without: what each of them is put through."""
    rows = []
    for name, chaining, object_reuse in (
        ("every operator a task", False, False),
        ("chained", True, False),
        ("chained, object reuse", True, True),
    ):
        copies = _CountingCopies()
        environment = flights_graph(chaining=chaining, object_reuse=object_reuse)
        for node in environment.graph.nodes.values():
            node.value_type = copies.around(node.value_type)
        trace = Trace(capacity=100_000)
        with Simulation(environment, check_every=0, trace=trace) as simulation:
            simulation.run()
            writers = simulation.deployment.writers.values()
            serialised = sum(writer.num_records for writer in writers)
            num_tasks = len(simulation.deployment.tasks)
        num_buffers = sum(event.kind == "queue" for event in trace)
        per_flight = f"{serialised / _FLIGHTS:.1f}"
        rows.append((name, str(num_tasks), str(serialised), per_flight, str(copies.number), str(num_buffers)))
    head = ("", "tasks", "serialised", "per flight", "values copied", "buffers")
    return Figures(f"{_FLIGHTS} flights through the same six operators", head, tuple(rows))


class _CountingCopies:
    """Wraps types so that their copies are counted; everything else they do is theirs."""

    def __init__(self) -> None:
        self.number = 0

    def around(self, value_type: Any) -> Any:
        counts = self

        class Counted(type(value_type)):  # type: ignore[misc]  # which class that is, is known when it runs
            """The same type, whose copies are counted."""

            def copy(self, value: object) -> object:
                counts.number += 1
                return super().copy(value)

        found = object.__new__(Counted)
        for name in _attributes(value_type):
            object.__setattr__(found, name, getattr(value_type, name))
        return found


def _attributes(value: Any) -> Iterator[str]:
    yield from getattr(value, "__dict__", {})
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


# -- two branches, one object ----------------------------------------------------------------------


def two_branches(*, object_reuse: bool, changes: bool = True) -> Figures:
    """A flight goes to two maps of one task; the first one changes it, if it may. What does the second one count?"""
    counted: Counter[str] = Counter()

    def no_early_flights(flight: dict[str, Any]) -> dict[str, Any]:
        if changes:
            flight["dep_delay_minutes"] = max(0, flight["dep_delay_minutes"])  # its own flight, or everybody's?
            return flight
        return {**flight, "dep_delay_minutes": max(0, flight["dep_delay_minutes"])}

    def early_or_not(flight: dict[str, Any]) -> str:
        return "early" if flight["dep_delay_minutes"] < 0 else "on time or late"

    environment = StreamEnvironment(Config(object_reuse=object_reuse))
    flights = environment.source(reader_of_flights(sample_flights(200)), "flights")
    flights.map(no_early_flights, "delays").sink(lambda _flight: None, "delays board")
    flights.map(early_or_not, "kind").sink(lambda kind: counted.update([kind]), "counts")
    with Simulation(environment) as simulation:
        simulation.run()
    title = f"object reuse {'on' if object_reuse else 'off'}: what the second branch counts"
    return Figures(title, ("flights", "count"), tuple((kind, str(number)) for kind, number in sorted(counted.items())))


# -- side outputs ----------------------------------------------------------------------------------

_VERY_LATE = OutputTag("very late")


class _Sorter(Operator):
    """Sends flights of more than an hour's delay aside."""

    def process(self, record: StreamRecord) -> None:
        flight: Any = record.value
        if flight["dep_delay_minutes"] > 60:
            self.output.collect_side(_VERY_LATE, record)
        else:
            self.output.collect(record)


def very_late_flights() -> Figures:
    """A side output: the operator says for each record which of its streams it goes to."""
    main: list[Any] = []
    aside: list[Any] = []
    environment = StreamEnvironment(Config())
    flights = environment.source(reader_of_flights(sample_flights(_FLIGHTS)), "flights")
    sorted_out = flights.transform("sorter", _Sorter)
    sorted_out.sink(main.append, "main")
    sorted_out.side_output(_VERY_LATE).sink(aside.append, "very late")
    with Simulation(environment) as simulation:
        simulation.run()
    worst = max(flight["dep_delay_minutes"] for flight in aside)
    rows = (("main stream", str(len(main)), "up to 60 min"), ("side output", str(len(aside)), f"up to {worst} min"))
    return Figures(f"{_FLIGHTS} flights, one operator, two streams", ("", "flights", "delay"), rows)


# -- the eight outputs -----------------------------------------------------------------------------


def eight_outputs() -> Figures:
    """Which output stands behind an operator, read off running chains: with object reuse and without."""
    rows = []
    for name, build in (
        ("one operator in the chain", lambda s: s.map(_same, "next").sink(_ignore)),
        ("another task", lambda s: s.rebalance().sink(_ignore)),
        ("two in the chain", lambda s: [s.map(_same, each).sink(_ignore, f"{each} sink") for each in ("one", "two")]),
        ("those that split() names", _split),
    ):
        kinds = []
        for object_reuse in (False, True):
            environment = StreamEnvironment(Config(object_reuse=object_reuse))
            build(environment.source(lambda *_: reader_of_flights([])(0, 1), "before"))
            with Simulation(environment) as simulation:
                chain = simulation.deployment.tasks[0].chain
                kinds.append(_kind(chain.counters[chain.nodes[0].id].output))
        rows.append((name, *kinds))
    head = ("what is behind the operator", "object reuse off", "object reuse on")
    return Figures("Behind each operator a CountingOutput, and behind that:", head, tuple(rows))


def _split(stream: DataStream) -> None:
    branches = stream.split(lambda _value: ["a"])
    branches.select("a").map(_same, "one").sink(_ignore, "s1")
    branches.select("b").map(_same, "two").sink(_ignore, "s2")


def _kind(output: Output) -> str:
    return type(output).__name__


def _same(value: object) -> object:
    return value


def _ignore(_value: object) -> None: ...
