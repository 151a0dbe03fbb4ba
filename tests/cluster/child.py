"""A process with a Spark session of its own, that does everything for which the tests need one master.

    python child.py MASTER FOLDER CHECK …

Each check is a function here; what it returns is printed as a line of JSON, with its name.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from course.data import compare, departures_per_window, load, partitions, spark
from course.data.answers import as_json
from course.data.comparison import compare_frames
from course.data.flights_job import flights_job, to_rows
from course.data.sections import SECTIONS
from course.data.source import reader_of
from course.data.trace_files import table_of, write_trace
from course.data.trace_queries import invariant, load_trace, progress
from course.jobs.drivers import execute
from course.jobs.run import Sink
from course.spark.cluster_keys import new_pair
from refimpl.column_trace import TraceRows
from refimpl.config import Config
from refimpl.drivers import SparkRun
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.spark import SparkResults
from refimpl.drivers.transport import PemPair
from refimpl.errors import SluiceError
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, StreamRecord
from refimpl.state import JobStore, MemoryStore, manifest_keys
from refimpl.task import FunctionContext, IterableReader, KeyedProcessFunction, ProcessContext
from tests.bench.spark_cluster import Watch
from tests.cluster.places import FLIGHTS, SECTION
from tests.support.polling import until

NUM_NUMBERS = 4_000
NUM_TRIES = 2
TIMEOUT_S = 600.0  # only so that a hang fails; a machine that has much to do needs minutes


class Context:
    """What a check has: the session, and a folder that all processes see."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder


def numbers(
    on_value: Callable[[int], int] = lambda value: value, width: int = 2
) -> tuple[StreamEnvironment, list[Any]]:
    """Numbers from two sources to two maps, each by way of the network; and what comes out."""
    results: list[Any] = []
    environment = StreamEnvironment(Config(num_buffers=256), width)

    def read(subtask: int, parallelism: int) -> IterableReader:
        return IterableReader(range(subtask, NUM_NUMBERS, parallelism))

    source = environment.source(read, type=LONG, name="numbers").rebalance()
    source.map(on_value, name="look", type=LONG).sink(results.append, name="results")
    return environment, results


def is_exact(results: list[int]) -> bool:
    return sorted(results) == list(range(NUM_NUMBERS))


def message_of(run: Callable[[], object], expected: type[Exception] = SluiceError) -> list[str]:
    try:
        run()
    except expected as error:
        return [type(error).__name__, str(error)]
    return ["", ""]


# -- checks ------------------------------------------------------------------------------------------------


def flights(context: Context) -> dict[str, Any]:
    """One job on every driver: how many records it read and a fingerprint of its results; and whether Spark agrees."""
    frame = load(context.session, FLIGHTS[0])
    want = departures_per_window(frame)
    found: dict[str, Any] = {}
    with partitions(frame, 2) as parts:
        for driver, width in (("simulation", 2), ("threads", 1), ("processes", 2), ("spark", 2)):
            results: list[Any] = []
            job = flights_job(reader_of(parts), results.append, parallelism=2)
            records_in = execute(job, driver, width, context.session).records_in
            sink = Sink(prints=False)
            for result in results:
                sink(result)
            found[driver] = [records_in, sink.fingerprint]
    comparison = compare(to_rows(results), want)
    return found | {"comparison": comparison.message() if comparison.is_equal else "different"}


def frames(context: Context) -> dict[str, Any]:
    """What went into a sink as a DataFrame, and what comes when there is none."""
    environment, results = numbers()
    with SparkRun(environment, context.session) as run:
        said_before = message_of(lambda: run.results("results", "value long"))
        run.run()
        frame = run.results("results", "value long")
        values = [row.value for row in frame.collect()]
        said = message_of(lambda: run.results("nobody", "value long"))
        no_trace = message_of(run.trace)
    delivered = sum((each.delivered for each in run.counts), run.counts[0].delivered.__class__())
    return {
        "is_exact": is_exact(values),
        "as_delivered": values == results or sorted(values) == sorted(results),
        "before": said_before,
        "wrong_name": said,
        "closed": message_of(lambda: run.results("results", "value long")),
        "delivered": dict(delivered),
        "no_trace": no_trace,
    }


def no_table_of(rows: TraceRows, task_manager: int, num_told_lost: int) -> pa.Table:
    """A table of no rows can be made, as the driver does to learn the columns; one of some rows cannot."""
    if len(rows.rows):
        raise ValueError("these rows are odd")
    return table_of(rows, task_manager, num_told_lost)


def traced(context: Context) -> dict[str, Any]:
    """What all TaskManagers noted: as a DataFrame, and as files that say the same; and who took part."""
    environment, results = numbers()
    with Watch(context.session) as watch, SparkRun(environment, context.session, trace_table=table_of) as run:
        run.run()
        rows = run.trace()
        columns, law = rows.columns, as_json(invariant(rows))
        task_managers = sorted(row.task_manager for row in rows.select("task_manager").distinct().collect())
        write_trace(context.folder / "trace", run.trace_tables())
        files = load_trace(context.session, context.folder / "trace")
        same = compare_frames(rows, files, ("task_manager", "number"))
        tasks = sorted(row.task for row in progress(files).collect())
    with SparkRun(numbers()[0], context.session, trace_table=no_table_of) as run:
        no_table = message_of(run.run, ValueError)
    return {
        "is_exact": is_exact(results),
        "columns": columns,
        "law": law,
        "task_managers": task_managers,
        "tasks": tasks,
        "same": same.message() if same.is_equal else "different",
        "roles": sorted(watch.peaks),
        "no_table": no_table,
    }


def shipped(context: Context) -> dict[str, Any]:
    """A job takes the modules along that it needs; one that cannot be is named."""
    (context.folder / "mine_alone.py").write_text("import beside_it\n\ndef double(n):\n    return beside_it.twice(n)\n")
    (context.folder / "beside_it.py").write_text("def twice(n):\n    return 2 * n\n")
    sys.path.insert(0, str(context.folder))
    environment, results = numbers(importlib.import_module("mine_alone").double)
    SparkRun(environment, context.session).run()
    ghost = sys.modules["ghost"] = types.ModuleType("ghost")
    exec("def same(n): return n", vars(ghost))
    environment, _ = numbers(ghost.same)
    return {
        "is_exact": sorted(results) == list(range(0, 2 * NUM_NUMBERS, 2)),
        "missing": message_of(SparkRun(environment, context.session).run),
        "wrong": message_of(SparkRun(numbers()[0], context.session, packages=["nowhere_at_all"]).run),
    }


def receipt(context: Context) -> str | None:
    """A data section of the lessons, done on this master."""
    return SECTIONS[SECTION].run(context.session).receipt


class Fed:
    """A source whose records are in Spark."""

    def __init__(self, session: SparkSession, num_partitions: int) -> None:
        self.frame = session.range(0, NUM_NUMBERS, 1, num_partitions).toDF("value")
        self.make_batch_reader = BatchReader

    def __call__(self, subtask: int, parallelism: int) -> IterableReader:
        return IterableReader(range(subtask, NUM_NUMBERS, parallelism))


class BatchReader:
    """Reads batches of a DataFrame as records."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches

    def read(self, _max_records: int) -> list[StreamRecord] | None:
        batch = next(self._batches, None)
        return None if batch is None else [StreamRecord(value) for value in batch.column(0).to_pylist()]

    def close(self) -> None: ...


def fed(context: Context) -> dict[str, Any]:
    """Spark feeds the source, from as many partitions as there are TaskManagers, and from others."""
    found = {}
    for num_partitions in (2, 5):
        results: list[int] = []
        environment = StreamEnvironment(Config(num_buffers=256), 4)
        source = environment.source(Fed(context.session, num_partitions), type=LONG).rebalance()
        source.map(lambda value: value, type=LONG).sink(results.append)
        with SparkRun(environment, context.session) as run:
            run.run()
        found[str(num_partitions)] = is_exact(results)
    return found


def tls(context: Context) -> dict[str, Any]:
    """With keys made for the run, all connections are protected; a stranger to them gets nowhere."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(1)
    environment, results = numbers()
    with SparkRun(environment, context.session, keys=PemPair(*new_pair(now - day, now + day))) as run:
        run.run()
    expired = PemPair(*new_pair(now - 2 * day, now - day))
    environment, _ = numbers()
    said = message_of(SparkRun(environment, context.session, keys=expired).run)
    return {"is_exact": is_exact(results), "expired": said}


def fault(context: Context) -> dict[str, Any]:
    """User code that fails is not tried again, and its story arrives."""
    tries = context.folder / "fault"
    tries.mkdir()

    def fail(value: int) -> int:
        if value == 1234:
            (tries / str(time.monotonic_ns())).touch()
            raise ValueError("no number I like")
        return value

    environment, _ = numbers(fail)
    said = message_of(SparkRun(environment, context.session).run)
    return {"said": said, "tries": len(list(tries.iterdir()))}


def too_few_slots(context: Context) -> dict[str, Any]:
    """A cluster of two slots for a job that needs three."""
    environment, _ = numbers(width=3)
    return {"said": message_of(SparkRun(environment, context.session, 3).run)}


def cancelled(context: Context) -> dict[str, Any]:
    """A run that is cancelled ends, and the next one has the cluster for itself."""
    has_begun = context.folder / "begun"

    def stand(value: int) -> int:
        has_begun.touch()
        threading.Event().wait(TIMEOUT_S)
        return value

    environment, _ = numbers(stand)
    with SparkRun(environment, context.session) as run:
        run.start()
        until(has_begun.exists, TIMEOUT_S)
        run.cancel()
        said = message_of(run.join)
    environment, results = numbers()
    SparkRun(environment, context.session).run()
    return {"said": said, "next_is_exact": is_exact(results)}


def killed(context: Context) -> dict[str, Any]:
    """Executors are killed: in mid-run; and when all tasks have ended, before their rows are here. One try counts."""
    fetch_rows = SparkResults._rows_of
    killed = []

    def kill_first(of: SparkResults, kind: str, most: int) -> Iterator[Any]:
        if not killed:
            executors = [each for each in psutil.Process().children(recursive=True) if _is_executor(each)]
            for each in executors[:1]:
                each.kill()
                killed.append(each.pid)
        return fetch_rows(of, kind, most)

    SparkResults._rows_of = kill_first
    try:
        found = _kill(context, 1)
    finally:
        SparkResults._rows_of = fetch_rows
    return found | {"killed": len(killed) + found["killed"]}


def killed_too_often(context: Context) -> dict[str, Any]:
    """An executor is killed as often as Spark tries; then the next job runs as if nothing had been."""
    found = _kill(context, NUM_TRIES)
    environment, results = numbers()
    SparkRun(environment, context.session).run()
    return found | {"next_is_exact": is_exact(results)}


def _kill(context: Context, num_kills: int) -> dict[str, Any]:
    folder = context.folder / f"kill-{num_kills}"
    folder.mkdir()

    def wait_to_be_killed(value: int) -> int:
        """In each of the first tries, tell in mid-run who we are, and go no further."""
        if value == NUM_NUMBERS // 2:
            number = len(list(folder.iterdir()))
            if number < num_kills:
                (folder / f".{number}").write_text(str(os.getpid()))
                (folder / f".{number}").rename(folder / str(number))
                threading.Event().wait(TIMEOUT_S)
        return value

    environment, results = numbers(wait_to_be_killed)
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(1)
    keys = PemPair(*new_pair(now - day, now + day))
    with SparkRun(environment, context.session, keys=keys) as run:
        run.start()
        for number in range(num_kills):
            until((folder / str(number)).exists, TIMEOUT_S)
            _executor_of(int((folder / str(number)).read_text())).kill()
        said = message_of(run.join)
    return {"said": said, "is_exact": is_exact(results), "num_results": len(results), "killed": num_kills}


# -- checkpoints ---------------------------------------------------------------------------------------------


class Held:
    """Numbers of one subtask, a few at a time, and no more than half of them before an executor was killed.

    Where it begins is told in the folder.
    """

    def __init__(self, folder: Path, subtask: int, parallelism: int) -> None:
        self._folder, self._subtask, self._parallelism = folder, subtask, parallelism
        self._position = 0

    def seek(self, position: int) -> None:
        self._position = position
        (self._folder / f"from-{self._subtask}-{position}").touch()

    def read(self, max_records: int) -> list[StreamRecord] | None:
        end = NUM_NUMBERS // self._parallelism
        if not (self._folder / "killed").exists():
            end //= 2
        elif self._position == end:
            return None
        numbers = range(self._position, min(end, self._position + 40))
        self._position += len(numbers)
        return [StreamRecord(self._subtask + self._parallelism * number) for number in numbers]

    def close(self) -> None: ...


class Totals(KeyedProcessFunction):
    """How many numbers of a key there were: right only if none is lost and none is counted twice."""

    def open(self, context: FunctionContext) -> None:
        self.count = context.value_state("count", LONG)

    def process_element(self, value: int, ctx: ProcessContext) -> list[tuple[int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return [(ctx.current_key, count)]


def kept_job(folder: Path, source: Any) -> tuple[StreamEnvironment, list[Any], list[Any]]:
    """Counts by key, to a plain sink, to one that holds back, and to files."""
    counts: list[Any] = []
    held: list[Any] = []
    environment = StreamEnvironment(Config(num_buffers=256, checkpoint_interval_ms=50, checkpoints_retained=2), 2)
    numbers = environment.source(source, type=LONG, name="numbers")
    counted = numbers.key_by(lambda number: number % 7, LONG).process(Totals(), "totals")
    counted.sink(counts.append, name="counts")
    counted.sink(held.append, name="held", exactly_once=True)
    counted.map(lambda pair: f"{pair[0]} {pair[1]}", type=STRING).sink_to(FileSink(folder / "out"), name="files")
    return environment, counts, held


def kept_counts() -> list[tuple[int, int]]:
    return sorted((key, n + 1) for key in range(7) for n in range(len(range(key, NUM_NUMBERS, 7))))


def resumed(context: Context) -> dict[str, Any]:
    """An executor is killed when two checkpoints are complete: the next try goes on from one of them."""
    folder = context.folder / "resumed"
    folder.mkdir()
    store = FileStore(folder / "store")
    environment, counts, held = kept_job(folder, lambda i, n: Held(folder, i, n))
    own = JobStore(store, "kept")
    with SparkRun(environment, context.session, store=store, job="kept") as run:
        run.start()
        _wait_for_two(run, store, "kept")
        executors = [each for each in psutil.Process().children(recursive=True) if _is_executor(each)]
        executors[0].kill()
        (folder / "killed").touch()
        said = message_of(run.join)
        kept = run.checkpoints
    lines = [line for file in (folder / "out").iterdir() for line in file.read_text().splitlines()]
    begun = sorted(path.name for path in folder.glob("from-*"))
    return {
        "said": said,
        "is_exact": [sorted(each) == kept_counts() for each in (counts, held)],
        "files_are_exact": sorted(lines) == sorted(f"{key} {count}" for key, count in kept_counts()),
        "went_on": kept is not None and kept.restored is not None and kept.restored >= 2 and kept.number >= 2,
        "begun_late": any(not name.endswith("-0") for name in begun),
        "left": [key for key in own.list("") if not key.startswith("leader-")],
    }


def _wait_for_two(run: SparkRun, store: FileStore, job: str) -> None:
    """Until two more checkpoints are complete, or the run has ended without."""
    own = JobStore(store, job)
    before = {*manifest_keys(own.list("chk-"))}
    until(lambda: run.is_done or len({*manifest_keys(own.list("chk-"))} - before) >= 2, TIMEOUT_S)


def _wait_until_still(run: SparkRun, folder: Path) -> None:
    """Until a `HeldBatchReader` on each of the two executors stands still, or the run has ended."""
    until(lambda: run.is_done or len([*folder.glob("still-*")]) == 2, TIMEOUT_S)


class FedAgain:
    """A source whose records are in Spark, held back as `Held` is; with `is_odd` not the same ones a second time."""

    def __init__(self, session: SparkSession, folder: Path, *, is_odd: bool) -> None:
        frame = session.range(0, NUM_NUMBERS, 1, 2).toDF("value")
        self.frame = frame.mapInArrow(partial(_other_rows, folder), "value long") if is_odd else frame
        self.make_batch_reader = partial(HeldBatchReader, folder)

    def __call__(self, subtask: int, parallelism: int) -> IterableReader:
        return IterableReader(range(subtask, NUM_NUMBERS, parallelism))


def _other_rows(folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows at the first reading, and less one at the next."""
    given = folder / f"given-{TaskContext.get().partitionId()}"
    less = int(given.exists())
    given.touch()
    for batch in batches:
        yield pa.record_batch([pa.array([value - less for value in batch.column(0).to_pylist()])], ["value"])


class HeldBatchReader:
    """Reads a batch in small pieces, and stands still after some of them until an executor was killed."""

    def __init__(self, folder: Path, batches: Iterator[Any]) -> None:
        self._folder, self._batches = folder, batches
        self._values: list[int] = []
        self._num_read = 0

    def read(self, _max_records: int) -> list[StreamRecord] | None:
        if self._num_read >= NUM_NUMBERS // 4 and not (self._folder / "killed").exists():
            (self._folder / f"still-{TaskContext.get().partitionId()}").touch()
            return []
        if not self._values:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._values = batch.column(0).to_pylist()
        taken, self._values = self._values[:40], self._values[40:]
        self._num_read += len(taken)
        return [StreamRecord(value) for value in taken]

    def close(self) -> None: ...


def fed_again(context: Context) -> dict[str, Any]:
    """An executor is killed while Spark feeds the source: once the rows are the same again, once they are not."""
    found: dict[str, Any] = {}
    for is_odd in (False, True):
        folder = context.folder / f"fed-{is_odd}"
        folder.mkdir()
        store = FileStore(folder / "store")
        environment, counts, _ = kept_job(folder, FedAgain(context.session, folder, is_odd=is_odd))
        with SparkRun(environment, context.session, store=store) as run:
            run.start()
            _wait_until_still(run, folder)
            _wait_for_two(run, store, "job")
            next(each for each in psutil.Process().children(recursive=True) if _is_executor(each)).kill()
            (folder / "killed").touch()  # not before: else a try may have ended when it is to be lost
            said = message_of(run.join)
            kept = run.checkpoints
        if is_odd:
            found["changed"] = said
        else:
            went_on = kept is not None and kept.restored is not None
            found |= {"said": said, "is_exact": sorted(counts) == kept_counts(), "went_on": went_on}
    return found


class Elsewhere(FileStore):
    """A folder that each process has for itself."""

    def __reduce__(self) -> tuple[Any, ...]:
        return FileStore, (self.folder.with_name("another"),)


def not_shared(context: Context) -> dict[str, Any]:
    """A store that executors do not see, and one that nobody else can."""
    environment, results = numbers()
    elsewhere = SparkRun(environment, context.session, store=Elsewhere(context.folder / "mine"))
    return {
        "elsewhere": message_of(elsewhere.run),
        "in_memory": message_of(lambda: SparkRun(environment, context.session, store=MemoryStore())),
        "num_results": len(results),
    }


def _executor_of(process_id: int) -> psutil.Process:
    """The JVM above a Python that runs a task."""
    return next(each for each in psutil.Process(process_id).parents() if _is_executor(each))


def _is_executor(process: psutil.Process) -> bool:
    try:
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.Error:  # one that was killed before goes just now
        return False


def main(master: str, folder: Path, names: list[str]) -> None:
    settings = {
        "spark_executor_memory": "512m", "spark_stage_maxConsecutiveAttempts": str(NUM_TRIES),
        "spark_python_task_killTimeout": "200ms",
    }  # fmt: skip
    session = spark("tests", master=master, quick=True, **settings)
    context = Context(session, folder)
    for name in names:
        started_s = time.monotonic()
        found = globals()[name](context)
        seconds = round(time.monotonic() - started_s, 1)
        print(json.dumps({"check": name, "seconds": seconds, "found": found}), flush=True)
    jvm = psutil.Process(session.sparkContext._gateway.proc.pid)
    family = [[each.pid, each.create_time()] for each in (jvm, *jvm.children(recursive=True))]
    print(json.dumps({"check": "processes", "found": family}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
