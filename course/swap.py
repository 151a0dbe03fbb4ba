"""Puts a learner's part into a running job, between two buffers, and counts the records on both sides.

The job carries real flights. It starts with our part; halfway the learner's goes in. What arrives at the windows is
counted, and the answer is compared with a run that used our part throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.data.sample import reader_of_flights, sample_flights
from course.flights_job import MAP_OPERATOR, flights_job
from course.parts import to_departure
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.records import SpanningRecordSerializer

__all__ = ["SwapReport", "run"]

_SEED = 4


@dataclass(frozen=True, slots=True)
class SwapReport:
    """What became of the records of a job in which a part was swapped.

    `num_before` records had left the sources when the part went in, `num_after` came later. `steps` are steps of the
    simulation; `swapped_at` is the step of the swap. `error` says what stopped the job, if anything did.
    """

    exercise: str
    part_name: str
    is_learners: bool
    num_in: int
    num_before: int
    num_arrived: int
    swapped_at: int
    steps: int
    is_equal: bool
    error: str = ""

    @property
    def num_after(self) -> int:
        return self.num_in - self.num_before

    @property
    def num_lost(self) -> int:
        """Records that left the sources and never arrived; negative if more arrived than left."""
        return self.num_in - self.num_arrived

    def __repr__(self) -> str:
        whose = "your part" if self.is_learners else "our part (yours goes in when it passes its check)"
        lines = [f"{whose}: {self.part_name}, put in at step {self.swapped_at} between two buffers"]
        if self.error:
            lines += [f"✗ the job stopped at step {self.steps}: {self.error}"]
        lines += [
            f"  before the swap  {self.num_before:>6} records left the sources",
            f"  after the swap   {self.num_after:>6}",
            f"  arrived          {self.num_arrived:>6} of {self.num_in}",
        ]
        if not self.error:
            sign = "✓ none lost" if self.num_lost == 0 else f"✗ {self.num_lost} lost"
            same = "the same as ours alone gives" if self.is_equal else "NOT what ours alone gives"
            lines += [f"{sign}, the hourly departures are {same}, after {self.steps} steps"]
        return "\n".join(lines)


def run(
    exercise_id: str, part: Any = None, *, records: int = 600, segment_size: int = 64, pool: int | None = None
) -> SwapReport:
    """Swap the part of `exercise_id` into a running job; `None` swaps in ours.

    `records` flights travel in buffers of `segment_size` bytes; `pool` gives the job so many buffers in all, with one
    subtask of each operator, and must be at least 2.

    Raises:
        KeyError: there is no such exercise.
        ConfigError: `pool` is below 1.
        InsufficientBuffersError: `pool` is too small for the job.
    """
    swap, ours = _SWAPS[exercise_id]
    flights = sample_flights(records)
    options = Config(segment_size_bytes=segment_size, num_buffers=64 if pool is None else pool, object_reuse=True)
    parallelism = 2 if pool is None else 1
    want, _ = _go(flights, options, parallelism, None, None)
    got, numbers = _go(flights, options, parallelism, swap, part or ours)
    name = getattr(part or ours, "__name__", type(part).__name__)
    return SwapReport(exercise_id, name, part is not None, is_equal=sorted(got) == sorted(want), **numbers)


def _go(
    flights: list[dict[str, Any]], config: Config, parallelism: int, swap: Callable[..., None] | None, part: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Run the job once, with a swap when half of the flights have left; return results and counts."""
    results: list[Any] = []

    environment = flights_job(reader_of_flights(flights), results.append, config, parallelism, to_departure)
    numbers: dict[str, Any] = {"num_before": 0, "swapped_at": 0, "error": ""}
    with Simulation(environment, _SEED, check_every=0) as simulation:
        waiting = swap
        try:
            while simulation.step() is not None:
                num_out = _records_in(simulation, 0)
                if waiting is not None and num_out >= len(flights) // 2:
                    waiting(simulation, part)
                    waiting = None
                    numbers |= {"num_before": num_out, "swapped_at": simulation.num_steps}
        except Exception as error:  # noqa: BLE001 (the learner's part may raise anything; it is reported, not hidden)
            numbers["error"] = f"{type(error).__name__}: {error}"
        numbers |= {
            "num_in": _records_in(simulation, 0), "num_arrived": _records_in(simulation, 1),
            "steps": simulation.num_steps,
        }  # fmt: skip
    return results, numbers


def _records_in(simulation: Simulation, vertex: int) -> int:
    """Records that entered the tasks of the job's first or second vertex."""
    deployment = simulation.deployment
    vertices = list(deployment.graph.job.vertices.values())
    return sum(
        task.chain.num_records_in
        for execution, task in zip(deployment.graph.vertices, deployment.tasks, strict=True)
        if execution.vertex is vertices[vertex]
    )


def _swap_serializer(simulation: Simulation, part: Any) -> None:
    simulation.swap(SpanningRecordSerializer=part)


def _swap_map(simulation: Simulation, part: Any) -> None:
    simulation.swap_function(MAP_OPERATOR, part)


_SWAPS: dict[str, tuple[Callable[[Simulation, Any], None], Any]] = {
    "0.1": (_swap_map, to_departure),
    "3.1": (_swap_serializer, SpanningRecordSerializer),
}
