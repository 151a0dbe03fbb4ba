"""What can happen next in a simulation, and what it does when it happens.

Time is virtual: it passes with each action, and where nothing can move it jumps to what comes next.
"""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.cluster.restart import RestartAt
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.simulation.actions import (
    Action,
    CallStore,
    Coordinate,
    MissTaskManager,
    ReadOn,
    Restart,
    Revive,
    Send,
    SendBarrier,
    StepTask,
    Tell,
)
from refimpl.drivers.simulation.control_wire import ControlWire, WiredTask
from refimpl.drivers.simulation.data_moves import DataMoves
from refimpl.drivers.simulation.deployer import Deployer
from refimpl.drivers.simulation.policy import Delays
from refimpl.drivers.simulation.regions import SimulatedRegions
from refimpl.drivers.simulation.wire import links_between
from refimpl.drivers.simulation.work import Work
from refimpl.drivers.task_gateways import LocalTask
from refimpl.errors import RemoteTransportError
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph

__all__ = ["Moves"]

_IN_TURN = (StepTask, Send, ReadOn, CallStore)
"""What comes when its turn has come; everything else has a time of its own."""


class Moves(DataMoves):
    """The parts of a job on simulated TaskManagers, with the wires between them, at `time_ms` of virtual time.

    `tasks` are the newest attempts; none of a TaskManager that is gone, and none before a restart.
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
        super().__init__(work, delays, deployer.graph.job.config.epoch_ms or 0)
        self.is_closed = False
        self.deployments: list[Deployment] = []
        self.recovery = recovery
        self.control = control
        self._deployer = deployer
        self._restart: RestartAt | None = None
        self._missed: dict[int, float] = {}  # when it is noticed that a TaskManager is gone

    @property
    def live_task_managers(self) -> list[int]:
        """The numbers of those that are there: not killed, or another has taken its place."""
        numbers = range(self._deployer.graph.placement.num_task_managers)
        return [number for number in numbers if number not in self._deployer.gone]

    @property
    def graph(self) -> ExecutionGraph:
        """The job with the attempts that run, or ran last."""
        return self._deployer.graph if self._deployer.regions is None else self._deployer.regions.graph

    @property
    def is_done(self) -> bool:
        if self._restart is not None:
            return False
        if (regions := self._deployer.regions) is not None:
            return regions.job.schedule.is_done
        return all(deployment.is_done for deployment in self.deployments)

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
        on_wires, waiting = self._on_wires()
        actions: list[Action] = [*self._steps(), *calls, *on_wires]
        waiting = [*((each.time_ms, each) for each in (*self._messages(), *self._losses())), *waiting]
        due = [action for at_ms, action in waiting if at_ms <= now]
        if actions or due:
            return [*actions, *due, *(action for _, action in self._timers_by(now))]
        if self._work.is_timed:
            waiting += self._first_to_be_free(min((at_ms for at_ms, _ in waiting), default=float("inf")))
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
        found += self._timeouts()
        if self.recovery is not None and not self.is_done:
            deadline = self.recovery.checkpoints.next_deadline
            found += [] if deadline is None else [(deadline, Coordinate(deadline))]
        return [each for each in found if each[0] <= until_ms]

    def _messages(self) -> list[Tell]:
        messages = [] if self.control is None else self.control.first_in_line
        return [Tell(each.number, str(each), each.arrival_ms) for each in messages]

    def _losses(self) -> Sequence[MissTaskManager | Revive]:
        """What is still to come of TaskManagers that are gone; nobody misses one when the job is done."""
        if self.is_done:
            return []
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

    # -- what an action does ---------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        if not isinstance(action, _IN_TURN):
            at_ms: float | None = action.time_ms
        else:
            at_ms = self._work.free_at_ms(action.task) if self._work.is_timed and isinstance(action, StepTask) else None
        self.time_ms = self._work.after_action_ms(self.time_ms, at_ms)
        if self._do_with_data(action):
            return
        match action:
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
        if self._deployer.regions is not None:
            self._deploy_regions(self._deployer.regions)
            return
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

    def _deploy_regions(self, regions: SimulatedRegions) -> None:
        """Deploy what is to run now beside what runs already."""
        for region in regions.start():
            self._work.deploy_also({task.name: task for each in region.deployments for task in each.tasks})
        self._look_at_regions(regions)

    def _end_regions(self) -> None:
        """Take leave of the regions that are over, and begin those that have waited for them."""
        regions = self._deployer.regions
        if regions is None or self._restart is not None:
            return
        if over := [each for each in regions.at_work.values() if each.is_over]:
            for region in over:
                regions.end(region)
            self._deploy_regions(regions)

    def _look_at_regions(self, regions: SimulatedRegions) -> None:
        """Let what can move be what is at work, in the order of the job."""
        at_work = list(regions.at_work.values())
        self.deployments[:] = [each for region in at_work for each in region.deployments] or regions.ended
        self.links.clear()
        for region in at_work:
            self.links.update(region.links)
        tasks = {task.name: task for region in at_work for each in region.deployments for task in each.tasks}
        self._tasks = {each.name: tasks[each.name] for each in regions.graph.vertices if each.name in tasks}
        writers = [writer for region in at_work for each in region.deployments for writer in each.writers.values()]
        self._partitions = {writer.partition.name: writer.partition for writer in writers}

    def _regions_of(self, action: Action | None, regions: SimulatedRegions) -> list[int]:
        """The regions that an action was about; all at work, if it was about none of them alone."""
        task, link = getattr(action, "task", None), getattr(action, "link", None)
        of_it = [
            number
            for number, region in regions.at_work.items()
            if link in region.links or any(task == each.name for part in region.deployments for each in part.tasks)
        ]
        return of_it or list(regions.at_work)

    def _call_store(self) -> None:
        """Make the oldest call that waits, and say what came of it."""
        assert self.recovery is not None, "there is no store"
        work = self.recovery.checkpoints.work.popleft()
        work.then(work.call(), self.time_ms)
