"""Puts a learner's part into a running job, between two buffers, and counts the records on both sides.

The job carries real flights, in the simulation or on threads. It starts with our part; halfway the learner's goes
in. What arrives at the windows is counted, and the answer is compared with a run that used our part throughout. A part
that raises or stalls is taken out again (see `course.swap.guard`), and the job goes on.
"""

from __future__ import annotations

import html
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from course.curriculum.manifest import exercise
from course.curriculum.parts import to_departure
from course.curriculum.seams import seam
from course.data.flights_job import flights_job
from course.data.sample import reader_of_flights, sample_flights
from course.places import IN_A_BROWSER
from course.swap.chains import run_in_two_halves
from course.swap.checkpoints import num_cuts
from course.swap.combinations import jobs_at_the_door
from course.swap.guard import Guard
from course.swap.kinds import FLUSH_TIMEOUT_MS, KINDS
from course.swap.live import end_last, live_swap
from course.swap.pressure import run_in_a_race, run_in_pressure
from course.swap.report import first_lines
from course.swap.rule import GateReport, at_the_gate
from course.swap.slots import run_in_a_cluster
from course.swap.two_phases import run_two_phases
from course.swap.windows import run_windows
from refimpl.batch_options import ExecutionMode
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import USER_CODE_RAISES, described
from refimpl.job import WatermarkStrategy
from refimpl.task import IterableReader

__all__ = ["SwapReport", "records_in", "run"]

_SEED = 4
_STEP_MS = 0.01
_STEP_WITH_CUTS_MS = 0.05  # so that there are some before the swap and some after it
_STEP_WITH_FLUSHES_MS = 0.5  # so that what waits does so for longer than the timeout


@dataclass(frozen=True, slots=True)
class SwapReport:
    """What became of the records of a job in which a part was swapped.

    `num_before` records had left the sources when the part went in, `num_after` came later. `steps` are steps of the
    simulation; `swapped_at` is the step of the swap; on threads both are 0, as nobody counts steps there. `error` says
    what stopped the job, if anything did; `taken_out` why the part had to go, after `num_calls` calls. `look`
    makes a live view of the job, which a notebook shows below the counts. Where barriers travel, `num_cuts` is the
    number of the last checkpoint that has cut every task, and `num_cuts_before` that when the part went in;
    `crashed` says what became of another job, with the same part, that crashed.
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
    taken_out: tuple[str, ...] = ()
    num_calls: int = 0
    num_cuts_before: int = 0
    num_cuts: int = 0
    crashed: str = ""
    look: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @property
    def num_after(self) -> int:
        return self.num_in - self.num_before

    @property
    def num_lost(self) -> int:
        """Records that left the sources and never arrived; negative if more arrived than left."""
        return self.num_in - self.num_arrived

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, Any]:
        if self.look is None:
            return {"text/plain": repr(self)}
        import ipywidgets

        # As JupyterLab shows any text; a page that has no kernel shows the text alone.
        words = f'<div class="jp-RenderedText jp-OutputArea-output"><pre>{html.escape(repr(self))}</pre></div>'
        box = ipywidgets.VBox([ipywidgets.HTML(words), self.look()])
        return {**box._repr_mimebundle_(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        where = f"at step {self.swapped_at}" if self.swapped_at else "while the threads ran"
        lines = first_lines(self, f"put in {where} between two buffers")
        if self.error:
            lines += [f"✗ the job stopped at step {self.steps}: {self.error}"]
        lines += [
            f"  before the swap  {self.num_before:>6} records left the sources",
            f"  after the swap   {self.num_after:>6}",
            f"  arrived          {self.num_arrived:>6} of {self.num_in}",
        ]
        if self.num_cuts:
            lines.append(f"  checkpoints      {self.num_cuts_before:>6} before the swap, {self.num_cuts} in all")
        if not self.error:
            sign = "✓ none lost" if self.num_lost == 0 else f"✗ {self.num_lost} lost"
            same = "the same as ours alone gives" if self.is_equal else "NOT what ours alone gives"
            after = f", after {self.steps} steps" if self.steps else ""
            lines += [f"{sign}, the hourly departures are {same}{after}"]
        lines += [self.crashed] if self.crashed else []
        return "\n".join(lines)


def run(
    exercise_id: str,
    part: Any = None,
    *,
    records: int = 600,
    segment_size: int = 64,
    pool: int | None = None,
    driver: str = "simulation",
) -> SwapReport | Any:
    """Swap the part of `exercise_id` into a running job; `None` swaps in ours.

    `records` flights travel in buffers of `segment_size` bytes; `pool` gives the job so many buffers in all, with one
    subtask of each operator, and must be at least 2; a part of a remote channel runs on two TaskManagers with two
    subtasks, and `pool` is each one's. `driver` is "simulation" or "threads"; or "flink", for the parts that talk:
    then a real Flink is the other end, or a recorded one, and its records are its own. Parts that show what they do
    only in virtual time have runs of their own, in the simulation.

    Raises:
        NoSuchExerciseError: there is no such exercise.
        ValueError: there is no such driver.
        ConfigError: `pool` is below 1.
        InsufficientBuffersError: `pool` is too small for the job.
    """
    swapped = seam(exercise(exercise_id).id).swap
    talks = ["flink"] if swapped in ("wire", "talk") else []
    drivers = ["simulation"] if swapped in _IN_VIRTUAL_TIME else [*_DRIVERS, *talks]
    if driver not in drivers:
        has = f"there is {drivers[0]}" if len(drivers) == 1 else f"there are {' and '.join(drivers)}"
        raise ValueError(f"there is no driver {driver!r} here; {has}")
    if IN_A_BROWSER and driver == "threads":
        print("○ A browser has no threads: this run is in the simulation.")
        driver = "simulation"
    if driver == "flink":  # it runs beside the job that is looked at, which goes on
        from course.swap.with_flink import talk_with_part

        return talk_with_part(swapped, part)
    end_last()
    if swapped.startswith("rule of "):
        options = {"records": records, "segment_size": segment_size, "pool": pool, "driver": driver}
        return _gate(exercise_id, part, swapped.removeprefix("rule of "), options)
    if swapped in _IN_VIRTUAL_TIME:
        return _IN_VIRTUAL_TIME[swapped](exercise_id, part)
    flights = sample_flights(records)
    config = Config(segment_size_bytes=segment_size, num_buffers=64 if pool is None else pool, object_reuse=True)
    if swapped in ("is_chainable", "build_chains"):  # what makes the graph: it goes in when the job starts again
        return run_in_two_halves(exercise_id, swapped, part, flights, config, driver)
    if swapped == "why_not":
        return jobs_at_the_door(exercise_id, part, flights, config)
    kind = KINDS[swapped]
    config = kind.configured(config)
    parallelism = 2 if pool is None or kind.num_task_managers > 1 else 1
    go, width, strategy = _DRIVERS[driver], kind.num_task_managers, kind.strategy
    want, _ = _on_simulation(flights, config, parallelism, None)
    if part is None:
        got, numbers = go(flights, config, parallelism, kind.ours, width, strategy)
        numbers |= {"crashed": kind.crashed(None, records)} if kind.crashed else {}
        guarded: dict[str, Any] = {}
    else:
        with Guard(part) as guard:
            got, numbers = go(flights, config, parallelism, lambda job: kind.theirs(job, guard), width, strategy)
            numbers |= {"crashed": kind.crashed(guard, records)} if kind.crashed else {}
        guarded = {"taken_out": tuple(guard.what_happened), "num_calls": guard.num_calls}
    name = getattr(part, "__name__", type(part).__name__) if part is not None else kind.name
    is_equal = sorted(got) == sorted(want)
    look: Callable[[], Any] | None = None
    if kind.execution_mode is not ExecutionMode.BATCH and not IN_A_BROWSER:  # flights without end have no batch
        look = partial(live_swap, exercise_id, part, kind.ours, kind.theirs, config, parallelism, width, strategy)
    return SwapReport(exercise_id, name, part is not None, is_equal=is_equal, look=look, **numbers, **guarded)


def _gate(exercise_id: str, rule: Any, of: str, options: Mapping[str, Any]) -> GateReport:
    """A rule stands at the gate of the job: what it lets in is swapped in."""
    wanted = seam(exercise_id)
    chosen = rule or getattr(import_module(wanted.module), wanted.part)
    return at_the_gate(exercise_id, chosen, of, lambda part: run(of, part, **options), is_learners=rule is not None)


_IN_VIRTUAL_TIME: dict[str, Callable[[str, Any], Any]] = {
    "bottleneck": run_in_pressure, "storm": run_in_a_race, "slots": run_in_a_cluster, "two_phases": run_two_phases,
    "windows": run_windows,
}  # fmt: skip
"""Parts of which only time, or a crash, shows what they do: they go into runs of their own."""

_Swap = Callable[[Any], None]
_Outcome = tuple[list[Any], dict[str, Any]]


def _on_simulation(
    flights: list[dict[str, Any]],
    config: Config,
    parallelism: int,
    swap: _Swap | None,
    num_task_managers: int = 1,
    strategy: WatermarkStrategy | None = None,
) -> _Outcome:
    """Run the job once, with a swap when half of the flights have left; return results and counts."""
    results: list[Any] = []
    environment = flights_job(reader_of_flights(flights), results.append, config, parallelism, to_departure, strategy)
    numbers: dict[str, Any] = {"num_before": 0, "swapped_at": 0, "error": ""}
    step_ms = _STEP_WITH_CUTS_MS if config.checkpoint_interval_ms else _STEP_MS
    step_ms = _STEP_WITH_FLUSHES_MS if config.buffer_timeout_ms == FLUSH_TIMEOUT_MS else step_ms
    with Simulation(
        environment, _SEED, check_every=0, num_task_managers=num_task_managers, step_ms=step_ms
    ) as simulation:
        waiting = swap
        try:
            while simulation.step() is not None:
                num_out = records_in(simulation, 0)
                if waiting is not None and num_out >= len(flights) // 2:
                    waiting(simulation)
                    waiting = None
                    numbers |= {"num_before": num_out, "swapped_at": simulation.num_steps}
                    numbers["num_cuts_before"] = num_cuts(simulation)
        except USER_CODE_RAISES as error:  # whatever stopped the job is reported, not hidden
            numbers["error"] = described(error)
        numbers |= {
            "num_in": records_in(simulation, 0),
            "num_arrived": records_in(simulation, 1),
            "steps": simulation.num_steps,
            "num_cuts": num_cuts(simulation),
        }
    return results, numbers


def _on_threads(
    flights: list[dict[str, Any]],
    config: Config,
    parallelism: int,
    swap: _Swap,
    num_task_managers: int = 1,
    strategy: WatermarkStrategy | None = None,
) -> _Outcome:
    """The same on threads; the source that reads the flight in the middle says when."""
    results: list[Any] = []
    numbers: dict[str, Any] = {"num_before": 0, "swapped_at": 0, "steps": 0, "error": ""}
    runs: list[ThreadedRun] = []
    count, lock = itertools.count(1), threading.Lock()

    def counted(subtask: int, of: int) -> Iterator[dict[str, Any]]:
        for flight in flights[subtask::of]:
            with lock:
                number = next(count)
            if number == len(flights) // 2 + 1:
                swap(runs[0])  # each task takes it between two of its steps
                numbers.update(num_before=number - 1, num_cuts_before=num_cuts(runs[0]))
            yield dict(flight)

    environment = flights_job(
        lambda subtask, of: IterableReader(counted(subtask, of)),
        results.append,
        config,
        parallelism,
        to_departure,
        strategy,
    )
    with ThreadedRun(environment, num_task_managers=num_task_managers) as run_on_threads:
        runs.append(run_on_threads)
        try:
            run_on_threads.run()
        except USER_CODE_RAISES as error:  # whatever stopped the job is reported, not hidden
            numbers["error"] = described(error)
        numbers |= {"num_in": records_in(run_on_threads, 0), "num_arrived": records_in(run_on_threads, 1)}
        numbers["num_cuts"] = num_cuts(run_on_threads)
    return results, numbers


_DRIVERS: dict[str, Callable[..., _Outcome]] = {"simulation": _on_simulation, "threads": _on_threads}


def records_in(job: Simulation | ThreadedRun, vertex: int) -> int:
    """Records that entered the tasks of the job's first or second vertex, in regions that have ended too."""
    wanted = list(job.deployments[0].graph.job.vertices.values())[vertex]
    found = 0 if job.job_regions is None else job.job_regions.num_records_in(wanted.name)
    for deployment in [] if job.job_regions is not None and job.job_regions.schedule.is_done else job.deployments:
        found += sum(task.chain.num_records_in for each, task in deployment.vertices_and_tasks if each is wanted)
    return found
