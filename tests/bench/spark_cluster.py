"""One job on Spark's executors, by our channels and by Spark's own shuffle: amounts added up by user, rows/s.

    python -m tests.bench.spark_cluster                               100 000 000 rows, once
    python -m tests.bench.spark_cluster --rows 5000000 --rounds 5     fewer, in turns
    python -m tests.bench.spark_cluster --master spark://HOST:PORT    on a cluster that runs

Spark makes the rows (`zipf` of course/data: 10 000 users, one of them has a ninth) whenever a contender asks for them.

    cluster          `SparkRun`: each executor's rows come as Arrow batches, go by key over the engine's connections,
                     and are added up in batches
    threads          `ThreadedRun` in this process, the same job: Spark writes its rows to Parquet files first
    Spark, every row Spark's shuffle brings each row to its user's partition, as both of ours do, and adds up there
    Spark            the plan that Spark chooses: it adds up before the shuffle, which then moves a row for each user

Contenders take turns; every turn must come to the answer of the first. A first turn with a tenth of the rows warms the
JVMs, and its memory is what the memory with all rows is compared with: what grows is not bounded. Memory is what a
process had resident at most, looked at ten times a second. Processes on other machines are not seen.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psutil

from course.data.dataframe_source import DataFrameSource
from course.data.datasets import DEFAULT_SEED, MOST_ROWS
from course.data.flights_job import DelayTotals
from course.data.generated import zipf
from course.data.master import MasterError, master_of
from course.data.progress_bar import shows_progress
from course.data.session import SparkUnavailable, cancels, spark
from course.jobs.drivers import spark_run
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, STRING, TupleType, Vectorized
from refimpl.task import TumblingWindows
from tests.bench.measure import Figure, WrongAnswerError
from tests.bench.program import run_program
from tests.bench.report import deliver, machine, machine_in_words, number, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CONTENDERS", "Watch", "main", "measure"]

FORMAT = "sluice-bench-cluster/1"
FILE = Path(__file__).resolve().parents[2] / ".cache" / "bench" / "spark_cluster.json"
MASTER = "local-cluster[2,1,1024]"
NUM_TASK_MANAGERS = 2
CONFIG = Config(segment_size_bytes=256 * 1024, num_buffers=128)
BATCH_ROWS = 16_384
ALL_TIME_MS = 1 << 40
SECONDS_BETWEEN_LOOKS = 0.1
MIB = 1 << 20

Answer = dict[str, tuple[int, int]]
"""How many rows a user has, and the sum of their amounts."""


# -- contenders --------------------------------------------------------------------------------------


def rows_of(session: SparkSession, num_rows: int) -> DataFrame:
    """So many rows of `zipf`, in a partition for each TaskManager; nobody has made them yet."""
    ids = session.range(0, num_rows, 1, NUM_TASK_MANAGERS)
    return zipf(ids, DEFAULT_SEED).select("event_time_ms", "user", "amount_cents")


def job(frame: DataFrame, results: list[Any]) -> tuple[StreamEnvironment, DataFrameSource]:
    """Rows and amounts by user, in one window that is as long as all of time."""
    environment = StreamEnvironment(CONFIG, NUM_TASK_MANAGERS)
    source = DataFrameSource(frame, timestamps="event_time_ms", batch_size=BATCH_ROWS)
    amount = Vectorized(
        lambda row: (row["user"], row["amount_cents"]), lambda batch: (batch["user"], batch["amount_cents"])
    )
    payments = environment.source(source, name="payments").map(amount, name="amount", type=TupleType(STRING, LONG))
    totals = payments.key_by(0).window(TumblingWindows(ALL_TIME_MS)).aggregate(DelayTotals(), name="totals")
    totals.sink(results.append, name="results")
    return environment, source


def on_the_cluster(frame: DataFrame) -> Answer:
    results: list[Any] = []
    environment, _ = job(frame, results)
    with spark_run(environment, frame.sparkSession, NUM_TASK_MANAGERS) as run:
        run.run()
    return answer_of(results)


def on_threads(frame: DataFrame) -> Answer:
    results: list[Any] = []
    environment, source = job(frame, results)
    with source:
        ThreadedRun(environment).run()
    return answer_of(results)


def answer_of(results: Sequence[Any]) -> Answer:
    return {user: totals for user, _start, _end, totals in results}


def by_every_row(frame: DataFrame) -> Answer:
    return by_spark(frame.repartition(NUM_TASK_MANAGERS, "user"))


def by_spark(frame: DataFrame) -> Answer:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    totals = frame.groupBy("user").agg(F.count("*"), F.sum("amount_cents"))
    return {user: (count, total) for user, count, total in totals.collect()}


CONTENDERS: dict[str, Callable[[DataFrame], Answer]] = {
    "cluster": on_the_cluster, "threads": on_threads, "Spark, every row": by_every_row, "Spark": by_spark,
}  # fmt: skip


# -- memory and work of all processes ----------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    """One process: who it is, and its CPU seconds when it was first seen and last."""

    process: psutil.Process
    role: str
    first_cpu_s: float
    last_cpu_s: float = 0.0


@dataclass(slots=True)
class Watch:
    """Looks at this process, the JVM, the executors of its session, and their Pythons, while a `with` block runs.

    By role: `peaks` in bytes, and what they worked in seconds, `cpu_s`.
    """

    session: SparkSession
    peaks: dict[str, int] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    _seen: dict[int, _Seen | None] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _started_s: float = 0.0

    def __enter__(self) -> Self:
        self._started_s = time.time()
        self._look()
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._is_over.set()
        assert self._thread is not None, "a watch that ends has begun"
        self._thread.join()
        self._look()
        for seen in filter(None, self._seen.values()):
            self.cpu_s[seen.role] = self.cpu_s.get(seen.role, 0.0) + seen.last_cpu_s - seen.first_cpu_s

    def _work(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        for process_id in psutil.pids():
            if process_id not in self._seen:
                self._seen[process_id] = self._recognised(process_id)
        for seen in filter(None, self._seen.values()):
            with suppress(psutil.Error), seen.process.oneshot():
                seen.last_cpu_s = _cpu_s(seen.process)
                self.peaks[seen.role] = max(self.peaks.get(seen.role, 0), seen.process.memory_info().rss)

    def _recognised(self, process_id: int) -> _Seen | None:
        """A process that is one of ours."""
        with suppress(psutil.Error):
            process = psutil.Process(process_id)
            if (role := self._role_of(process)) is not None:
                is_new = process.create_time() >= self._started_s
                return _Seen(process, role, 0.0 if is_new else _cpu_s(process))
        return None

    def _role_of(self, process: psutil.Process) -> str | None:
        if process.pid == os.getpid():
            return "driver, Python"
        if process.pid == self.session.sparkContext._gateway.proc.pid:
            return "driver, JVM"
        words = process.cmdline()
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            if words[words.index("--app-id") + 1] == self.session.sparkContext.applicationId:
                return f"executor {words[words.index('--executor-id') + 1]}, JVM"
        elif "pyspark.daemon" in words and (parent := process.parent()) is not None:
            mother = self._seen.get(parent.pid) or self._recognised(parent.pid)
            if mother is not None:  # the first Python of an executor only starts the others
                return f"{mother.role.partition(',')[0]}, Python {'daemon' if 'JVM' in mother.role else 'worker'}"
        return None


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


# -- turns -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """One contender, once."""

    wall_s: float
    peaks: Mapping[str, int]
    cpu_s: Mapping[str, float]


def measure(session: SparkSession, names: Sequence[str], num_rows: int, rounds: int) -> list[dict[str, Any]]:
    """Let the contenders take turns.

    Raises:
        WrongAnswerError: one did not come to the answer of the first.
    """
    few = max(1, num_rows // 10)
    first, turns = _round(session, names, few, "warming up"), []
    for index in range(rounds):
        order = names[:: -1 if index % 2 else 1]
        turns.append(_round(session, order, num_rows, f"round {index + 1} of {rounds}"))
    found = []
    for name in names:
        mine = [each[name] for each in turns]
        others = {other: [each[other].wall_s for each in turns] for other in names if other != name}
        found.append(
            {
                "name": name,
                "rows_per_s": spread(Figure.of([num_rows / turn.wall_s for turn in mine])),
                "cpu_ns_per_row": spread(Figure.of([sum(turn.cpu_s.values()) * 1e9 / num_rows for turn in mine])),
                "times": {
                    other: spread(Figure.of([theirs / turn.wall_s for turn, theirs in zip(mine, walls, strict=True)]))
                    for other, walls in others.items()
                },
                "cpu_s": {role: round(seconds, 2) for role, seconds in sorted(mine[-1].cpu_s.items())},
                "peak_mib": _peaks(mine),
                "peak_mib_with_a_tenth": _peaks([first[name]]),
            }
        )
    return found


def _peaks(turns: Sequence[Turn]) -> dict[str, float]:
    roles = sorted({role for turn in turns for role in turn.peaks})
    return {role: round(max(turn.peaks.get(role, 0) for turn in turns) / MIB, 1) for role in roles}


def _round(session: SparkSession, names: Sequence[str], num_rows: int, which: str) -> dict[str, Turn]:
    found, want = {}, None
    for name in names:
        with cancels(session), shows_progress(session, f"{which}, {name}"), Watch(session) as watch:
            started_s = time.perf_counter()
            got = CONTENDERS[name](rows_of(session, num_rows))
            wall_s = time.perf_counter() - started_s
        if (count := sum(rows for rows, _total in got.values())) != num_rows:
            raise WrongAnswerError(f"{name}: {count} of {num_rows} rows came")
        want = want or got
        if got != want:
            user = min(user for user in got.keys() | want.keys() if got.get(user) != want.get(user))
            raise WrongAnswerError(f"{name}: {user} has {got.get(user)}, with {names[0]} {want.get(user)}")
        found[name] = Turn(wall_s, watch.peaks, watch.cpu_s)
    return found


# -- in words ----------------------------------------------------------------------------------------


def as_table(found: Sequence[Mapping[str, Any]]) -> str:
    """How fast, and below it how much memory."""
    names = [row["name"] for row in found]
    lines = [["", "rows/s", "CPU ns/row", *(f"× {name}" for name in names[1:])]]
    for row in found:
        ratios = [number(row["times"][name]["median"]) if name in row["times"] else "" for name in names[1:]]
        speed, work = row["rows_per_s"], row["cpu_ns_per_row"]["median"]
        lines.append([row["name"], f"{speed['median'] / 1e6:.2f} M", number(work), *ratios])
    roles = sorted({role for row in found for role in row["peak_mib"]})
    memory = [["most resident, MiB", *(f"{name} (a tenth)" for name in names)]]
    memory += [[role, *(_mib(row, role) for row in found)] for role in roles]
    work_of = [["CPU s", *names], *([role, *(f"{row['cpu_s'].get(role, 0):.1f}" for row in found)] for role in roles)]
    return "\n\n".join(map(_aligned, (lines, memory, work_of)))


def _mib(row: Mapping[str, Any], role: str) -> str:
    with_all, with_a_tenth = (row[key].get(role) for key in ("peak_mib", "peak_mib_with_a_tenth"))
    return f"{with_all or 0:.0f} ({with_a_tenth or 0:.0f})"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark_cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [*CONTENDERS]
    parser.add_argument("--rows", type=int, default=MOST_ROWS, metavar="N", help="rows of a turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="turns of each contender (%(default)s)")
    parser.add_argument("--master", default=MASTER, metavar="URL", help="Spark's master, with 2 slots (%(default)s)")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"some of {'; '.join(names)}")
    parser.add_argument("--json", metavar="FILE", help=f"write it there, not to {FILE.name}; - prints it instead")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or chosen.rows < 1:
        parser.error("at least 1 round of 1 row")
    try:
        master_of(chosen.master)
        session = spark("bench", master=chosen.master, spark_executor_memory="1g")
    except (MasterError, SparkUnavailable) as error:
        print(error, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    found = measure(
        session, [name for name in names if not chosen.only or name in chosen.only], chosen.rows, chosen.rounds
    )
    where = machine(load)
    where["versions"]["PySpark"] = version("pyspark")
    answer = {
        "format": FORMAT, "rows": chosen.rows, "rounds": chosen.rounds, "master": session.sparkContext.master,
        "segment_size_bytes": CONFIG.segment_size_bytes, "batch_rows": BATCH_ROWS, "machine": where,
        "contenders": found,
    }  # fmt: skip
    file = deliver(answer, chosen.json, FILE)
    if file is not None:
        said = f"{chosen.rows:,} rows, {chosen.rounds} round{'s' * (chosen.rounds > 1)}, on {answer['master']}"
        print(said, as_table(found), machine_in_words(where), f"All of it: {file}", sep="\n\n")
    return 0


if __name__ == "__main__":
    run_program(main)
