"""The runs behind the lessons' figures: small, seeded, on real flights, the same on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from course.data.sample import reader_of_flights, sample_flights
from course.flights_job import departure, flights_job
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import Deployment
from refimpl.records import SerializationResult
from widgets import Recording, copies_of

__all__ = ["FlightsRun", "OperatorCounts", "count_results", "run_flights"]

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


def count_results(records: Iterable[bytes], segment_size: int) -> dict[str, int]:
    """How often the engine's serializer gives each result for these records."""
    counts = Counter(copy.result.value for copy in copies_of(records, segment_size))
    return {result.value: counts[result.value] for result in SerializationResult}
