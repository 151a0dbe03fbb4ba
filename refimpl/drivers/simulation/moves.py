"""What can happen next in a simulation, and what it does when it happens.

Time is virtual: it passes with each action, and where nothing can move it jumps to what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refimpl.cluster.restart import RestartAt
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.simulation.actions import (
    Action,
    AskAgain,
    CallStore,
    Coordinate,
    Deliver,
    Flush,
    MissTaskManager,
    ReadOn,
    Restart,
    Revive,
    Send,
    SendBarrier,
    StepTask,
    Tell,
    Timeout,
)
from refimpl.drivers.simulation.control_wire import ControlWire, WiredTask
from refimpl.drivers.simulation.deployer import Deployer, links_between
from refimpl.drivers.simulation.policy import Delays
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.drivers.simulation.work import Work
from refimpl.drivers.task_gateways import LocalTask
from refimpl.errors import RemoteTransportError
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.producer.result_partition import ResultPartition
from refimpl.task.snapshot import Progress
from refimpl.task.task import Task

__all__ = ["Moves"]


class Moves:
    """The parts of a job on simulated TaskManagers, with the wires between them, at `time_ms` of virtual time.

    `control` is the wire of what coordinator and tasks say to one another, if that takes time.
    """

    def __init__(
        self,
        deployer: Deployer,
        recovery: JobRecovery | None,
        control: ControlWire | None,
        work: Work,
        delays: Delays,
    ) -> None:
        self.time_ms = 0.0
        self.is_closed = False
        self.deployments: list[Deployment] = []
        self.links: dict[str, Link] = {}
        self.recovery = recovery
        self.control = control
        self._deployer = deployer
        self._work = work
        self._delays = delays
        self._restart: RestartAt | None = None
        self._tasks: dict[str, Task] = {}
        self._partitions: dict[str, ResultPartition] = {}
        self._missed: dict[int, float] = {}  # when it is noticed that a TaskManager is gone

    @property
    def graph(self) -> ExecutionGraph:
        """The job with the attempts that run, or ran last."""
        return self._deployer.graph

    @property
    def tasks(self) -> Mapping[str, Task]:
        """The newest attempts by name; none of a TaskManager that is gone, and none before a restart."""
        return self._tasks

    @property
    def is_done(self) -> bool:
        return self._restart is None and all(deployment.is_done for deployment in self.deployments)

    def enabled(self) -> Sequence[Action]:
        """The actions that could be next. None means quiescent: the job is done, a law is broken, or it is closed."""
        if self.is_closed:
            return ()
        now = self.time_ms
        calls: list[Action] = []
        if self.recovery is not None and (work := self.recovery.checkpoints.work):
            calls = [CallStore(work[0].what)]
        if self._restart is not None:  # what has been begun in the store decides from where
            return calls or self._before_restart(self._restart.at_ms)
        actions: list[Action] = [
            StepTask(name)
            for name, task in self._tasks.items()
            if self._work.free_at_ms(name) <= now and task.is_runnable
        ]
        actions += calls
        waiting: list[tuple[float, Action]] = [(each.time_ms, each) for each in (*self._messages(), *self._losses())]
        for name, partition in self._partitions.items():
            deadline = partition.next_deadline(now)
            if deadline is not None:
                waiting.append((deadline, Flush(name, deadline)))
        for name, link in self.links.items():
            again = link.consumer.next_deadline(now)
            if again is not None:
                waiting.append((again, AskAgain(name, again)))
            if (pause := link.consumer.pause) is not None and pause.is_over:
                actions.append(ReadOn(name))
            for way in Way:
                if link.can_send(way):
                    actions.append(Send(name, way))
                arrival = link.next_arrival_ms(way)
                if arrival is not None:
                    waiting.append((arrival, Deliver(name, way, arrival)))
        due = [action for at_ms, action in waiting if at_ms <= now]
        if actions or due:
            return [*actions, *due, *(action for _, action in self._timers_by(now))]
        if self._work.is_timed:
            waiting += [
                (self._work.free_at_ms(name), StepTask(name)) for name, task in self._tasks.items() if task.is_runnable
            ]
            waiting += self._timers_by(min((at_ms for at_ms, _ in waiting), default=now))
        waiting = waiting or [(each.time_ms, each) for each in self._answers_missing()]
        return [action for _, action in sorted(waiting, key=lambda each: each[0])[:1]]

    def _timers_by(self, until_ms: float) -> list[tuple[float, Action]]:
        """What else is due until then, and when: barriers, timers and checkpoints.

        Time does not pass for one of them alone: it comes while the job can go on without it.
        """
        found: list[tuple[float, Action]] = [
            (deadline, SendBarrier(each.task_manager, each.checkpoints.next_id, deadline))
            for each in self.deployments
            if (deadline := each.checkpoints.next_deadline) is not None and each.checkpoints.is_last_over
        ]
        found += [
            (deadline - self._epoch_ms, Timeout(name, deadline - self._epoch_ms))
            for name, task in self._tasks.items()
            if (deadline := task.next_deadline(self._processing_ms)) is not None
        ]
        if self.recovery is not None and not self.is_done:
            deadline = self.recovery.checkpoints.next_deadline
            found += [] if deadline is None else [(deadline, Coordinate(deadline))]
        return [each for each in found if each[0] <= until_ms]

    def _messages(self) -> list[Tell]:
        messages = [] if self.control is None else self.control.first_in_line
        return [Tell(each.number, str(each), each.arrival_ms) for each in messages]

    def _losses(self) -> Sequence[MissTaskManager | Revive]:
        """What is still to come of TaskManagers that are gone."""
        missed = [MissTaskManager(number, at_ms) for number, at_ms in self._missed.items()]
        return missed or [Revive(number, at_ms) for number, at_ms in self._deployer.gone.items()]

    def _before_restart(self, at_ms: float) -> Sequence[Action]:
        """A restart needs every TaskManager; messages of attempts that are over still arrive."""
        losses = self._losses()
        waiting: list[Tell | MissTaskManager | Revive | Restart] = [*self._messages(), *losses]
        waiting += [] if losses else [Restart(at_ms)]
        return sorted(waiting, key=lambda action: action.time_ms)[:1]

    def _answers_missing(self) -> list[Coordinate]:
        """When nothing else can move, time passes until the coordinator misses an answer."""
        if self.recovery is None or self.is_done:
            return []
        deadline = self.recovery.checkpoints.coordinator.answer_deadline
        return [] if deadline is None else [Coordinate(deadline)]

    @property
    def _alive(self) -> list[Deployment]:
        """What is deployed on TaskManagers that are not gone."""
        return [each for each in self.deployments if each.task_manager not in self._deployer.gone]

    @property
    def _epoch_ms(self) -> float:
        return self._deployer.graph.job.config.epoch_ms or 0

    @property
    def _processing_ms(self) -> float:
        return self._epoch_ms + self.time_ms

    # -- what an action does ---------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        if not isinstance(action, StepTask | Send | ReadOn | CallStore):
            at_ms: float | None = action.time_ms
        else:
            at_ms = self._work.free_at_ms(action.task) if self._work.is_timed and isinstance(action, StepTask) else None
        self.time_ms = self._work.after_action_ms(self.time_ms, at_ms)
        match action:
            case StepTask(name):
                self._tasks[name].on_timeout(self._processing_ms)
                progress = self._tasks[name].step()
                assert progress in Progress, f"{action} returned {progress!r}"
                self._work.stepped(name, self.time_ms)
            case Flush(name):
                self._partitions[name].on_timeout(self.time_ms)
            case Send(link, way):
                bytes_per_ms = self._work.costs.link_bytes_per_ms if self._work.costs else None
                self.links[link].send(way, self.time_ms + self._delays.next_ms(), bytes_per_ms)
            case Deliver(link, way):
                self.links[link].deliver(way)
            case ReadOn(link):
                self.links[link].consumer.receive_data(b"")
            case AskAgain(link):
                self.links[link].consumer.on_timeout(self.time_ms)
            case Timeout(name):
                self._tasks[name].on_timeout(self._processing_ms)
            case SendBarrier(number):
                self.deployments[number].checkpoints.on_timeout(self.time_ms)
            case Coordinate() if self.recovery is not None:
                self.recovery.checkpoints.on_timeout(self.time_ms)
            case CallStore():
                self._call_store()
            case _:
                self._do_to_the_whole(action)

    def _do_to_the_whole(self, action: Action) -> None:
        """What concerns the job, and not one of its parts."""
        match action:
            case Restart():
                self._restart = None
                self._deploy()
            case Tell(number) if self.control is not None:
                self.control.take(number).deliver()
            case MissTaskManager(number):
                del self._missed[number]
                raise RemoteTransportError(f"tm-{number} is gone")
            case Revive(number):
                self._deployer.revive(number)

    def _deploy(self) -> None:
        """Make every TaskManager's part of the job, and the links that the parts need."""
        self.deployments.clear()
        self._deployer.deploy(self.deployments)
        self.links.update(links_between(self.deployments))
        tasks = {task.name: task for deployment in self.deployments for task in deployment.tasks}
        self._tasks = {each.name: tasks[each.name] for each in self._deployer.graph.vertices}
        self._work.deploy(self._tasks)
        writers = [writer for deployment in self.deployments for writer in deployment.writers.values()]
        self._partitions = {writer.partition.name: writer.partition for writer in writers}
        if self.recovery is not None:
            wire = self.control
            reached = {
                each.name: LocalTask(each) if wire is None else WiredTask(each, wire) for each in self._tasks.values()
            }
            self.recovery.start(reached, self.time_ms)

    def _call_store(self) -> None:
        """Make the oldest call that waits, and say what came of it."""
        assert self.recovery is not None, "there is no store"
        work = self.recovery.checkpoints.work.popleft()
        work.then(work.call(), self.time_ms)
