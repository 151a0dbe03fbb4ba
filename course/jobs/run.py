"""`sluice run JOB --on DRIVER`: a job from a file, or the flights of the demo, on any driver."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import threading
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from course.compiled.choice import in_use
from course.data.master import MasterError, master_of
from course.data.trace_files import TraceFileError, check_folder
from course.jobs import keeping
from course.jobs.drivers import BY_REGION, DRIVERS, Figures, execute
from course.jobs.job_files import JobError, load_job, no_silent_exit
from course.waiting import Waiting
from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.config import Config
from refimpl.errors import (
    InsufficientBuffersError,
    InsufficientSlotsError,
    LocalUsageError,
    RestoreRefusedError,
    SluiceError,
)
from refimpl.job import JobGraph, Placement, StreamEnvironment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from course.data import Comparison

__all__ = ["Sink", "add_arguments", "run"]

_EPILOG = """A job file has a function that is given what the results go to, and returns the job:

  def job(sink):
      environment = StreamEnvironment(parallelism=2)
      environment.from_collection(range(10)).map(lambda n: n * n).sink(sink)
      return environment

course/example_job.py is one. Results go to standard output, one a line; figures to standard error.

examples: sluice run course/example_job.py --on processes
          sluice run my_jobs.py --on processes --checkpoint DIR --every 500ms
          sluice run my_jobs.py --on processes --checkpoint DIR --restore
          sluice run my_jobs.py --batch --slots 1
          sluice run my_jobs.py:second --on spark --master spark://127.0.0.1:7077 --task-managers 4
          sluice run flights --on spark --master 'local-cluster[2,1,1024]' --trace DIR
example: sluice run flights --on simulation --records 5000 --json"""

_SAMPLE_FOR_SIMULATION = 20_000
_WIDTH = 2


class Sink:
    """Takes the results of a job: counts them, prints them if somebody reads them, and makes one number of all.

    With `is_kept` a result is out of this process when the call returns: a checkpoint may count on it then.
    """

    def __init__(self, *, prints: bool, is_kept: bool = False) -> None:
        self.num_results = 0
        self._is_kept = is_kept
        self._prints = prints
        self._sum = 0
        self._lock = threading.Lock()  # on threads, subtasks of a sink call it at the same time

    def __call__(self, result: object) -> None:
        text = repr(result)
        number = int.from_bytes(hashlib.sha256(text.encode(errors="backslashreplace")).digest(), "big")
        with self._lock:
            self.num_results += 1
            self._sum += number
            if self._prints:
                print(text, flush=self._is_kept)

    @property
    def fingerprint(self) -> str:
        """The same for the same results in any order."""
        return f"{self._sum % (1 << 256):064x}"[:16]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice run`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "job",
        metavar="JOB",
        help="FILE.py:FUNCTION or MODULE:FUNCTION (default: the function `job`); or `flights`, "
        "the job of the demo, whose answer must equal Spark's own",
    )
    parser.add_argument("--on", choices=DRIVERS, default="threads", help="what runs it (default: %(default)s)")
    parser.add_argument(
        "--task-managers",
        type=int,
        metavar="N",
        help="TaskManagers to spread the job over (default: 2 for processes and spark, else 1)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="the Spark to use: local[N], local-cluster[N,CORES,MB], spark://HOST:PORT, … (default: "
        "SLUICE_SPARK_MASTER, else this machine)",
    )
    parser.add_argument(
        "--records",
        type=_records,
        metavar="N",
        help=f"of flights: the first N, or 'all' (default: all; {_SAMPLE_FOR_SIMULATION} in the simulation)",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="DIR",
        help="write down what happens to each buffer, as Parquet, for `sluice trace DIR`",
    )
    parser.add_argument(
        "--batch",
        action="store_true",
        help="let every result that is dealt out be complete before it is read: tasks run region by region, in fewer "
        "slots (execution mode BATCH)",
    )
    parser.add_argument(
        "--slots",
        type=_slots,
        metavar="N",
        help="all the slots there are; the job is refused if it needs more (default: as many as it wants)",
    )
    keeping.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the results")


def run(arguments: argparse.Namespace) -> int:
    """Run the job; 0 only if it succeeded and, for flights, its answer equals Spark's."""
    is_flights = arguments.job == "flights"
    try:
        if arguments.master is not None:
            master_of(arguments.master)
            if arguments.on != "spark" and not is_flights:
                raise JobError("--master is for jobs on Spark, and for flights, which come from it; add --on spark")
        if arguments.records is not None and not is_flights:
            raise JobError("--records is for flights; another job says itself what it reads")
        keeping.check(arguments)
        _check_regions(arguments)
        if arguments.trace is not None:
            check_folder(arguments.trace)
        return _run_flights(arguments) if is_flights else _run_file(arguments)
    except (
        JobError,
        MasterError,
        LocalUsageError,
        InsufficientBuffersError,
        InsufficientSlotsError,
        TraceFileError,
    ) as error:
        print(error, file=sys.stderr)
        return 2
    except SluiceError as error:
        print(f"the job failed: {error}", file=sys.stderr)
        return 1
    except SystemExit as error:
        for note in getattr(error, "__notes__", ())[:1]:  # it was the job's own code that ended the program
            print(f"the job failed: {note}", file=sys.stderr)
        raise


def _run_file(arguments: argparse.Namespace) -> int:
    sink = Sink(prints=not arguments.json, is_kept=arguments.checkpoint is not None)
    with ExitStack() as stack:
        stack.enter_context(no_silent_exit())
        environment = load_job(arguments.job, sink)
        if arguments.batch:
            environment.config = replace(environment.config, execution_mode=ExecutionMode.BATCH)
        kept = keeping.keeping_of(arguments, environment)
        width = _width(arguments, environment)
        waiting = stack.enter_context(Waiting("starting Spark"))
        session = _session(stack, arguments, width) if arguments.on == "spark" else None
        waiting.now(f"running {arguments.job} on {arguments.on}")
        try:
            figures = execute(environment, arguments.on, width, session, arguments.trace, kept, arguments.slots)
        except RestoreRefusedError as error:
            if kept is None or arguments.restore is None:
                raise
            raise kept.refused(error) from error
    _report(arguments, width, sink, figures)
    return 0


def _run_flights(arguments: argparse.Namespace) -> int:
    from course.data import compare, departures_per_window, load, partitions
    from course.data.flights import verified_path
    from course.data.flights_job import flights_job, to_rows
    from course.data.session import FEW_ROWS
    from course.data.source import reader_of

    records = arguments.records
    if records is None:
        records = _SAMPLE_FOR_SIMULATION if arguments.on == "simulation" else 0
    width = arguments.task_managers or (_WIDTH if arguments.on in ("processes", "spark") else 1)
    verified_path()
    results: list[Any] = []
    sink = Sink(prints=False)
    with ExitStack() as stack:
        waiting = stack.enter_context(Waiting("starting Spark"))
        parallelism = max(_WIDTH, width)
        _check_width(arguments, flights_job(_nobody_reads, print, parallelism=parallelism))
        session = _session(stack, arguments, width, quick=0 < records <= FEW_ROWS)
        waiting.now("asking Spark for its own answer")
        flights = load(session, records or None)
        want = departures_per_window(flights)
        waiting.now("letting Spark deal the flights out to partitions")
        parts = stack.enter_context(partitions(flights, parallelism))
        waiting.now(f"running the flights on {arguments.on}")
        mode = ExecutionMode.BATCH if arguments.batch else ExchangeMode.ALL_PIPELINED
        config = Config(object_reuse=True, execution_mode=mode)
        environment = flights_job(reader_of(parts), results.append, config, parallelism)
        figures = execute(environment, arguments.on, width, session, arguments.trace, num_slots=arguments.slots)
    for result in results:
        sink(result)
    comparison = compare(to_rows(results), want)
    _report(arguments, width, sink, figures, comparison)
    return 0 if comparison.is_equal else 1


def _session(stack: ExitStack, arguments: argparse.Namespace, width: int, *, quick: bool = False) -> SparkSession:
    """The session; on this machine with a core for each TaskManager, unless a master is named."""
    from course.data import cancels, spark

    master = arguments.master or os.environ.get("SLUICE_SPARK_MASTER") or f"local[{max(_WIDTH, width)}]"
    session = spark("sluice run", master=master, quick=quick)
    stack.enter_context(cancels(session))
    return session


def _width(arguments: argparse.Namespace, environment: StreamEnvironment) -> int:
    """How many TaskManagers the job runs on; the default never asks for more than it has slots."""
    slots = _check_width(arguments, environment)
    wanted = _WIDTH if arguments.on in ("processes", "spark") else 1
    return arguments.task_managers or min(wanted, slots)


def _check_width(arguments: argparse.Namespace, environment: StreamEnvironment) -> int:
    """How many slots the job has.

    Raises:
        LocalUsageError: fewer than the TaskManagers that were asked for.
    """
    job = JobGraph(environment.graph, environment.config)
    return Placement(job, 1 if arguments.task_managers is None else arguments.task_managers).num_slots


def _report(
    arguments: argparse.Namespace, width: int, sink: Sink, figures: Figures, comparison: Comparison | None = None
) -> None:
    """Say how it went: one JSON object on standard output, or a line for people on standard error."""
    summary = {
        "job": arguments.job, "on": arguments.on, "task_managers": width, "records_in": figures.records_in,
        "results": sink.num_results, "fingerprint": sink.fingerprint, "seconds": round(figures.seconds, 3),
        "engine": in_use(),
    }  # fmt: skip
    if figures.kept is not None:
        summary["checkpoints"] = asdict(figures.kept)
    if figures.regions is not None:
        summary |= asdict(figures.regions)
    if comparison is not None:
        summary["equal_to_spark"] = comparison.is_equal
    if arguments.json:
        print(json.dumps(summary))
    else:
        print(
            f"{figures.records_in:,} records in, {sink.num_results:,} results (fingerprint {sink.fingerprint}) "
            f"in {figures.seconds:.2f} s on {arguments.on}, {width} TaskManager{'s' if width > 1 else ''}"
            f"{', compiled' if in_use() == 'compiled' else ''}",
            file=sys.stderr,
        )
        if figures.kept is not None:
            print(figures.kept, file=sys.stderr)
        if figures.regions is not None:
            print(figures.regions, file=sys.stderr)
        if arguments.trace is not None:
            print(f"the trace is in {arguments.trace}: sluice trace {arguments.trace}", file=sys.stderr)
        if comparison is not None:
            said = "✓ equal to Spark's own answer" if comparison.is_equal else "✗ not equal to Spark's own answer"
            print(f"{said}: {comparison.message()}")


def _check_regions(arguments: argparse.Namespace) -> None:
    """Refuse what does not go with a run region by region, before anything is loaded.

    Raises:
        JobError: which option, and why.
    """
    asked = "--batch" if arguments.batch else "--slots" if arguments.slots is not None else None
    if asked is None:
        return
    if arguments.on not in BY_REGION:
        raise JobError(f"{asked} does not go with --on {arguments.on}; it does with {', '.join(BY_REGION)}")
    if arguments.checkpoint is not None:
        raise JobError(f"{asked} does not go with --checkpoint: a barrier passes no result that is read when complete")


def _slots(word: str) -> int:
    """A number of slots."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of slots, of at least 1")
    return int(word)


def _nobody_reads(_subtask: int, _parallelism: int) -> NoReturn:
    raise AssertionError("a job that is only looked at reads nothing")


def _records(word: str) -> int:
    """A number of records; 0 stands for all."""
    if word == "all":
        return 0
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is neither 'all' nor a number of at least 1")
    return int(word)
