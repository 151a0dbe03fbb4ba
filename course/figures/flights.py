"""The runs behind the lessons' figures: small, seeded, on real flights, the same on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.data.flights_job import departure, flights_job
from course.data.sample import reader_of_flights, sample_flights
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import Deployment, StreamEnvironment
from refimpl.memory import MemorySegment
from widgets import Recording

__all__ = ["FlightsRun", "OperatorCounts", "delays_beside", "full_segment", "run_flights"]

_SEED = 1


@dataclass(frozen=True, slots=True)
class OperatorCounts:
    """How many values left each operator, over all its subtasks, in the order data travels."""

    by_operator: dict[str, int]

    @classmethod
    def of(cls, deployment: Deployment) -> OperatorCounts:
        """Read the counting outputs of all chains."""
        counts: Counter[str] = Counter()
        for task in deployment.tasks:
            for node in task.chain.nodes:
                counts[node.context.name] += task.chain.counters[node.id].num_records
        return cls(dict(counts))

    def __repr__(self) -> str:
        return "\n".join(f"{name:<12} {count:>6} out" for name, count in self.by_operator.items())


@dataclass(frozen=True, slots=True)
class FlightsRun:
    """A finished run of the flights job: every moment of it, what came out, and how much of it."""

    recording: Recording
    results: list[Any]
    counts: OperatorCounts


def run_flights(
    num_flights: int,
    function: Callable[[dict[str, Any]], object] = departure,
    segment_size: int = 64,
    parallelism: int = 2,
) -> FlightsRun:
    """Run the first flights of 2013 through the job in the simulation, the laws checked after each step."""
    flights = sample_flights(num_flights)
    results: list[Any] = []
    config = Config(segment_size_bytes=segment_size, num_buffers=32, source_batch=2, object_reuse=True)
    job = flights_job(reader_of_flights(flights), results.append, config, parallelism, function)
    with Simulation(job, _SEED) as simulation:
        recording = Recording.of(simulation)
        return FlightsRun(recording, sorted(results), OperatorCounts.of(simulation.deployment))


def delays_beside(
    function: Callable[[dict[str, Any]], object], *, object_reuse: bool, num_flights: int = 10
) -> list[int]:
    """The delays in minutes that a second branch reads, of the flights that the first one gives to `function`."""
    seen: list[int] = []
    environment = StreamEnvironment(Config(object_reuse=object_reuse))
    flights = environment.source(reader_of_flights(sample_flights(num_flights)), "flights")
    flights.map(function).sink(lambda _value: None, "first")
    flights.sink(lambda flight: seen.append(flight["dep_delay_minutes"]), "second")
    with Simulation(environment, _SEED) as simulation:
        simulation.run()
    return seen


def full_segment(num_flights: int = 10, segment_size: int = 64) -> MemorySegment:
    """A copy of the first segment that a job of flights has filled; it begins with the start of a record."""
    config = Config(segment_size_bytes=segment_size, num_buffers=32, source_batch=2, object_reuse=True)
    job = flights_job(reader_of_flights(sample_flights(num_flights)), lambda _result: None, config)
    with Simulation(job, _SEED) as simulation:
        while simulation.step() is not None:
            queues = [sub.queue for part in simulation.snapshot().partitions for sub in part.subpartitions]
            full = [entry for queue in queues for entry in queue if entry.written_bytes == segment_size]
            if full:
                found = simulation.deployment.shuffle.pool.segments[full[0].segment_id]
                return MemorySegment(bytearray(found.get(0, found.size)), found.id)
    raise AssertionError(f"{num_flights} flights fill no segment of {segment_size} B")
