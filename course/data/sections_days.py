"""Data section of lesson 17: what the hourly job comes to that is ended in the middle and goes on, on Spark.

`ask_…` is a Spark query and knows nothing of the engine, the other one runs the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course.data.bad_days import SEED, committed_in, drawn, hourly, in_words, lived
from course.data.comparison import rows_of
from course.data.flights import ARRIVAL_ORDER, FLIGHT_COLUMNS
from course.data.flights_job import NUM_KEY_GROUPS
from course.data.master import master_of
from course.data.oracle import HOUR_MS
from course.data.scratch import scratch
from refimpl.config import Config
from refimpl.drivers import SparkRun
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink
from refimpl.job import StreamEnvironment
from refimpl.records import StreamRecord
from refimpl.state import JobStore, manifest_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["GOES_ON", "ask_hours", "end_and_go_on"]

GOES_ON = "goes on from a checkpoint"
_JOB = "bad-day"
_INTERVAL_MS = 50
_LOOK_S = 0.05
_PACKAGES = ("course", "refimpl")


def ask_hours(flights: DataFrame) -> dict[str, Any]:
    """For each airport: hours with a departure, departures, and the sum of their delays in minutes."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    hour = F.expr(f"event_time_ms div {HOUR_MS}")
    departed = flights.where("dep_delay_minutes IS NOT NULL").groupBy("origin")
    counts = departed.agg(F.count_distinct(hour), F.count("*"), F.sum("dep_delay_minutes")).orderBy("origin")
    found = {str(origin): (int(hours), int(num), int(total)) for origin, hours, num, total in rows_of(counts)}
    return _table(found) | {GOES_ON: "yes"}


def end_and_go_on(flights: DataFrame) -> dict[str, Any]:
    """The same from the files of the job: ended in the middle on Spark, and begun again from its newest checkpoint.

    Where executors are on other machines, which do not see a folder of this one, it is the bad day of the lesson.
    """
    rows = [row.asDict() for row in flights.orderBy(*ARRIVAL_ORDER).select(*FLIGHT_COLUMNS).collect()]
    session = flights.sparkSession
    master = session.sparkContext.master
    if master is not None and master_of(master).is_here:
        lines, goes_on = _on_spark(session, rows)
    else:
        day = lived(drawn(SEED), flights=rows)
        lines, goes_on = day.committed, day.checkpoints.counts.num_restored > 0
    return _table(_by_origin(lines)) | {GOES_ON: "yes" if goes_on else "no"}


def _table(found: Mapping[str, tuple[int, int, int]]) -> dict[str, Any]:
    names = ("hours", "flights", "minutes")
    return {
        f"{origin}, {name}": value
        for origin, values in sorted(found.items())
        for name, value in zip(names, values, strict=True)
    }


def _by_origin(lines: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    hours, flights, minutes = Counter[str](), Counter[str](), Counter[str]()
    for line in lines:
        origin, _hour, count, total = line.split()
        hours[origin] += 1
        flights[origin] += int(count)
        minutes[origin] += int(total)
    return {origin: (hours[origin], flights[origin], minutes[origin]) for origin in hours}


# -- on Spark ------------------------------------------------------------------------------------------------


class _HeldReader:
    """Each n-th flight, and no more than half of them before there is a file `go_on`; it can begin anywhere."""

    def __init__(self, flights: Sequence[Mapping[str, Any]], go_on: Path, subtask: int, of: int) -> None:
        self._flights, self._go_on, self._position = flights[subtask::of], go_on, 0

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, max_records: int) -> list[StreamRecord] | None:
        end = len(self._flights)
        if not self._go_on.exists():
            end //= 2
        elif self._position == end:
            return None
        flights = self._flights[self._position : min(end, self._position + max_records)]
        self._position += len(flights)
        return [StreamRecord(dict(flight)) for flight in flights]

    def close(self) -> None: ...


def _on_spark(session: SparkSession, rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], bool]:
    """The committed lines of two runs in one store: the first is ended when it has a checkpoint, the second ends."""
    width = max(1, min(2, session.sparkContext.defaultParallelism))
    with scratch("bad-day-") as folder:
        store, go_on = FileStore(folder / "store"), folder / "go_on"

        def run() -> SparkRun:
            environment = StreamEnvironment(
                Config(checkpoint_interval_ms=_INTERVAL_MS, max_parallelism=NUM_KEY_GROUPS), width
            )
            lines = hourly(environment, partial(_HeldReader, rows, go_on)).map(in_words, name="line")
            lines.sink_to(FileSink(folder / "out"), name="files")
            return SparkRun(environment, session, width, None, _PACKAGES, store=store, job=_JOB)

        with run() as first:
            first.start()
            own = JobStore(store, _JOB)
            while not manifest_keys(own.list("chk-")) and not first.join(_LOOK_S):
                pass
        go_on.touch()
        with run() as second:
            second.run()
            kept = second.checkpoints
        return committed_in(folder / "out"), kept is not None and kept.restored is not None
