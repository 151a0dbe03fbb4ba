"""The attempts of one region of a job on one TaskManager, as real tasks: made, run and ended on a thread of theirs.

    gathering  the job is to come, and all attempts that belong here
    made       each has its state; where their data is to be had is said
    running    all TaskManagers of the region have made theirs
    over       they have finished, failed or were stopped; each is reported, and nothing is left of them

An attempt is said to have finished when everybody has read what it has produced: then its slot is free.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import NotifyTask, SubmittedTask, TaskState, TriggerTask
from refimpl.cluster.task_units import UnitId, addresses_of, graph_of
from refimpl.drivers.cluster.tasks.job_place import JobPlace
from refimpl.drivers.cluster.tasks.words import DataAddress, Listening, Word
from refimpl.drivers.cluster_tasks import restore_point_of
from refimpl.drivers.kept_partitions import missing_reads
from refimpl.drivers.processes.attempt_checkpoints import AttemptCheckpoints, check_shared
from refimpl.drivers.processes.messages import Ended, Saved, TaskSaid, TellTask, Verdict, unpack
from refimpl.drivers.recovery import barrier_of
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.errors import RemoteTransportError, SluiceError, described
from refimpl.invariants import check_nothing_left
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import Place
from refimpl.job.task_factory import Snapshots
from refimpl.records.events import CheckpointBarrier
from refimpl.task.checkpoint_reports import Report

__all__ = ["DeployedTasks", "Reports"]

_SECONDS_TO_PUT = 5.0
_SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True, slots=True)
class Reports:
    """Who hears of the attempts, on any thread: what becomes of each, what it says of checkpoints, and all else.

    With a failure come the attempts whose blocking results it could not reach.
    """

    is_now: Callable[[ExecutionId, TaskState, str, tuple[ExecutionId, ...]], None]
    task_says: Callable[[ExecutionId, Report], None]
    say: Callable[[Word], None]


@dataclass(frozen=True, slots=True)
class _Job:
    data: bytes


@dataclass(frozen=True, slots=True)
class _Start:
    addresses: Mapping[str, DataAddress]


@dataclass(frozen=True, slots=True)
class _Stop:
    why: str


class _Look:
    """There is something new."""


class _StoppedError(Exception):
    """The attempts are to end, and not by themselves."""


class _NotHereError(Exception):
    """What these attempts have left is not here, and should be read."""

    def __init__(self, executions: tuple[ExecutionId, ...]) -> None:
        super().__init__(f"what {', '.join(map(str, executions))} left is not here")
        self.executions = executions


class DeployedTasks:
    """The attempts of one region of a job on the TaskManager at `address`; they come with `add`.

    Flink:   Task, TaskExecutor.submitTask (runtime.taskmanager, runtime.taskexecutor), 1.11.4
    Differs: the attempts of a region that are on one TaskManager live and die together.
    """

    def __init__(self, address: str, name: str, place: JobPlace, reports: Reports) -> None:
        self._address = address
        self._place = place
        self._reports = reports
        self._commands: queue.SimpleQueue[_Job | _Start | _Stop | _Look] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._tasks: list[SubmittedTask] = []
        self._executions: dict[str, ExecutionId] = {}  # by the names of the tasks, when these are made
        self._threads: TaskManagerThreads | None = None
        self._checkpoints: AttemptCheckpoints | None = None  # none with blocking exchanges
        self._is_over = self._have_said_all = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # -- what the loop calls -----------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of them."""
        return self._is_over

    def has(self, execution: ExecutionId) -> bool:
        """Whether this is one of them."""
        return any(each.execution == execution for each in self._tasks)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def add(self, task: SubmittedTask) -> bool:
        """One of the attempts; false if they are over."""
        with self._lock:
            if not self._is_over:
                self._tasks.append(task)
                self._commands.put(_Look())
            return not self._is_over

    def job_is(self, data: bytes) -> None:
        """The job they are of, pickled."""
        self._commands.put(_Job(data))

    def connect(self, addresses: Mapping[str, DataAddress]) -> None:
        """Let them run."""
        self._commands.put(_Start(addresses))

    def tell(self, message: TriggerTask | NotifyTask) -> None:
        """Pass on to an attempt what is said of checkpoints; one that does not run does not hear it."""
        checkpoints, threads = self._checkpoints, self._threads
        if checkpoints is None or threads is None:
            return
        graph = threads.deployment.graph
        name = next((name for name, each in self._executions.items() if each == message.execution), None)
        if name is None:
            return
        if isinstance(message, NotifyTask):
            what: CheckpointBarrier | Verdict = Verdict(message.checkpoint_id, message.is_complete)
        else:
            config = graph.job.config
            what = barrier_of(message.checkpoint_id, message.timestamp_ms, message.savepoint, config)
        checkpoints.tell(TellTask(graph.generation, name, what))

    def stop(self, why: str) -> None:
        """End them. Returns at once; safe to repeat."""
        self._commands.put(_Stop(why))

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left of them; whether that is so."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        state, why = TaskState.FINISHED, ""
        missing: tuple[ExecutionId, ...] = ()
        try:
            self._make(self._gathered())
            self._let_run()
        except _StoppedError as stopped:
            state, why = TaskState.CANCELED, str(stopped)
        except _NotHereError as error:
            state, why, missing = TaskState.FAILED, str(error), error.executions
        except BaseException as error:  # noqa: BLE001 - reported to the JobMaster
            state, why, missing = TaskState.FAILED, _why(error), self._missing(error)
        try:
            self._close()
        except BaseException as error:  # noqa: BLE001 - the same
            state, why = TaskState.FAILED, why or _why(error)
        with self._lock:
            self._is_over = True
        for task in self._tasks:
            self._reports.is_now(task.execution, state, why, missing)

    def _next(self) -> _Job | _Start | _Look:
        """The next command; waits for it.

        Raises:
            _StoppedError: they are to end.
            BaseException: a task has failed.
        """
        command = self._commands.get()
        if isinstance(command, _Stop):
            raise _StoppedError(command.why)
        if self._threads is not None and self._threads.error is not None:
            raise self._threads.error
        return command

    def _gathered(self) -> ExecutionGraph:
        """Wait for the job, and for all attempts that belong here."""
        data: bytes | None = None
        graph: ExecutionGraph | None = None
        awaited: set[Place] = set()
        while True:
            match self._next():
                case _Job(data):
                    pass
            if data is None or not self._tasks:
                continue
            if graph is None:
                first = self._tasks[0]
                graph = graph_of(unpack(data).execution_graph(1).job, first)
                awaited = self._own_places(graph, first)
            if awaited <= {task.execution.place for task in self._tasks}:
                return graph

    def _own_places(self, graph: ExecutionGraph, task: SubmittedTask) -> set[Place]:
        """The subtasks of a task's region that are for this TaskManager."""
        number, region = self._number_in(task), {each.place for each in task.together}
        here = {(each.vertex.id, each.subtask) for each in graph.vertices if each.task_manager == number}
        return here & region

    def _number_in(self, task: SubmittedTask) -> int:
        return addresses_of(task).index(self._address)

    def _make(self, graph: ExecutionGraph) -> None:
        """Make the tasks, with the states they go on from."""
        first, workplace = self._tasks[0], self._place.workplace
        executions = {task.execution.place: task.execution for task in self._tasks}
        here = [each for each in graph.vertices if (each.vertex.id, each.subtask) in executions]
        self._executions = {each.name: executions[each.vertex.id, each.subtask] for each in here}
        saved: Saved | None = None
        snapshots: Snapshots | None = None
        if not graph.job.is_batch:
            assert first.restore is not None, "a JobMaster with checkpoints says what attempts go on from"
            saved = Saved(workplace.store, restore_point_of(first.restore, workplace.store))
            check_shared(saved)
            snapshots = saved.point.snapshots(saved.store, graph, here)
        pool, place = self._place.of(frozenset(executions), graph)
        here_no_more = [each for each, where in first.reads if where == self._address and not self._place.has(each)]
        if here_no_more:
            raise _NotHereError(tuple(here_no_more))
        self._place.writes(graph, [task.execution for task in self._tasks if task.keeps_results])
        self._threads = TaskManagerThreads(
            graph,
            number=self._number_in(first),
            host=workplace.host,
            security=workplace.security,
            on_end=self._look,
            snapshots=snapshots,
            on_news=self._on_news,
            pool=pool,
            place=place,
        )
        if saved is not None:
            self._checkpoints = AttemptCheckpoints(self._threads, saved, graph.generation, self._say)
        address = self._threads.connections.address
        self._reports.say(Listening(UnitId.of(first).first, address, self._place.results_address))

    def _let_run(self) -> None:
        """Run them to their end, and until others have read all that they have produced."""
        threads = self._threads
        assert threads is not None, "they are made"
        while not self._have_ended(threads):
            match self._next():
                case _Start(addresses):
                    if self._checkpoints is not None:
                        self._checkpoints.start()
                    threads.start([addresses.get(each) for each in addresses_of(self._tasks[0])])
                    for task in self._tasks:
                        self._reports.is_now(task.execution, TaskState.RUNNING, "", ())
        while not threads.connections.are_finished:
            threads.connections.settle(_SECONDS_BETWEEN_LOOKS)
            while not self._commands.empty():
                self._next()
        if threads.error is not None:
            raise threads.error
        check_nothing_left(threads.deployment)

    def _have_ended(self, threads: TaskManagerThreads) -> bool:
        """Whether all have come to their end, and nothing of checkpoints is left to be said."""
        return threads.is_ended if self._checkpoints is None else self._have_said_all

    def _missing(self, error: BaseException) -> tuple[ExecutionId, ...]:
        """Of what they read from elsewhere, what was not found there, or is kept where nobody answers."""
        threads, first = self._threads, self._tasks[0]
        if threads is None:
            return ()
        if not isinstance(error, RemoteTransportError):
            return missing_reads(threads.deployment.graph, first, error)
        unreached = {addresses_of(first)[number] for number in threads.connections.unreached}
        return tuple(each for each, where in first.reads if where in unreached)

    def _close(self) -> None:
        if self._threads is None:
            return
        self._threads.close()
        if self._checkpoints is not None:
            self._checkpoints.stop(_SECONDS_TO_PUT)

    # -- what others call --------------------------------------------------------------------------------

    def _say(self, said: TaskSaid | Ended) -> None:
        if isinstance(said, Ended):  # behind all that was said
            self._have_said_all = True
            self._look()
        elif said.report is not None:
            self._reports.task_says(self._executions[said.task], said.report)

    def _on_news(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.note_news()

    def _look(self) -> None:
        self._commands.put(_Look())


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, SluiceError) else described(error)
