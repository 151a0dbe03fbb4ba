"""A learner's word on which jobs can run, asked by the engine for six of them; those that it lets in are started.

An engine asks before it makes a graph, so the part does not go into a job that runs: it stands at the door. A job that
our part would not let in is not started, whatever the learner's says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course.curriculum.parts import to_departure
from course.data.flights_job import flights_job
from course.data.sample import reader_of_flights
from course.swap.guard import Guard
from refimpl.batch_options import ExecutionMode, ScheduleMode
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment, why_not

__all__ = ["AtTheDoor", "jobs_at_the_door"]

_MOST_FLIGHTS = 200


@dataclass(frozen=True, slots=True)
class AtTheDoor:
    """What was said of each job, and what became of those that were let in. Each line is a job, its fate, and why."""

    exercise: str
    part_name: str
    is_learners: bool
    lines: tuple[tuple[str, str], ...]
    num_as_ours: int
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether all jobs fare as with ours."""
        return self.num_as_ours == len(self.lines)

    def __repr__(self) -> str:
        whose = "your part" if self.is_learners else "our part (yours stands here when it passes its check)"
        lines = [f"{whose}: {self.part_name}, asked of {len(self.lines)} jobs before they start"]
        if self.taken_out:
            lines.append(f"✗ taken out again in its call number {self.num_calls:,}: {self.taken_out[0]}")
            lines += [f"    {line}" for line in self.taken_out[1:]]
            lines.append("  ours answered from there on")
        for job, fate in self.lines:
            lines += [f"  {job}", f"    {fate}"]
        sign = "✓" if self.is_equal else "✗"
        lines.append(f"{sign} {self.num_as_ours} of {len(self.lines)} jobs fare as with ours")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    execution_mode: ExecutionMode
    schedule_mode: ScheduleMode
    has_end: bool = True


_JOBS = (
    _Job("pipelined, no end, all at once", ExecutionMode.PIPELINED, ScheduleMode.EAGER, has_end=False),
    _Job("pipelined, an end, all at once", ExecutionMode.PIPELINED, ScheduleMode.EAGER),
    _Job("pipelined, an end, with the first output", ExecutionMode.PIPELINED, ScheduleMode.LAZY_FROM_SOURCES),
    _Job("blocking, an end, after the last output", ExecutionMode.BATCH, ScheduleMode.PIPELINED_REGION),
    _Job("blocking, an end, all at once", ExecutionMode.BATCH, ScheduleMode.EAGER),
    _Job("blocking, no end, after the last output", ExecutionMode.BATCH, ScheduleMode.PIPELINED_REGION, has_end=False),
)


def jobs_at_the_door(exercise: str, part: Any, flights: Sequence[dict[str, Any]], options: Config) -> AtTheDoor:
    """Ask `part` of six jobs, and run those it lets in; `None` is ours."""
    flights = flights[:_MOST_FLIGHTS]
    want = [_fate(each, flights, options, why_not) for each in _JOBS]
    taken_out: tuple[str, ...]
    if part is None:
        got, taken_out, num_calls = want, (), 0
    else:
        with Guard(part) as guard:

            def asked(*three: Any) -> str | None:
                said: Any = guard  # which is what nothing says
                if not guard.is_out:
                    with guard.call():
                        said = part(*three)
                    if said is not None and not isinstance(said, str) and not guard.is_out:
                        guard.take_out(f"it answered {said!r}"[:80])
                return why_not(*three) if guard.is_out else said

            got = [_fate(each, flights, options, asked) for each in _JOBS]
        taken_out, num_calls = tuple(guard.what_happened), guard.num_calls
    name = why_not.__name__ if part is None else getattr(part, "__name__", type(part).__name__)
    num_as_ours = sum(each[0] == other[0] for each, other in zip(got, want, strict=True))
    lines = tuple((each.name, words) for each, (_, words) in zip(_JOBS, got, strict=True))
    return AtTheDoor(exercise, name, part is not None, lines, num_as_ours, taken_out, num_calls)


def _fate(
    job: _Job, flights: Sequence[dict[str, Any]], options: Config, rule: Callable[..., str | None]
) -> tuple[Any, str]:
    """What came of it, to be compared, and the same in words."""
    results: list[Any] = []
    config = dataclasses.replace(
        options, execution_mode=job.execution_mode, schedule_mode=job.schedule_mode, object_reuse=True
    )
    environment = flights_job(reader_of_flights(list(flights)), results.append, config, 2, to_departure)
    for node in environment.graph.nodes.values():
        node.is_unbounded = not job.has_end and not environment.graph.in_edges(node.id)
    why, ours = _refusal(environment.use(why_not=rule)), _refusal(environment.use(why_not=why_not))
    if why or ours:
        words = f"refused: {why}" if why else f"✗ let in, and it cannot run: {ours}"
        return bool(why), words[:110]
    if not job.has_end:
        return None, "let in: it would run for ever"
    with Simulation(environment, 1, check_every=0) as simulation:
        simulation.run()
    return sorted(results), f"ran: {sum(number for *_, (number, _) in results)} departures counted"


def _refusal(environment: StreamEnvironment) -> str:
    """Why the graph of a job cannot be made; empty if it can."""
    try:
        environment.explain()
    except LocalUsageError as error:
        return str(error).partition("cannot run: ")[2] or "for no reason that was given"
    return ""
