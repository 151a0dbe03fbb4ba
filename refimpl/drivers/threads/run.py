"""A job on threads of this process, on one TaskManager or on several that speak over TCP."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Self

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.cluster.back_pressure import BackPressureStats
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.control import BackgroundRun, RunsHere
from refimpl.drivers.job_threads import JobThreads
from refimpl.drivers.pressure_sampling import PressureQuestions, subtasks_of
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.regions import JobRegions, refuse_regions, runs_by_regions
from refimpl.drivers.savepoints import TakesSavepoints
from refimpl.drivers.threads.regions import RegionThreads
from refimpl.drivers.threads.task_manager import TaskManagerThreads
from refimpl.drivers.threads.task_managers import TaskManagers, ThreadsCluster
from refimpl.drivers.transport.streams import Security
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job.commands import Command
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.snapshots import JobSnapshot
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["ThreadedRun"]

_SECONDS_TO_STOP = 15.0  # TaskManagers take ten of them


class ThreadedRun(TakesSavepoints, RunsHere, BackgroundRun):
    """Runs a job on threads of this process.

    Each of `num_task_managers` has its own memory and its own monitor; their messages to one another
    go over loopback, or with `security` over TLS. `run()` starts the job and waits; or `start()`,
    look at `snapshot()`, `swap(...)`, and `join()`. Leaving a `with` block cancels the job.

    With a `store`, checkpoints are kept there under the name `job`, and the job goes on from what another run has
    left. After a failure it begins again from the newest, as `restart` says, else 3 times after 1 s each;
    `trust_pickle` and `savepoint` as in `JobRecovery`. One thread calls the store, another one sees to checkpoints and
    restarts.

    A job with blocking exchanges runs region by region, and so does one with `num_slots`, in which that many slots are
    all there are; what fails of it begins again as `restart` says, without a store.

    Raises:
        SluiceError: the job cannot be deployed, or cannot go on from what is in the store.

    Raises (run, join):
        SluiceError: the job failed for ever; the first error of its last attempts, after every thread has stopped.
        KeyboardInterrupt: passed on after the job has been cancelled and has given back its buffers.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        num_task_managers: int = 1,
        security: Security | None = None,
        store: SnapshotStore | None = None,
        restart: RestartStrategy | None = None,
        job: str = "job",
        trust_pickle: bool = False,
        num_slots: int | None = None,
        savepoint: str | None = None,
    ) -> None:
        super().__init__()
        check_num_task_managers(num_task_managers)
        self.error: BaseException | None = None  # with which the job has failed for ever, as soon as it has
        self.recovery: JobRecovery | None = None
        self._is_closed = self._could_not_start = self._is_over = False
        self._master: JobThreads[TaskManagers] | None = None
        graph = environment.execution_graph(num_task_managers, secrets.token_bytes(8))
        self._questions = PressureQuestions(subtasks_of(graph))
        self._attempts: TaskManagers | RegionThreads
        self._regions: JobRegions | None = None
        if runs_by_regions(graph, num_slots):
            if store is not None:
                refuse_regions(graph, "there are no checkpoints with them, so leave the store out")
            self._attempts = by_region = RegionThreads(graph, trace, security, self._on_end, num_slots, restart)
            self._regions = by_region.job
            return
        if store is None:
            self._attempts = TaskManagers(graph, trace, security, self._on_end)
            return
        self.recovery = JobRecovery(graph, store, job, restart, trust_pickle=trust_pickle, savepoint=savepoint)
        cluster = ThreadsCluster(self.recovery, trace, security, self._on_news)
        clock = ProcessingClock(environment.config.epoch_ms)
        self._master = JobThreads(self.recovery, cluster, clock, self._on_over)

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all threads; returns at once."""
        self._stopwatch.start()
        try:
            if self._master is not None:
                self._master.start()
            else:
                self._attempts.start()
        except BaseException as error:  # Ctrl-C may come while some work and others have not begun
            self.error, self._could_not_start = self.error or error, True
            self.cancel()
            raise
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._wait_until(lambda: self.is_done, timeout_s):
            return False
        try:
            if self._master is None and self.error is None and not (self._is_closed or self._attempts.is_cancelled):
                self._attempts.settle()
        except BaseException as error:
            self._close(error)
            raise
        self._close(self.error)
        if self.error is not None:
            raise self.error
        return True

    def cancel(self) -> None:
        """Stop all threads and give everything back. Does nothing after the end. What is in the store stays there.

        A thread inside user code or a store that does not return is left behind; it cannot be stopped, but it
        can no longer touch the job.
        """
        if self._master is None:
            self._attempts.cancel()
        self._close()

    def crash(self, why: str = "its TaskManager is gone") -> None:
        """Let the job fail wherever it is; with a store it begins again. While it waits for that, nothing happens.

        Raises:
            LocalUsageError: it does not run.
        """
        if self.is_done or self._is_closed or not self._stopwatch.is_started:
            raise LocalUsageError("the job does not run; there is nothing to crash")
        error = RemoteTransportError(f"the job was crashed: {why}")
        if self._master is None:
            self.task_managers[0].fail(error)
        else:
            self._master.fail(error)

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def job_regions(self) -> JobRegions | None:
        """The regions of a job that runs region by region, and how far each is."""
        return self._regions

    @property
    def task_managers(self) -> list[TaskManagerThreads]:
        """Those of the newest attempts."""
        return self._newest.members

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more, nor will."""
        is_over = self._attempts.is_over if self._master is None else self._is_over
        return self._stopwatch.is_started and (self._could_not_start or is_over)

    @property
    def is_paused(self) -> bool:
        return any(each.is_paused for each in self.deployments)

    def snapshot(self) -> JobSnapshot:
        """The whole job; each TaskManager at one moment, one after the other."""
        stats = None if self._master is None else self._master.stats()
        return replace(JobSnapshot.joined([each.snapshot() for each in self.task_managers]), checkpoints=stats)

    def back_pressure(self, vertex: str) -> BackPressureStats | None:
        """How much the subtasks of a vertex, such as `map`, are held back: a hundred samples, 50 ms apart.

        `None` until they have been taken; asked again after a minute, new ones are begun. A job that is seldom asked
        is seldom looked at.

        Raises:
            LocalUsageError: there is no such vertex.
        """
        return self._questions.ask(vertex, [each.samples for each in self.task_managers])

    def _command(self, command: Command) -> None:
        for task_manager in self.task_managers:
            task_manager.do(command)

    def _savepoint(self, recovery: JobRecovery, name: str) -> CheckpointRequest:
        assert self._master is not None, "there is a store"
        return self._master.savepoint(name)

    # -- the end -------------------------------------------------------------------------------------

    @property
    def _newest(self) -> TaskManagers | RegionThreads:
        return self._attempts if self._master is None else self._master.attempts

    def _on_end(self) -> None:
        """Without a store: a TaskManager's last task has ended, or one has failed."""
        with self._changed:
            self.error = self.error or self._attempts.error
            if self.is_done:
                self._stopwatch.stop()
            self._changed.notify_all()

    def _on_news(self) -> None:
        if self._master is not None:
            self._master.note_news()

    def _on_over(self, error: BaseException | None) -> None:
        """With a store: the job has ended for ever."""
        with self._changed:
            self.error, self._is_over = self.error or error, True
            self._stopwatch.stop()
            self._changed.notify_all()

    def _close(self, error: BaseException | None = None) -> None:
        """Give everything back; trouble on the way is noted on `error`, if there is one."""
        self._is_closed = True
        if self._master is None:
            self._attempts.close(error)
        else:
            self._master.cancel(0.0 if self._newest.is_here else _SECONDS_TO_STOP)  # a task does not wait for itself
