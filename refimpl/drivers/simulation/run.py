"""One step at a time, in an order you choose: the driver for learning and for finding bugs.

Time is virtual. Every step takes `step_ms`; when nothing can move, time jumps to the next flush or
arrival. The same job, seed and policy take the same steps on every machine.

Under `policy="timed"` work takes time instead: a task is busy for as long as its records cost, while others work beside
it, and time jumps to whatever comes next.

With several TaskManagers each has its own memory, and what they send one another is on a simulated
wire: sending and arriving are steps too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Self

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.cluster.restart import GiveUp, RestartAt, RestartStrategy
from refimpl.drivers.control import Controls
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.savepoints import TakesSavepoints
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
from refimpl.drivers.simulation.policy import Delays, Policy
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.drivers.simulation.work import Costs, TaskTimes, Work
from refimpl.drivers.task_gateways import LocalTask
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.invariants import check_all, check_end
from refimpl.job.commands import Command, Pause, Resume, Slow
from refimpl.job.deployment import Deployment
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.snapshots import JobSnapshot
from refimpl.laws.liveness import check_liveness
from refimpl.producer.result_partition import ResultPartition
from refimpl.state.store import SnapshotStore
from refimpl.task.snapshot import Progress
from refimpl.task.task import Task
from refimpl.trace import Trace

__all__ = ["Simulation"]

_STANDS_STILL = "it moves only while you call step() or run(), and stands still in between"
_VIRTUAL = "its time is virtual, and you choose which task goes next: step(action)"


class Simulation(TakesSavepoints, Controls):
    """Runs a job in one thread, one action after the other.

    With several TaskManagers a message between them takes up to `max_delay_ms`, by `seed`.
    `policy` picks among `enabled()` actions: `random` by `seed`, `round_robin` gives every task its
    turn, `first` is the order of the job (data flows only when it must). With `timed` work takes as long as `costs`
    say, and a busy task is not enabled; `task_times` tells how long each was busy, idle and back-pressured.
    `check_every` n checks the laws after each n-th step, 0 only at the end. With a `store`, checkpoints are kept there
    under the name `job`, and after a failure the job begins again from the newest, as `restart` says; `trust_pickle` as
    in `JobRecovery`. What its coordinator and tasks say to one another is heard at once, or takes up to
    `max_control_delay_ms` on the wire `control`.
    `error` is why the job failed for ever. After that, and after leaving a `with` block, all has been given back: it
    can be looked at, and takes no step.

    Raises (step, run):
        LocalUsageError: it was closed before its job was done, or the job has failed before.
        AssertionError: a law is broken; tells the story if there is a trace.
        SluiceError: the job failed; everything it held has been given back.
    """

    refusals: ClassVar = {Pause: _STANDS_STILL, Resume: _STANDS_STILL, Slow: _VIRTUAL}

    def __init__(
        self,
        environment: StreamEnvironment,
        seed: int = 0,
        policy: str = "random",
        check_every: int = 1,
        step_ms: float = 0.01,
        trace: Trace | None = None,
        num_task_managers: int = 1,
        max_delay_ms: float = 0.0,
        store: SnapshotStore | None = None,
        restart: RestartStrategy | None = None,
        job: str = "job",
        trust_pickle: bool = False,
        costs: Costs | None = None,
        max_control_delay_ms: float | None = None,
    ) -> None:
        check_num_task_managers(num_task_managers)
        self._work = Work.under(policy, step_ms, costs)
        self._policy = Policy(policy, seed)
        self._delays = Delays(max_delay_ms, seed, costs.link_delay_ms if costs else 0.0)
        self.error: BaseException | None = None
        self.is_closed = False
        self.deployments: list[Deployment] = []
        self.links: dict[str, Link] = {}
        self.time_ms = 0.0
        self.num_steps = 0
        self._check_every = check_every
        _use_clock_of(self, trace)
        graph = environment.execution_graph(num_task_managers)
        self._restart: RestartAt | None = None
        self._tasks: dict[str, Task] = {}
        self._partitions: dict[str, ResultPartition] = {}
        self._missed: dict[int, float] = {}  # when it is noticed that a TaskManager is gone
        self.control: ControlWire | None = None
        if store is not None and max_control_delay_ms is not None:
            self.control = ControlWire(Delays(max_control_delay_ms, seed).next_ms, lambda: self.time_ms)
        epoch_ms = environment.config.epoch_ms or 0
        self.recovery = None if store is None else JobRecovery(graph, store, job, restart, epoch_ms, trust_pickle)
        self._deployer = Deployer(graph, trace, self.recovery)
        try:
            self._deploy()
        except BaseException as error:
            self._close_after(error)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.is_closed = True
        for deployment in self._alive:
            deployment.close()

    @property
    def seed(self) -> int:
        return self._policy.seed

    @property
    def deployment(self) -> Deployment:
        """The part of the job that TaskManager 0 has; with one TaskManager the whole job."""
        return self.deployments[0]

    @property
    def task_times(self) -> dict[str, TaskTimes]:
        """How the virtual time of each task went under `policy="timed"`, since it was last deployed."""
        return self._work.times

    @property
    def is_done(self) -> bool:
        return self._restart is None and all(deployment.is_done for deployment in self.deployments)

    def snapshot(self) -> JobSnapshot:
        parts = [deployment.snapshot(self.time_ms) for deployment in self.deployments]
        wires = tuple(link.snapshot() for link in self.links.values())
        stats = None if self.recovery is None else self.recovery.checkpoints.stats.snapshot()
        return replace(JobSnapshot.joined(parts), wires=wires, checkpoints=stats)

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

    def step(self, action: Action | None = None) -> Action | None:
        """Do `action`, or the one the policy picks; return it, or `None` if nothing is enabled.

        Raises:
            LocalUsageError: the action is not enabled.
        """
        if self.is_closed:
            self._refuse_unless_done()
            return None
        enabled = self.enabled()
        if not enabled:
            check_liveness(*self.deployments)
            return None
        if action is None:
            action = self._policy.pick(enabled)
        elif action not in enabled:
            raise LocalUsageError(f"{action} is not enabled; enabled: {', '.join(map(str, enabled))}")
        try:
            self._do(action)
            self._coordinate()
        except BaseException as error:
            if not self._begins_again(error):
                self._close_after(error)
                raise
        if self._deployer.trace is not None:
            for task in self._tasks.values():
                if not task.is_runnable:
                    task.note_rest()
        self.num_steps += 1
        if self._check_every and self.num_steps % self._check_every == 0:
            self.check()
        return action

    def check(self) -> None:
        """Check every law that holds between two steps."""
        if self._restart is not None:
            return
        check_all(*self._alive)
        for link in self.links.values():
            link.check()
            if self._check_every == 1:
                link.check_step()

    def run(self, max_steps: int | None = None, on_step: Callable[[Simulation], None] | None = None) -> Simulation:
        """Step until the job is done, or `max_steps` more have been taken.

        `on_step` is called after each step, for progress bars and recorders.
        """
        if self.is_closed:
            self._refuse_unless_done()
            return self
        limit = None if max_steps is None else self.num_steps + max_steps
        try:
            while limit is None or self.num_steps < limit:
                action = self.step()
                if action is None:
                    check_end(*self.deployments)
                    for link in self.links.values():
                        link.check_end()
                    break
                if on_step is not None:
                    on_step(self)
                self._wait_for_readers(action)
        except BaseException as error:
            self._close_after(error)
            raise
        return self

    def _wait_for_readers(self, action: Action) -> None:
        """Where all that could happen next is to ask readers again that had nothing, let a moment of real time pass.

        As much of virtual time passes with it.
        """
        if self._work.is_timed or not self._pause_ms(action):
            return
        pauses_ms = [self._pause_ms(each) for each in self.enabled()]
        if pauses_ms and (pause_ms := min(pauses_ms)):
            time.sleep(pause_ms / 1000)
            self.time_ms += pause_ms

    def _pause_ms(self, action: Action) -> float:
        task = self._tasks.get(action.task) if isinstance(action, StepTask) else None
        return 0.0 if task is None else task.input.pause_ms

    def lose(self, link: str) -> None:
        """Cut a connection, by its name in `links`, between two steps: the tasks that read there fail."""
        if link not in self.links:
            raise LocalUsageError(f"no link {link!r}; there are {list(self.links)}")
        self.links[link].lose()

    def crash(self, why: str = "its TaskManager is gone") -> None:
        """Let the job fail here, between two steps. With a store it begins again.

        Raises:
            RemoteTransportError: it does not.
            LocalUsageError: it is over.
        """
        if self.is_done or self.is_closed:
            raise LocalUsageError("the job is over; there is nothing left to crash")
        error = RemoteTransportError(f"the job was crashed: {why}")
        if not self._begins_again(error):
            self._close_after(error)
            raise error

    def _savepoint(self, recovery: JobRecovery, name: str) -> CheckpointRequest:
        return recovery.savepoint(name, self.time_ms)

    def kill(self, task_manager: int, revive_after_ms: float = 0.0, noticed_after_ms: float = 50.0) -> None:
        """Let a TaskManager be no more, between two steps: with its tasks, memory and connections, and without a word.

        The others go on until they miss it, and the job fails. It begins again when another has taken its place.

        Raises:
            LocalUsageError: there is no such TaskManager, or it is gone already.
        """
        if task_manager not in range(self._deployer.graph.placement.num_task_managers):
            raise LocalUsageError(f"no TaskManager {task_manager}")
        if task_manager in self._deployer.gone or self.is_closed:
            raise LocalUsageError(f"tm-{task_manager} is gone already")
        self._deployer.gone[task_manager] = self.time_ms + revive_after_ms
        if self._restart is not None:
            return
        self._missed[task_manager] = self.time_ms + noticed_after_ms
        names = {task.name for task in self.deployments[task_manager].tasks}
        for writer in self.deployments[task_manager].writers.values():
            self._partitions.pop(writer.partition.name, None)
        for name in names:
            del self._tasks[name]
        for link in self.links.values():
            if task_manager in link.ends:
                link.lose()
        if self.recovery is not None:
            self.recovery.gone(names)

    def _command(self, command: Command) -> None:
        for deployment in self.deployments:
            deployment.do(command)

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

    # -- checkpoints and restarts ----------------------------------------------------------------------

    def _call_store(self) -> None:
        """Make the oldest call that waits, and say what came of it."""
        assert self.recovery is not None, "there is no store"
        work = self.recovery.checkpoints.work.popleft()
        work.then(work.call(), self.time_ms)

    def _coordinate(self) -> None:
        """Take to the coordinator what the last step has brought."""
        if self.recovery is None or self._restart is not None:
            return
        self.recovery.collect(self.time_ms)
        if self.recovery.failure is not None:
            raise self.recovery.failure
        if self.is_done and self.recovery.is_at_work:
            self.recovery.finished(self.time_ms)

    def _begins_again(self, error: BaseException) -> bool:
        """Whether the job is to go on after a failure; then everything it held has been given back."""
        if self.recovery is None or self.is_closed:
            return False
        decision = self.recovery.failed(error, self.time_ms)
        if isinstance(decision, GiveUp):
            return False
        self._restart = decision
        self.links.clear()
        self._tasks, self._partitions = {}, {}
        self._missed.clear()
        for deployment in self._alive:
            deployment.close_after(error)
        return True

    def _refuse_unless_done(self) -> None:
        if self.error is not None:
            why = f"the job has failed ({type(self.error).__name__}: {self.error})"
            raise LocalUsageError(f"{why}, and goes no further; make a new Simulation")
        if not self.is_done:
            raise LocalUsageError("this Simulation was closed before its job was done; make a new one")

    def _close_after(self, error: BaseException) -> None:
        self.error, self.is_closed = self.error or error, True
        for deployment in self._alive:
            deployment.close_after(error)


def _use_clock_of(run: Simulation, trace: Trace | None) -> None:
    if trace is not None:
        trace.use_clock(lambda: round(run.time_ms * 1e6))
