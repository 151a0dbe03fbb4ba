"""`sluice demo`: a year of flights from Spark, through the engine, and compared with Spark's own answer."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from course.compiled.choice import in_use
from course.data.flights import NUM_FLIGHTS
from course.data.flights_job import flights_job, to_rows
from course.data.trace_files import FileTrace, TraceFileError, check_folder
from course.jobs.demo_view import DemoView
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.errors import ConfigError, InsufficientBuffersError, SluiceError
from refimpl.job import JobSnapshot, StreamEnvironment

__all__ = ["add_arguments", "run"]

_DRIVERS = ("threads", "simulation", "aio", "processes")
_SAMPLE_FOR_SIMULATION = 20_000
_STEPS_BETWEEN_LAWS = 100


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a run of the engine came to; `seconds` leaves out Spark's part."""

    seconds: float
    num_in: int
    results: list[Any]
    num_late: int
    num_steps: int
    num_law_checks: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the demo."""
    parser.add_argument(
        "--records",
        type=_records,
        metavar="N",
        help=f"first N flights in order of arrival, or 'all' ({NUM_FLIGHTS}); default: all, "
        f"{_SAMPLE_FOR_SIMULATION} in the simulation",
    )
    parser.add_argument(
        "--driver",
        choices=_DRIVERS,
        default="threads",
        help="threads (default); simulation: one step at a time with the laws checked; aio: an event loop; "
        "processes: one for each TaskManager",
    )
    parser.add_argument(
        "--task-managers",
        type=int,
        metavar="N",
        help="TaskManagers to spread the subtasks over, at most P; what one sends another goes over TCP, in the "
        "simulation over a wire of lists (default: 2 for processes, else 1)",
    )
    parser.add_argument(
        "--segment-size", type=int, default=32_768, metavar="BYTES", help="size of a buffer (default: %(default)s)"
    )
    parser.add_argument(
        "--buffers",
        type=_buffers,
        default=2048,
        metavar="N",
        help="buffers of each TaskManager, or 'min' for the least the job can start with (default: %(default)s)",
    )
    parser.add_argument(
        "--parallelism",
        type=int,
        default=2,
        metavar="P",
        help="subtasks of each operator (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="order of steps in the simulation (default: %(default)s)")
    parser.add_argument(
        "--trace", metavar="DIR", help="write down what happens to each buffer, as Parquet, for `sluice trace DIR`"
    )
    parser.add_argument("--explain", action="store_true", help="say which operators share a task and why, then stop")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 only if the engine's answer equals Spark's."""
    if arguments.parallelism < 1:
        print(f"--parallelism must be at least 1, got {arguments.parallelism}", file=sys.stderr)
        return 2
    if arguments.task_managers is None:
        arguments.task_managers = min(2, arguments.parallelism) if arguments.driver == "processes" else 1
    if not 1 <= arguments.task_managers <= arguments.parallelism:
        print(
            f"--task-managers must be from 1 to the parallelism, which is {arguments.parallelism}; "
            f"got {arguments.task_managers}",
            file=sys.stderr,
        )
        return 2
    if arguments.explain:
        print(flights_job(_no_reader, print, parallelism=arguments.parallelism).explain())
        return 0
    try:
        config = _config(arguments)
        return _run(arguments, config)
    except (ConfigError, InsufficientBuffersError, TraceFileError) as error:
        print(error, file=sys.stderr)
        return 2
    except SluiceError as error:
        print(f"the job failed: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace, config: Config) -> int:
    from course.data import cancels, compare, departures_per_window, load, partitions, spark
    from course.data.flights import verified_path
    from course.data.session import FEW_ROWS
    from course.data.source import reader_of

    records = arguments.records
    if records is None:
        records = _SAMPLE_FOR_SIMULATION if arguments.driver == "simulation" else 0
    if arguments.trace is not None:
        check_folder(Path(arguments.trace))
    verified_path()  # a damaged file is told before twenty seconds of Spark
    with ExitStack() as stack:
        view = stack.enter_context(DemoView(is_quiet=arguments.json))
        view.stage("starting Spark")
        started = time.perf_counter()
        session = spark("sluice demo", quick=0 < records <= FEW_ROWS)
        stack.enter_context(cancels(session))
        view.stage("asking Spark for its own answer")
        flights = load(session, records or None)
        want = departures_per_window(flights)
        view.stage("letting Spark deal the flights out to partitions")
        parts = stack.enter_context(partitions(flights, arguments.parallelism))
        spark_seconds = time.perf_counter() - started
        results: list[Any] = []
        environment = flights_job(reader_of(parts), results.append, config, arguments.parallelism)
        total = sum(part.num_rows for part in parts)
        has_one_trace = arguments.trace is not None and arguments.driver != "processes"
        trace = stack.enter_context(FileTrace(arguments.trace)) if has_one_trace else None
        outcome = _execute(arguments, environment, results, total, view, trace)
    comparison = compare(to_rows(outcome.results), want)
    summary = _summary(arguments, config, outcome, comparison.is_equal, spark_seconds)
    if arguments.json:
        print(json.dumps(summary | {"differences": None if comparison.is_equal else comparison.message()}))
    else:
        view.summary(summary, comparison.message())
        if arguments.trace is not None:
            print(f"the trace is in {arguments.trace}: sluice trace {arguments.trace}")
    return 0 if comparison.is_equal else 1


def _execute(
    arguments: argparse.Namespace,
    environment: StreamEnvironment,
    results: list[Any],
    total: int,
    view: DemoView,
    trace: FileTrace | None,
) -> _Outcome:
    """Run the job on the driver that was asked for, with the view open."""
    width = arguments.task_managers
    view.stage(f"running the engine: {arguments.driver}" + (f", {width} TaskManagers" if width > 1 else ""))
    steps = checks = 0
    if arguments.driver == "simulation":
        # The laws look at everything there is, so each of the first steps is checked, then one in a hundred.
        every = 1 if total <= _SAMPLE_FOR_SIMULATION else _STEPS_BETWEEN_LAWS
        simulated = Simulation(environment, arguments.seed, check_every=every, trace=trace, num_task_managers=width)
        with simulated as simulation:
            started = time.perf_counter()
            simulation.run(on_step=lambda run: view.show_now_and_then(run, total))
            seconds = time.perf_counter() - started
            last, steps = simulation.snapshot(), simulation.num_steps
            checks = steps // every
    elif arguments.driver == "aio":
        with AsyncRun(environment, trace, width) as looped:
            asyncio.run(_watch(looped, total, view))
            last, seconds = looped.snapshot(), looped.elapsed_s
    else:
        run: ThreadedRun | ProcessRun
        if arguments.driver == "threads":
            run = ThreadedRun(environment, trace, width)
        else:
            run = ProcessRun(environment, width, make_trace=arguments.trace and partial(FileTrace, arguments.trace))
        with run:
            run.start()
            while not run.join(timeout_s=view.seconds_between_frames):
                view.show(run, total)
            last, seconds = run.snapshot(), run.elapsed_s
    num_in = _num_records_in(last, "flights")
    num_late = _num_records_in(last, "hourly") - sum(departures for *_, (departures, _) in results)
    return _Outcome(seconds, num_in, results, num_late, steps, checks)


async def _watch(run: AsyncRun, total: int, view: DemoView) -> None:
    """Run the job in this loop and show it meanwhile."""
    job = asyncio.ensure_future(run.execute())
    while not (await asyncio.wait([job], timeout=view.seconds_between_frames))[0]:
        view.show(run, total)
    await job


def _num_records_in(snapshot: JobSnapshot, operator: str) -> int:
    """Records that came to the tasks whose first operator has that name."""
    return sum(task.num_records_in for task in snapshot.tasks if task.operators[0] == operator)


def _summary(
    arguments: argparse.Namespace, config: Config, outcome: _Outcome, is_equal: bool, spark_seconds: float
) -> dict[str, Any]:
    """The figures of one run, for people and for machines."""
    return {
        "records_in": outcome.num_in,
        "records_out": len(outcome.results),
        "windows": len({result[:2] for result in outcome.results}),
        "records_late": outcome.num_late,
        "equal_to_spark": is_equal,
        "seconds": round(outcome.seconds, 3),
        "records_per_second": round(outcome.num_in / outcome.seconds) if outcome.seconds else 0,
        "spark_seconds": round(spark_seconds, 3),
        "driver": arguments.driver,
        "engine": in_use(),
        "task_managers": arguments.task_managers,
        "parallelism": arguments.parallelism,
        "tasks": 2 * arguments.parallelism,
        "buffers": config.num_buffers,
        "segment_size": config.segment_size_bytes,
        "steps": outcome.num_steps,
        "law_checks": outcome.num_law_checks,
        "seed": arguments.seed,
    }


def _config(arguments: argparse.Namespace) -> Config:
    """The engine's options, with `--buffers min` resolved; too few are refused before Spark is started.

    Raises:
        ConfigError: an option the engine cannot work with, or fewer buffers than the job needs to start.
    """
    options = {"segment_size_bytes": arguments.segment_size, "object_reuse": True}
    environment = flights_job(_no_reader, print, Config(**options), arguments.parallelism)
    least = environment.execution_graph(arguments.task_managers).num_required_buffers
    wanted = least if arguments.buffers == "min" else arguments.buffers
    if wanted < least:
        needed = f"with parallelism {arguments.parallelism} it must be at least {least}"
        if arguments.task_managers > 1:
            needed += " on each TaskManager"
        raise ConfigError("num_buffers", wanted, needed)
    return Config(num_buffers=wanted, **options)


def _no_reader(subtask: int, parallelism: int) -> NoReturn:
    raise AssertionError("a job that is only looked at reads nothing")


def _records(text: str) -> int:
    """A number of records; 0 stands for all."""
    if text == "all":
        return 0
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'all' nor a number of at least 1")
    return int(text)


def _buffers(text: str) -> int | str:
    if text == "min":
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'min' nor a whole number")
    return int(text)
