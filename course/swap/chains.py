"""A learner's parts of lesson 6 in a job: what makes the graph, and what hands records down a chain.

The graph is made before a job runs, in Flink as here: another rule needs a restart. So the first half of the flights
goes through a job that our rules have folded; then it is started again for the second half, folded by the learner's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course.curriculum.parts import to_departure
from course.data.flights_job import flights_job
from course.data.sample import reader_of_flights
from course.swap.guard import Guard
from course.swap.report import first_lines
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import JobGraph, build_chains, is_chainable
from refimpl.records import StreamRecord
from refimpl.task import ChainingOutput, CopyingChainingOutput, OutputTag

__all__ = ["TwoHalves", "guarded_output", "run_in_two_halves"]

_OURS: dict[str, Callable[..., Any]] = {"is_chainable": is_chainable, "build_chains": build_chains}
_SEED = 4


# -- what makes the graph --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TwoHalves:
    """What became of the records of a job that was started again with another part in its graph."""

    exercise: str
    part_name: str
    is_learners: bool
    num_before: int
    num_after: int
    num_arrived: int
    tasks: tuple[str, ...]
    num_edges: int
    is_equal: bool
    error: str = ""
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0

    @property
    def num_lost(self) -> int:
        """Records that left the sources and never arrived; negative if more arrived than left."""
        return self.num_before + self.num_after - self.num_arrived

    def __repr__(self) -> str:
        lines = first_lines(
            self, "put in when the job was started again, with half of the flights to go", "ours answered from there on"
        )
        if self.error:
            lines.append(f"✗ the job did not run: {self.error}")
        lines += [
            f"  before   {self.num_before:>6} records left the sources",
            f"  after    {self.num_after:>6}",
            f"  counted  {self.num_arrived:>6} of {self.num_before + self.num_after}",
            f"  tasks    {' | '.join(self.tasks)}, with {self.num_edges} exchange{'s' * (self.num_edges != 1)}",
        ]
        if not self.error:
            sign = "✓ none lost" if self.num_lost == 0 else f"✗ {self.num_lost} lost"
            same = "the same as ours alone gives" if self.is_equal else "NOT what ours alone gives"
            lines.append(f"{sign}, the hourly departures are {same}")
        return "\n".join(lines)


def run_in_two_halves(
    exercise_id: str, seam: str, part: Any, flights: Sequence[dict[str, Any]], options: Config, driver: str
) -> TwoHalves:
    """Run the first half with our graph and the second with theirs; `None` is ours."""
    ours = _OURS[seam]
    middle = len(flights) // 2
    want, _, _ = _run(flights, options, driver, seam, ours)
    before, num_before, _ = _run(flights[:middle], options, driver, seam, ours)
    name = ours.__name__ if part is None else getattr(part, "__name__", type(part).__name__)
    if part is None:
        after, num_after, graph = _run(flights[middle:], options, driver, seam, ours)
        is_equal = _agree(want, before, after)
        return TwoHalves(
            exercise_id,
            name,
            False,
            middle,
            len(flights) - middle,
            num_before + num_after,
            _names(graph),
            len(graph.edges),
            is_equal,
        )
    with Guard(part) as guard:

        def guarded(*given: Any) -> Any:
            if not guard.is_out:
                with guard.call():
                    return part(*given)
            return ours(*given)

        error, after, num_after = "", [], 0
        built: JobGraph | None = None
        try:
            after, num_after, built = _run(flights[middle:], options, driver, seam, guarded)
        except USER_CODE_RAISES as trouble:  # whatever stopped the job is reported, not hidden
            error = described(trouble)
    tasks, num_edges = (_names(built), len(built.edges)) if built is not None else ((), 0)
    return TwoHalves(
        exercise_id,
        name,
        True,
        middle,
        len(flights) - middle,
        num_before + num_after,
        tasks,
        num_edges,
        _agree(want, before, after),
        error,
        tuple(guard.what_happened),
        guard.num_calls,
    )


def _run(
    flights: Sequence[dict[str, Any]], options: Config, driver: str, seam: str, part: Callable[..., Any]
) -> tuple[list[Any], int, JobGraph]:
    """Results, departures that were counted in them, and the graph."""
    results: list[Any] = []
    job = flights_job(reader_of_flights(list(flights)), results.append, options, 2, to_departure)
    job.use(**{seam: part})
    run = Simulation(job, _SEED, check_every=0) if driver == "simulation" else ThreadedRun(job)
    with run:
        run.run()
        return results, sum(count for *_, (count, _) in results), run.deployment.graph.job


def _names(graph: JobGraph) -> tuple[str, ...]:
    return tuple(f"{vertex.name} × {vertex.parallelism}" for vertex in graph.vertices.values())


def _agree(want: Sequence[Any], before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether both halves together are the whole, and no half has two rows for an hour of an airport."""
    is_whole = all(len(half) == len(_summed(half)) for half in (before, after))
    return is_whole and _summed([*before, *after]) == _summed(want)


def _summed(results: Sequence[Any]) -> dict[Any, tuple[int, int]]:
    """Departures and delays of each hour: one that was cut by the restart has two rows."""
    departures: Counter[Any] = Counter()
    delays: Counter[Any] = Counter()
    for origin, start, _end, (count, total) in results:
        departures[origin, start] += count
        delays[origin, start] += total
    return {key: (departures[key], delays[key]) for key in departures}


# -- what hands records down a chain ---------------------------------------------------------------


def guarded_output(guard: Guard) -> Callable[..., ChainingOutput]:
    """Makes the learner's outputs, with one of ours behind each."""

    def make(operator: Any, value_type: Any, tag: OutputTag | None = None) -> ChainingOutput:
        return _GuardedOutput(guard, operator, value_type, tag)

    return make


class _Handed:
    """Stands before the operator: what a learner's output hands on is kept, and goes on when the output is back."""

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self.records: list[Any] = []

    def process(self, record: Any) -> None:
        self.records.append(record)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


class _GuardedOutput(CopyingChainingOutput):
    """A learner's output in a running chain. An error of the operator behind it is not blamed on the learner."""

    def __init__(self, guard: Guard, operator: Any, value_type: Any, tag: OutputTag | None) -> None:
        super().__init__(operator, value_type, tag)
        self._guard, self._handed = guard, _Handed(operator)
        self._theirs: Any = None
        with guard.call():
            self._theirs = guard.part(self._handed, value_type, tag)

    def collect(self, record: StreamRecord) -> None:
        self._through(lambda output: output.collect(record))

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        self._through(lambda output: output.collect_side(tag, record))

    def _through(self, send: Callable[[Any], object]) -> None:
        """Send through theirs and hand on what came out; through ours once theirs is out."""
        if self._theirs is not None and not self._guard.is_out:
            with self._guard.call():
                send(self._theirs)
            handed, self._handed.records = self._handed.records, []
            if not self._guard.is_out:
                for record in handed:
                    self.operator.process(record)
                return
        ours = CopyingChainingOutput(self.operator, self.value_type, self.tag)
        send(ours)
