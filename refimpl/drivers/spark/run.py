"""A job on a Spark cluster: one TaskManager in each task of a barrier stage.

Spark finds the machines, starts the tasks there all at once or not at all, and starts all of them anew if
one is lost. The data path is ours: what one task sends another goes over the engine's own connections, from
executor to executor, with credits. What sinks get comes back as rows.

Flink:   none; XGBoost and PyTorch run their own protocols in barrier tasks in the same way
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

from refimpl.drivers.control import BackgroundRun
from refimpl.drivers.regions import refuse_regions
from refimpl.drivers.spark.job_master import Where
from refimpl.drivers.spark.results import SparkResults
from refimpl.drivers.spark.rows import TraceTable
from refimpl.drivers.spark.stage import BarrierStage
from refimpl.drivers.spark.try_checkpoints import TrySummary
from refimpl.drivers.transport.tls import PemPair
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, failure_of, is_engines
from refimpl.job.commands import Command
from refimpl.job.environment import StreamEnvironment
from refimpl.job.snapshots import JobSnapshot
from refimpl.laws.records import RecordCounts
from refimpl.state.store import SnapshotStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkRun"]

_TICK_S = 0.2
_OUT_OF_REACH = "its TaskManagers run inside Spark's tasks, which no message reaches; use a ProcessRun for that"


class SparkRun(BackgroundRun):
    """Runs a job on the cluster of `session`, on `num_task_managers` of its slots.

    `run()` starts it and waits; or `start()` and `join()`. Leaving a `with` block cancels the job,
    and lets go of the results that Spark keeps. Functions of sinks are called here, when the job has
    succeeded, with the values of each subtask in order. `results` has the same as a DataFrame, for more of
    them than fit here. `counts` are then those of each TaskManager.

    A source whose reader factory is a `SparkSource` is fed by Spark. Its DataFrame has a partition for each
    TaskManager, or is repartitioned.

    `keys` protect the connections; without them tasks can only meet on one machine. They are made for one run:
    they travel with its code, through Spark. That code is the engine, what the job refers to and has not been
    installed, and what that imports; `packages` are more of it, for executors that may not have them.

    With `trace_table` each TaskManager has a trace, and `trace` is all that they noted, as rows of such tables.

    With a `store`, which all executors and this process share, checkpoints are kept there under the name `job`. A
    stage that Spark tries again goes on from the newest, and so does another run; without one each try begins anew.
    What sinks had got by then is in the checkpoint too: they get each value once, when the job has succeeded. What
    another run has pickled is read with `trust_pickle` only. `checkpoints` is what came of them. A DataFrame that feeds
    a source must give the same rows in the same order whenever it is read: one that does not is refused.

    Raises (constructor):
        LocalUsageError: something in the job belongs to this process, or Spark is to feed two sources, or the store is
            in the memory of this process.
        StoreError, LeadershipLostError: nothing can be put into the store, or somebody else has just begun there.
    Raises (run, join):
        SluiceError: the job failed of its own fault, at the first try; or it cannot go on from what is in the store.
        RemoteTransportError: a TaskManager was lost as often as Spark tries again.
        InsufficientSlotsError: the cluster has fewer slots than the job has TaskManagers.
        KeyboardInterrupt: passed on, after the job has been cancelled.
    """

    refusals: ClassVar = dict.fromkeys(get_args(Command), _OUT_OF_REACH)

    def __init__(
        self,
        environment: StreamEnvironment,
        session: SparkSession,
        num_task_managers: int = 2,
        keys: PemPair | None = None,
        packages: Sequence[str] = (),
        trace_table: TraceTable | None = None,
        store: SnapshotStore | None = None,
        job: str = "job",
        trust_pickle: bool = False,
    ) -> None:
        # What cannot be is refused here.
        refuse_regions(environment.execution_graph(num_task_managers), "Spark starts all tasks of a job at one time")
        super().__init__()
        self._where = None if store is None else Where.of(store, job, secrets.token_hex(8), trust_pickle)
        self.is_done = False  # also if it has failed
        self.error: BaseException | None = None
        self.counts: list[RecordCounts] = []
        given = (num_task_managers, keys, packages, trace_table, self._where)
        self._stage = BarrierStage(environment, session, *given)
        self._trace_table = trace_table
        self._nodes = environment.graph.nodes
        self._results: SparkResults | None = None
        self._thread: threading.Thread | None = None
        self._is_cancelled = False

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the job; returns at once."""
        from pyspark import InheritableThread

        self._stopwatch.start()
        try:
            self._thread = InheritableThread(target=self._work, session=self._stage.session)
            self._thread.daemon = True
            self._thread.start()
        except BaseException as error:  # the system refuses a thread
            self._end(error)
            raise
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._wait_until(lambda: self.is_done, timeout_s):
            return False
        if self.error is not None:
            raise self.error
        return True

    def cancel(self) -> None:
        """End the job and wait until Spark has. Does nothing after the end."""
        if self._thread is not None and not self.is_done:
            self._is_cancelled = True
            while not self.is_done:  # a job that was about to start is cancelled when it has
                self._stage.cancel()
                with self._changed:
                    self._changed.wait_for(lambda: self.is_done, _TICK_S)

    def close(self) -> None:
        """Cancel the job if it still runs, and let go of the results."""
        from py4j.protocol import Py4JError

        self.cancel()
        results, self._results = self._results, None
        if results is not None:
            with suppress(Py4JError, OSError, AttributeError):  # the session may have ended before
                results.close()

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> TrySummary | None:
        """What came of the checkpoints of the try that succeeded; `None` without a store, or before."""
        return None if self._results is None else self._results.summary

    def snapshot(self) -> JobSnapshot:
        """None: Spark shows nothing of a task that runs.

        Raises:
            LocalUsageError: always; says where else to look.
        """
        raise LocalUsageError(
            f"SparkRun has no snapshot: {_OUT_OF_REACH}. Of this run there are `counts` afterwards and, with a "
            f"trace_table, `trace()`"
        )

    def _command(self, command: Command) -> None:
        raise AssertionError(f"{command} is refused before it comes here")

    def results(self, operator_name: str, schema: str) -> DataFrame:
        """The values that went into the sink of that name, as a DataFrame: tuples as rows of `schema`.

        It can be read until the run is closed.

        Raises:
            LocalUsageError: there is no such sink, or no results: the job has not ended well.
        """
        sinks = [number for number, node in self._nodes.items() if node.sink is not None or node.held_sink is not None]
        named = [number for number in sinks if self._nodes[number].name == operator_name]
        if not named:
            raise LocalUsageError(f"no sink is called {operator_name!r}")
        return self._after_all().frame(self._stage.session, named, schema)

    def trace(self) -> DataFrame:
        """The traces of all TaskManagers, with the columns of `trace_table`. They can be read until the run is closed.

        Raises:
            LocalUsageError: the run has no trace, or the job has not ended well.
        """
        from refimpl.column_trace import ColumnTrace

        return self._after_all().trace(self._stage.session, self._traced_as()(ColumnTrace(1).drain(), 0, 0))

    def trace_tables(self) -> Iterator[pa.Table]:
        """The traces as tables, those of each TaskManager in order, a few of them here at a time."""
        self._traced_as()
        return self._after_all().trace_tables()

    def _traced_as(self) -> TraceTable:
        if self._trace_table is None:
            raise LocalUsageError("this run has no trace; give it a trace_table")
        return self._trace_table

    def _after_all(self) -> SparkResults:
        if self._results is None or not self.is_done or self.error is not None:
            raise LocalUsageError("there are no results: the job has not run, not succeeded, or the run is closed")
        return self._results

    # -- the work --------------------------------------------------------------------------------------

    def _work(self) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            self._execute()
        except (PySparkException, Py4JError, OSError) as error:
            explained = self._stage.explain(error)
            self._end(_cancelled() if self._is_cancelled else explained)
        except BaseException as error:  # noqa: BLE001 - raised by `join`
            self._end(error)
        else:
            self._end()

    def _end(self, error: BaseException | None = None) -> None:
        self._stopwatch.stop()
        with self._changed:
            self.error = error
            self.is_done = True
            self._changed.notify_all()

    def _execute(self) -> None:
        """Run the stage, bring its results here, and call the functions of the sinks."""
        self._results = self._stage.run(lambda: self._is_cancelled)
        with TemporaryFile(prefix="sluice-results-") as file:
            self.counts = self._results.fetch(file)
            for node_id, subtask, value in self._results.values(file):
                self._check_that_it_goes_on()
                self._deliver(node_id, subtask, value)
        if self._where is not None:
            self._where.remove()
            for node in self._nodes.values():
                if node.on_job_finished is not None:
                    node.on_job_finished()

    def _deliver(self, node_id: int, subtask: int, value: Any) -> None:
        node = self._nodes[node_id]
        function = node.sink if node.held_sink is None else node.held_sink.function
        assert function is not None, f"{node.name} sent results and is no sink"
        try:
            function(value)
        except USER_CODE_RAISES as error:
            if is_engines(error):
                raise
            raise failure_of(node.name, subtask, value, error) from error

    def _check_that_it_goes_on(self) -> None:
        if self._is_cancelled:
            raise _cancelled()


def _cancelled() -> LocalUsageError:
    return LocalUsageError("the run was cancelled")
