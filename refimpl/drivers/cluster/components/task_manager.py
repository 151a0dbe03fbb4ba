"""A TaskManager with real tasks: what its `TaskExecutor` orders is begun and ended, and what becomes of it is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, HeartbeatTimes
from refimpl.cluster.messages import JobWord, SubmittedTask, TaskState
from refimpl.cluster.task_executor import TaskExecutor
from refimpl.cluster.task_orders import DropResults, StartTask, StopTask, TaskOrder, WordForTask
from refimpl.cluster.task_units import UnitId
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.high_availability.leaders import RESOURCE_MANAGER, Leadership, job_master_of
from refimpl.drivers.cluster.rpc.address import rpc_address
from refimpl.drivers.cluster.tasks.deployed_tasks import DeployedTasks, Reports
from refimpl.drivers.cluster.tasks.job_place import JobPlace, Workplace
from refimpl.drivers.cluster.tasks.words import Connect, JobCopy, NeedJob, Word, read_word, word
from refimpl.errors import LocalUsageError
from refimpl.task.checkpoint_reports import Report

__all__ = ["TaskManager"]


class TaskManager:
    """The TaskManager called `name`, with `num_slots` slots, in the process of `loop`.

    Flink:   TaskManagerRunner, TaskExecutor (runtime.taskexecutor), 1.11.4
    """

    def __init__(
        self,
        name: str,
        num_slots: int,
        token: FencingToken,
        loop: ComponentLoop,
        workplace: Workplace,
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        self.endpoint = TaskExecutor(rpc_address(name, loop.place), token, num_slots, loop.clock.now_ms, heartbeat)
        self._loop = loop
        self._workplace = workplace
        self._jobs: dict[tuple[str, int], bytes] = {}  # pickled, by id and the epoch of the leader
        self._places: dict[tuple[str, int], JobPlace] = {}
        self._deployed: dict[UnitId, DeployedTasks] = {}
        self._closing: list[JobPlace] = []

    # -- what the loop calls -----------------------------------------------------------------------------

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        if RESOURCE_MANAGER in leaders:
            self.endpoint.resource_manager_is(*leaders[RESOURCE_MANAGER], now_ms)
        jobs = set(self.endpoint.jobs)
        for job_id in jobs:
            if (leadership := leaders.get(job_master_of(job_id))) is not None:
                self.endpoint.job_master_is(job_id, *leadership, now_ms)
        self._clean_up(jobs)

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        self.endpoint.peer_is_gone(address, why, now_ms)

    def step(self, now_ms: float) -> None:
        """Carry out what is ordered, and take what is said."""
        orders, self.endpoint.task_orders = self.endpoint.task_orders, []
        for order in orders:
            self._obey(order, now_ms)
        words, self.endpoint.words = self.endpoint.words, []
        for message in words:
            self._hear(message)

    # -- the end -----------------------------------------------------------------------------------------

    def end(self, within_s: float) -> bool:
        """End all tasks, and wait for that; whether nothing is left. When the loop has ended."""
        for each in self._deployed.values():
            each.stop("the TaskManager ends")
        give_up_s = time.monotonic() + within_s
        has_ended = [each.join(max(0.0, give_up_s - time.monotonic())) for each in self._deployed.values()]
        places = [*self._closing, *self._places.values()]
        for place in places:
            place.close()
        return all(has_ended + [each.join(max(1.0, give_up_s - time.monotonic())) for each in places])

    # -- what is ordered ---------------------------------------------------------------------------------

    def _obey(self, order: TaskOrder, now_ms: float) -> None:
        match order:
            case StartTask(task):
                if not self._unit_of(task).add(task):
                    why = "the others of its region have ended here"
                    self.endpoint.task_is(task.execution, TaskState.CANCELED, why, now_ms)
            case StopTask(execution, why):
                for each in self._with(execution):
                    each.stop(why)
            case WordForTask(message):
                for each in self._with(message.execution):
                    each.tell(message)
            case DropResults(executions):
                for execution in executions:
                    if (place := self._places.get((execution.job_id, execution.epoch))) is not None:
                        place.drop([execution])

    def _with(self, execution: ExecutionId) -> list[DeployedTasks]:
        return [each for each in self._deployed.values() if each.has(execution)]

    def _unit_of(self, task: SubmittedTask) -> DeployedTasks:
        """The attempts of the same region; for a new one the job is asked for, if it is not known."""
        unit, job = UnitId.of(task), (task.execution.job_id, task.execution.epoch)
        if (deployed := self._deployed.get(unit)) is not None:
            return deployed
        reports = Reports(self._is_now, self._task_says, partial(self._say, unit))
        name = f"{unit.job_id}, {unit.first} of generation {unit.generation}, at {self.endpoint.address}"
        if (place := self._places.get(job)) is None:
            place = self._places[job] = JobPlace(unit.job_id, self._workplace, self._raise)
        deployed = DeployedTasks(self.endpoint.address, name, place, reports)
        self._deployed[unit] = deployed
        deployed.start()
        if (data := self._jobs.get(job)) is not None:
            deployed.job_is(data)
        else:
            self.endpoint.tell(word(*job, unit.generation, NeedJob()))
        return deployed

    def _hear(self, message: JobWord) -> None:
        job = message.job_id, message.epoch
        concerned = {unit: each for unit, each in self._deployed.items() if (unit.job_id, unit.epoch) == job}
        try:
            content = read_word(message)
        except LocalUsageError as error:
            for each in concerned.values():
                each.stop(str(error))
            return
        match content:
            case JobCopy(data) if concerned:
                self._jobs[job] = data
                for each in concerned.values():
                    each.job_is(data)
            case Connect(region, addresses):
                if (deployed := concerned.get(UnitId(*job, message.generation, region))) is not None:
                    deployed.connect(addresses)

    def _clean_up(self, jobs: set[str]) -> None:
        """Keep nothing of regions that are over, nor of jobs that have neither slot nor result here any more."""
        for unit, each in list(self._deployed.items()):
            is_newest = not any(
                other.generation > unit.generation and (other.job_id, other.epoch) == (unit.job_id, unit.epoch)
                for other in self._deployed
            )
            if each.is_over and (unit.job_id not in jobs or not is_newest):
                del self._deployed[unit]
        at_work = {(unit.job_id, unit.epoch) for unit in self._deployed}
        self._jobs = {job: data for job, data in self._jobs.items() if job[0] in jobs}
        self._closing = [each for each in self._closing if not each.join(0.0)]
        for job in [job for job in self._places if job[0] not in jobs and job not in at_work]:
            place = self._places.pop(job)
            place.close()
            self._closing.append(place)

    # -- what becomes of it, on any thread -----------------------------------------------------------------

    def _is_now(self, execution: ExecutionId, state: TaskState, why: str, missing: tuple[ExecutionId, ...]) -> None:
        self._loop.post(partial(self.endpoint.task_is, execution, state, why, missing=missing))

    def _task_says(self, execution: ExecutionId, report: Report) -> None:
        self._loop.post(lambda _now_ms: self.endpoint.task_says(execution, report))

    def _say(self, unit: UnitId, content: Word) -> None:
        message = word(unit.job_id, unit.epoch, unit.generation, content)
        self._loop.post(lambda _now_ms: self.endpoint.tell(message))

    def _raise(self, bug: BaseException) -> None:
        """Let the loop end with a bug that was met elsewhere."""

        def fail(_now_ms: float) -> None:
            raise bug

        self._loop.post(fail)
