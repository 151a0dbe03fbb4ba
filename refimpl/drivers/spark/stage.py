"""The barrier stage of a job: one task of Spark for each TaskManager, all at the same time.

What sinks get comes back as rows, through a shuffle: only a stage that is followed by one is tried again, and the rows
of a try that failed are gone with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from refimpl.drivers.processes.messages import JobOrder, pack
from refimpl.drivers.spark.barrier_task import Order, run_task_manager
from refimpl.drivers.spark.executors import explain_failure, needed_by, ship, wait_for_slots
from refimpl.drivers.spark.job_master import Where
from refimpl.drivers.spark.results import SparkResults
from refimpl.drivers.spark.rows import ROW_SCHEMA, TraceTable
from refimpl.drivers.transport.tls import PemPair
from refimpl.errors import LocalUsageError, SluiceError
from refimpl.job.environment import StreamEnvironment
from refimpl.job.stream_graph import StreamNode
from refimpl.task.source import SourceReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BarrierStage", "SparkSource"]

_TOKEN_BYTES = 16


@runtime_checkable
class SparkSource(Protocol):
    """A reader factory whose records are in Spark: subtasks on TaskManager i share partition i of `frame`.

    `make_batch_reader` makes the reader of one subtask, from batches that it shares with the others of its
    TaskManager. It goes to the executors, where the DataFrame cannot: so it is no method of the factory.
    """

    make_batch_reader: Callable[[Iterator[pa.RecordBatch]], SourceReader]

    @property
    def frame(self) -> DataFrame: ...


class BarrierStage:
    """The stage in which the job runs, on `num_task_managers` slots of the cluster of `session`.

    `packages` and `keys` are as in `SparkRun`. With `trace_table` each TaskManager has a trace, with `where` there are
    checkpoints.

    Raises:
        LocalUsageError: something in the job belongs to this process, or Spark is to feed two sources.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        session: SparkSession,
        num_task_managers: int,
        keys: PemPair | None,
        packages: Sequence[str],
        trace_table: TraceTable | None,
        where: Where | None,
    ) -> None:
        self.session = session
        self._where = where
        self._num_task_managers = num_task_managers
        self._packages = packages
        self._num_tries = "4"  # Spark's own default; asked for when it runs
        job = JobOrder.of(environment)
        sinks = [*job.sinks, *job.held]  # whatever is held back leaves Spark at the end only
        fed, self._source = _fed_by_spark(environment.graph.nodes)
        if fed is not None:
            nodes = job.environment.graph.nodes
            nodes[fed] = replace(nodes[fed], make_reader=_no_reader)
        make_reader = None if self._source is None else self._source.make_batch_reader
        run_id, token = secrets.token_bytes(8), secrets.token_bytes(_TOKEN_BYTES)
        given = (num_task_managers, run_id, token, keys, fed, make_reader, trace_table, where)
        order = Order(job.environment, sinks, *given)
        self._order = pack(order)
        self._group = f"sluice-{run_id.hex()}"

    def run(self, is_cancelled: Callable[[], bool]) -> SparkResults:
        """Give the executors our code, wait for slots, and plan the stage; its rows are made when they are fetched.

        For the thread that fetches them, too: it belongs to this stage's group of Spark's jobs from now on.

        Raises:
            InsufficientSlotsError: the cluster has fewer slots than the job has TaskManagers.
            LocalUsageError: it was cancelled meanwhile.
        """
        session = self.session
        session.sparkContext.setJobGroup(self._group, "sluice", interruptOnCancel=True)
        self._num_tries = session.conf.get("spark.stage.maxConsecutiveAttempts", "4") or "4"
        ship(session, needed_by(self._order, self._packages))
        wait_for_slots(session, self._num_task_managers, is_cancelled)
        if is_cancelled():
            raise LocalUsageError("the run was cancelled")
        task = partial(run_task_manager, self._order, self._where is not None)
        return SparkResults(self._input().mapInArrow(task, ROW_SCHEMA, barrier=True))

    def cancel(self) -> None:
        """End its tasks, if Spark has started them; if Spark has failed, they end too."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            self.session.sparkContext.cancelJobGroup(self._group)

    def explain(self, error: Exception) -> SluiceError:
        """The meaning of an error of Spark's in this stage."""
        return explain_failure(error, self._num_tries)

    def _input(self) -> DataFrame:
        """One partition for each TaskManager."""
        number = self._num_task_managers
        if self._source is None:
            return self.session.range(0, number, 1, number)
        frame = self._source.frame
        if frame.rdd.getNumPartitions() == number:
            return frame
        dealt = frame.repartition(number)
        # What comes over a shuffle comes in any order, and another try is to read the same.
        return dealt if self._where is None else dealt.sortWithinPartitions(*frame.columns)


def _fed_by_spark(nodes: dict[int, StreamNode]) -> tuple[int | None, SparkSource | None]:
    """The number and the reader factory of the source that Spark feeds, if there is one.

    Raises:
        LocalUsageError: there are two.
    """
    readers: dict[int, object] = {number: node.make_reader for number, node in nodes.items()}
    fed = [(number, reader) for number, reader in readers.items() if isinstance(reader, SparkSource)]
    if len(fed) > 1:
        names = [nodes[number].name for number, _ in fed]
        raise LocalUsageError(f"Spark feeds one source of a job, not {len(fed)}: {', '.join(names)}")
    return fed[0] if fed else (None, None)


def _no_reader(_subtask: int, _parallelism: int) -> Any:
    raise AssertionError("the task puts the reader of its own input here")
