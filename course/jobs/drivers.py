"""Runs a job on any driver, by its name, and says what it came to."""

from __future__ import annotations

import datetime
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from course.data.master import master_of
from course.data.trace_files import FileTrace, check_folder, table_of, write_trace
from course.jobs.keeping import Keeping, Kept, came_to_on_spark
from course.spark.cluster_keys import CLOCK_DIFFERENCE, new_pair
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, SparkRun, ThreadedRun
from refimpl.drivers.transport import PemPair
from refimpl.job import JobGraph, JobVertex, StreamEnvironment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BY_REGION", "DRIVERS", "Figures", "RegionFigures", "execute", "spark_run"]

DRIVERS = ("simulation", "threads", "aio", "processes", "spark")
BY_REGION = ("simulation", "threads", "aio")
"""Those that run a job region by region."""
_PACKAGES = ("course",)
_LONGEST_RUN = datetime.timedelta(days=30)
_STEPS_BETWEEN_LAWS = 100


@dataclass(frozen=True, slots=True)
class RegionFigures:
    """Of a job that ran region by region: how many there were, and how many slots were in use at one time at most."""

    regions: int
    slots: int

    def __str__(self) -> str:
        def counted(number: int, what: str) -> str:
            return f"{number} {what}{'' if number == 1 else 's'}"

        return f"{counted(self.regions, 'region')}, {counted(self.slots, 'slot')} in use at one time at most"


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds from the start of a job to its end, how many records its sources read, and of its checkpoints if any."""

    seconds: float
    records_in: int
    kept: Kept | None = None
    regions: RegionFigures | None = None


def spark_run(
    environment: StreamEnvironment,
    session: SparkSession,
    num_task_managers: int,
    *,
    is_traced: bool = False,
    keeping: Keeping | None = None,
) -> SparkRun:
    """The job on a session; with keys of its own where executors are not on this machine alone.

    Its trace has the columns of `course.data.trace_files`.

    Raises:
        LocalUsageError: as `SparkRun`.
    """
    master = session.sparkContext.master
    assert master is not None, "a session has a master"
    is_here = master_of(master).is_here
    keys = None if is_here else _new_keys()
    options = {} if keeping is None else keeping.options
    table = table_of if is_traced else None
    return SparkRun(environment, session, num_task_managers, keys, _PACKAGES, table, **options)


def execute(
    environment: StreamEnvironment,
    driver: str,
    num_task_managers: int,
    session: SparkSession | None = None,
    trace_folder: Path | None = None,
    keeping: Keeping | None = None,
    num_slots: int | None = None,
) -> Figures:
    """Run the job on one of `DRIVERS`; `session` is for Spark. A trace goes to `trace_folder`, for `sluice trace`.

    With `keeping` checkpoints are kept. `num_slots` are all the slots there are; without it there are as many as the
    job wants.

    Raises:
        SluiceError: the job failed, or its trace could not be written.
    """
    if trace_folder is not None:
        check_folder(trace_folder)
    started_s = time.monotonic()
    if driver == "spark":
        assert session is not None, "Spark needs a session"
        is_traced = trace_folder is not None
        with spark_run(environment, session, num_task_managers, is_traced=is_traced, keeping=keeping) as on_spark:
            on_spark.run()
            seconds = time.monotonic() - started_s
            if trace_folder is not None:
                write_trace(trace_folder, on_spark.trace_tables())
            read = [counts.delivered[vertex.name] for counts in on_spark.counts for vertex in _sources(environment)]
            summary = on_spark.checkpoints
        return Figures(seconds, sum(read), None if summary is None else came_to_on_spark(summary))
    with ExitStack() as stack:
        make_trace = None if trace_folder is None else partial(FileTrace, trace_folder)
        trace = None if make_trace is None or driver == "processes" else stack.enter_context(make_trace())
        run: Simulation | AsyncRun | ThreadedRun | ProcessRun
        options = {} if keeping is None else keeping.options
        if num_slots is not None:
            options = {**options, "num_slots": num_slots}
        if driver == "simulation":
            given = {"check_every": _STEPS_BETWEEN_LAWS, "trace": trace, **options}
            run = Simulation(environment, num_task_managers=num_task_managers, **given)
        elif driver == "aio":
            run = AsyncRun(environment, trace, num_task_managers, **options)
        elif driver == "threads":
            run = ThreadedRun(environment, trace, num_task_managers, **options)
        else:
            run = ProcessRun(environment, num_task_managers, make_trace=make_trace, **options)
        stack.enter_context(run)
        snapshot = run.run().snapshot()
        seconds = time.monotonic() - started_s
    by_region = None if isinstance(run, ProcessRun) else run.job_regions
    if by_region is not None:
        num_read = sum(by_region.num_records_in(vertex.name) for vertex in _sources(environment))
        return Figures(seconds, num_read, None, RegionFigures(by_region.num_regions, by_region.schedule.most_slots))
    heads = {vertex.nodes[0].name for vertex in _sources(environment)}
    read = [task.num_records_in for task in snapshot.tasks if task.operators[0] in heads]
    kept = None if keeping is None or run.recovery is None else keeping.came_to(run.recovery)
    return Figures(seconds, sum(read), kept)


def _sources(environment: StreamEnvironment) -> list[JobVertex]:
    """The tasks that read from outside."""
    job = JobGraph(environment.graph, environment.config)
    return [vertex for vertex in job.vertices.values() if vertex.nodes[0].make_reader is not None]


def _new_keys() -> PemPair:
    now = datetime.datetime.now(datetime.UTC)
    return PemPair(*new_pair(now - CLOCK_DIFFERENCE, now + _LONGEST_RUN))
