"""A TaskManager of a simulated cluster: its memory, and the tasks that it was sent, made real."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.job_plan import JobPlan
from refimpl.cluster.messages import NotifyTask, TaskState, TriggerTask
from refimpl.cluster.task_executor import TaskExecutor
from refimpl.cluster.task_orders import DropResults, StartTask, StopTask, WordForTask
from refimpl.cluster.task_units import TaskUnit, TaskUnits, UnitId
from refimpl.drivers.cluster_tasks import deploy_unit, executions_of
from refimpl.drivers.kept_partitions import KeptPartitions, missing_reads
from refimpl.drivers.makers import makers_of
from refimpl.drivers.recovery import barrier_of
from refimpl.drivers.store_calls import StoreWork
from refimpl.drivers.task_gateways import LocalTask, StateToPut
from refimpl.errors import SluiceError, described
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.state.layout import JobStore
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["RunningUnit", "SimulatedTaskManager"]


@dataclass(slots=True)
class RunningUnit:
    """A unit whose tasks are made; `tasks` are those that have not ended, as whoever coordinates them reaches them."""

    unit: TaskUnit
    deployment: Deployment
    tasks: dict[ExecutionId, LocalTask]

    @property
    def is_read(self) -> bool:
        """Whether all that it has for others was taken."""
        outputs = (each for partition in self.deployment.partitions for each in partition.subpartitions)
        return self.deployment.is_done and all(each.num_queued == 0 for each in outputs)


class SimulatedTaskManager:
    """The tasks of `executor`: those of each unit are made on `pool`, and their states are kept in `store`.

    `jobs` are the jobs of the cluster by id. `reaches` says whether there is a TaskManager at an address. What is
    written to be read later is in `results`. `on_made` and `on_closed` hear of units that come and go; calls of the
    store wait in `calls`. It looks at `executor` when it is told to `obey`, and at its tasks when told to `collect`.

    Flink:   TaskExecutor (runtime.taskexecutor), 1.11.4
    """

    def __init__(
        self,
        executor: TaskExecutor,
        pool: NetworkBufferPool,
        store: SnapshotStore,
        jobs: Mapping[str, JobGraph],
        plans: Mapping[str, JobPlan],
        on_made: Callable[[RunningUnit], None],
        on_closed: Callable[[RunningUnit], None],
        reaches: Callable[[str], bool],
        trace: Trace | None = None,
    ) -> None:
        self.executor = executor
        self.results = KeptPartitions()
        self.servers: list[Deployment] = []  # that tasks elsewhere read results through
        self.pool = pool
        self.running: dict[UnitId, RunningUnit] = {}
        self.calls: deque[StoreWork] = deque()
        self._units = TaskUnits(executor.address)
        self._store = store
        self._jobs, self._plans = jobs, plans
        self._on_made, self._on_closed = on_made, on_closed
        self._reaches = reaches
        self._trace = trace

    def obey(self, now_ms: float) -> None:
        """Do with tasks what there is to be done."""
        while self.executor.task_orders:
            match self.executor.task_orders.pop(0):
                case StartTask(task):
                    unit = self._units.add(task, self._plans[task.execution.job_id])
                    if unit is not None:
                        self._make(unit, now_ms)
                case StopTask(execution, why):
                    self._end_unit(execution, TaskState.CANCELED, why, now_ms)
                case WordForTask(message):
                    self._tell(message)
                case DropResults(executions):
                    self.results.drop(executions)
                    self._tidy()

    def fail(self, execution: ExecutionId, error: SluiceError, now_ms: float) -> None:
        """An attempt has failed, and its unit with it."""
        running = next(iter(self._with(execution)), None)
        missing = () if running is None else missing_reads(running.deployment.graph, running.unit.task, error)
        self._end_unit(execution, TaskState.FAILED, described(error), now_ms, missing)

    def collect(self, now_ms: float) -> None:
        """Hand on what tasks have to say, and their ends; what nobody needs any more is given back."""
        for each in list(self.running.values()):
            for execution, task in list(each.tasks.items()):
                is_done = task.is_done  # asked first: what a task says comes before its end
                for said in task.take():
                    if isinstance(said, StateToPut):
                        self._put(execution, task, said)
                    else:
                        self.executor.task_says(execution, said)
                if is_done:
                    del each.tasks[execution]
                    self.executor.task_is(execution, TaskState.FINISHED, "", now_ms)

    def close(self, unit_id: UnitId) -> None:
        """Give back what a unit held."""
        running = self.running.pop(unit_id)
        self._units.remove(next(iter(running.unit.tasks)))
        self._on_closed(running)
        running.deployment.close()
        self._tidy()

    def serve(self, graph: ExecutionGraph, number: int, job_id: str) -> Deployment:
        """A part of a job that runs nothing here, where it is TaskManager `number`: what is kept is read through it."""
        results = self.results.of(job_id, graph.job.config)
        makers = makers_of(graph.job.config, default=False)
        server = Deployment(graph, number, self._trace, makers=makers, pool=self.pool, results=results, region=())
        self.servers.append(server)
        return server

    def stop_serving(self, server: Deployment) -> None:
        """Nobody reads through it any more."""
        self.servers.remove(server)
        server.close()
        self._tidy()

    def _tidy(self) -> None:
        at_work = {each.unit.id.job_id for each in self.running.values()}
        self.results.tidy(at_work if not self.servers else self._jobs)

    def _make(self, unit: TaskUnit, now_ms: float) -> None:
        job, address = self._jobs[unit.id.job_id], self.executor.address
        unreached = [each for each, where in unit.task.reads if not self._can_read(each, where)]
        if unreached:
            why = f"what {', '.join(map(str, unreached))} left is not to be reached"
            self._end_unit(unit.task.execution, TaskState.FAILED, why, now_ms, tuple(unreached))
            return
        try:
            results = self.results.of(unit.id.job_id, job.config) if job.is_batch else None
            made = deploy_unit(job, unit, address, self.pool, self._store, self._trace, results)
        except SluiceError as error:
            self.fail(unit.task.execution, error, now_ms)
            return
        self.results.writes(made.graph, [each for each, task in unit.tasks.items() if task.keeps_results])
        by_name = executions_of(unit, made)
        running = RunningUnit(unit, made, {by_name[task.name]: LocalTask(task) for task in made.tasks})
        self.running[unit.id] = running
        self._on_made(running)
        for execution in unit.tasks:
            self.executor.task_is(execution, TaskState.RUNNING, "", now_ms)

    def _can_read(self, execution: ExecutionId, where: str) -> bool:
        """Whether there is somebody to ask for what an attempt has left there."""
        return self.results.has(execution) if where == self.executor.address else self._reaches(where)

    def _end_unit(
        self,
        execution: ExecutionId,
        state: TaskState,
        why: str,
        now_ms: float,
        missing: tuple[ExecutionId, ...] = (),
    ) -> None:
        """End an attempt, and with it what cannot go on without it; no news of one that is over."""
        unit = self._units.remove(execution)
        if unit is None:
            return
        running = self.running.pop(unit.id, None)
        if running is not None:
            self._on_closed(running)
            running.deployment.close()
        self._tidy()
        over = [each for each in unit.tasks if running is not None and each not in running.tasks]
        if execution not in over:
            self.executor.task_is(execution, state, why, now_ms, missing)
        for each in unit.tasks:
            if each != execution and each not in over:
                self.executor.task_is(each, TaskState.FAILED, f"ended with {execution}", now_ms)

    def _tell(self, message: TriggerTask | NotifyTask) -> None:
        task = next((each.tasks.get(message.execution) for each in self._with(message.execution)), None)
        if task is None:
            return
        if isinstance(message, TriggerTask):
            config = self._jobs[message.execution.job_id].config
            barrier = barrier_of(message.checkpoint_id, message.timestamp_ms, message.savepoint, config)
            task.send_barrier(barrier)
        elif message.is_complete:
            task.notify_complete(message.checkpoint_id)
        else:
            task.notify_aborted(message.checkpoint_id)

    def _with(self, execution: ExecutionId) -> list[RunningUnit]:
        return [each for each in self.running.values() if execution in each.tasks]

    def _put(self, execution: ExecutionId, task: LocalTask, said: StateToPut) -> None:
        key = said.state.file.key

        def put() -> None:
            if self._with(execution):  # or else nobody wants it any more
                JobStore(self._store, execution.job_id).put(key, said.state.parts)

        def was_put(error: SluiceError | None, _now_ms: float) -> None:
            task.written(said.checkpoint_id, None if error is None else str(error))

        self.calls.append(StoreWork(f"write {key}", partial(put), was_put))
