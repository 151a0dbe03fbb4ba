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
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Self

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.cluster.restart import GiveUp, RestartStrategy
from refimpl.drivers.control import Controls
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.regions import JobRegions, refuse_regions, runs_by_regions
from refimpl.drivers.savepoints import TakesSavepoints
from refimpl.drivers.simulation.actions import (
    Action,
    StepTask,
)
from refimpl.drivers.simulation.control_wire import ControlWire
from refimpl.drivers.simulation.deployer import Deployer
from refimpl.drivers.simulation.moves import Moves
from refimpl.drivers.simulation.policy import Delays, Policy
from refimpl.drivers.simulation.regions import SimulatedRegions
from refimpl.drivers.simulation.work import Costs, Work
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.invariants import check_all, check_end
from refimpl.job.commands import Command, Pause, Resume, Slow
from refimpl.job.deployment import Deployment
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.snapshots import JobSnapshot
from refimpl.laws.liveness import check_liveness
from refimpl.state.store import SnapshotStore
from refimpl.task.snapshot import TaskTimes
from refimpl.trace import Trace

__all__ = ["Simulation"]

_STANDS_STILL = "it moves only while you call step() or run(), and stands still in between"
_VIRTUAL = "its time is virtual, and you choose which task goes next: step(action)"


class Simulation(TakesSavepoints, Controls, Moves):
    """Runs a job in one thread, one action after the other.

    With several TaskManagers a message between them takes up to `max_delay_ms`, by `seed`.
    `policy` picks among `enabled()` actions: `random` by `seed`, `round_robin` gives every task its
    turn, `first` is the order of the job (data flows only when it must). With `timed` work takes as long as `costs`
    say, and a busy task is not enabled; `task_times` tells how long each was busy, idle and back-pressured.
    `check_every` n checks the laws after each n-th step, 0 only at the end. With a `store`, checkpoints are kept there
    under the name `job`, and after a failure the job begins again from the newest, as `restart` says; `trust_pickle`
    and `savepoint` as in `JobRecovery`. What its coordinator and tasks say to one another is heard at once, or takes up
    to `max_control_delay_ms` on the wire `control`.
    A job with blocking exchanges runs region by region, and so does one with `num_slots`, in which that many slots are
    all there are; what fails of it begins again as `restart` says, without a store. After `kill` the results of that
    TaskManager are gone too.
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
        num_slots: int | None = None,
        savepoint: str | None = None,
    ) -> None:
        check_num_task_managers(num_task_managers)
        graph = environment.execution_graph(num_task_managers)
        regions = SimulatedRegions(graph, trace, num_slots, restart) if runs_by_regions(graph, num_slots) else None
        if regions is not None and store is not None:
            refuse_regions(graph, "there are no checkpoints with them, so leave the store out")
        epoch_ms = environment.config.epoch_ms or 0
        recovery = None if store is None else JobRecovery(graph, store, job, restart, epoch_ms, trust_pickle, savepoint)
        control = None
        if store is not None and max_control_delay_ms is not None:
            control = ControlWire(Delays(max_control_delay_ms, seed).next_ms, lambda: self.time_ms)
        work = Work.under(policy, step_ms, costs)
        delays = Delays(max_delay_ms, seed, costs.link_delay_ms if costs else 0.0)
        deployer = Deployer(graph, trace, recovery, regions, is_watched=check_every == 1)
        super().__init__(deployer, recovery, control, work, delays)
        self.error: BaseException | None = None
        self.num_steps = 0
        self._policy = Policy(policy, seed)
        self._check_every = check_every
        if trace is not None:
            trace.use_clock(lambda: round(self.time_ms * 1e6))
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
        self._drop_results()

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
    def job_regions(self) -> JobRegions | None:
        """The regions of a job that runs region by region, and how far each is."""
        return None if self.regions is None else self.regions.job

    @property
    def regions(self) -> SimulatedRegions | None:
        """The same, with what is deployed of them."""
        return self._deployer.regions

    def snapshot(self) -> JobSnapshot:
        parts = [deployment.snapshot(self.time_ms).with_times(self.task_times) for deployment in self.deployments]
        wires = tuple(link.snapshot() for link in self.links.values())
        stats = None if self.recovery is None else self.recovery.checkpoints.stats.snapshot()
        return replace(JobSnapshot.joined(parts), wires=wires, checkpoints=stats)

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
            self._end_regions()
        except BaseException as error:
            if not self._begins_again(error, action):
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
        if self.recovery is not None:
            self._deployer.cuts.check(self.recovery.checkpoints.history)
        if self._restart is not None:
            return
        check_all(*self._alive)
        for link in self.links.values():
            link.check()
            if self._deployer.is_watched:
                link.check_step()
        if self._deployer.is_watched:
            self._deployer.captures.look(self._alive)
            self._deployer.timers.look(self._alive)

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
                if action is None and self._deployer.regions is not None:
                    self._drop_results()  # each region has been checked at its end
                    break
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
        if self._deployer.regions is not None:
            self._deployer.regions.lose_results_of(task_manager)
            self.crash(f"tm-{task_manager} is gone")
            return
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

    # -- checkpoints and restarts ----------------------------------------------------------------------

    def _coordinate(self) -> None:
        """Take to the coordinator what the last step has brought."""
        if self.recovery is None or self._restart is not None:
            return
        if self._deployer.is_watched:
            self._deployer.cuts.look(self._alive)
        self.recovery.collect(self.time_ms)
        if self.recovery.failure is not None:
            raise self.recovery.failure
        if self.is_done and self.recovery.is_at_work:
            self.recovery.finished(self.time_ms)

    def _begins_again(self, error: BaseException, action: Action | None = None) -> bool:
        """Whether the job is to go on after a failure in `action`; then everything it held has been given back."""
        if (regions := self._deployer.regions) is not None and not self.is_closed:
            decided = regions.fail(self._regions_of(action, regions), error, self.time_ms)
            if decided is not None:
                self._restart = decided[0]
                self._look_at_regions(regions)
            return decided is not None
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
        if self._check_every:
            self._deployer.check_given_back()
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
        self._drop_results()

    def _drop_results(self) -> None:
        if self._deployer.regions is not None:
            self._deployer.regions.close()
