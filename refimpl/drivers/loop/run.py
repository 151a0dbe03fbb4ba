"""A job in one event loop: a coroutine for each task, two for each connection, and no thread but for the store.

Nothing runs while something else does, so the loop itself keeps calls apart. A task gives way after
each step; the user's code holds up everybody while it runs, which on threads it does not.

In a notebook, which has a loop already: `await AsyncRun(job).execute()`. Views stay alive meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import replace
from typing import Self

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.cluster.back_pressure import BackPressureStats
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.control import Controls, RunsHere, Stopwatch
from refimpl.drivers.loop.attempt import LoopAttempt
from refimpl.drivers.loop.job_in_loop import JobInLoop
from refimpl.drivers.loop.regions import LoopRegions
from refimpl.drivers.pressure_sampling import PressureQuestions, subtasks_of
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.regions import JobRegions, refuse_regions, runs_by_regions
from refimpl.drivers.savepoints import TakesSavepoints
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job.commands import Command
from refimpl.job.environment import StreamEnvironment
from refimpl.job.placement import check_num_task_managers
from refimpl.job.shuffle_environment import pool_of
from refimpl.job.snapshots import JobSnapshot
from refimpl.job.task_factory import Snapshots
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["AsyncRun"]


class AsyncRun(TakesSavepoints, RunsHere, Controls):
    """Runs a job in an event loop.

    `await run.execute()` where a loop runs, `run.run()` where none does. Messages between several TaskManagers
    go over loopback. Cancelling the coroutine cancels the job.

    With a `store`, checkpoints are kept there under the name `job`, and the job goes on from what another run has
    left. After a failure it begins again from the newest, as `restart` says, else 3 times after 1 s each;
    `trust_pickle` and `savepoint` as in `JobRecovery`. Each call of the store is made on a thread, so that the loop
    does not wait.

    A job with blocking exchanges runs region by region, and so does one with `num_slots`, in which that many slots are
    all there are; what fails of it begins again as `restart` says, without a store.

    Raises:
        SluiceError: the job cannot be deployed, or cannot go on from what is in the store.

    Raises (execute, run):
        SluiceError: the job failed for ever; the first error, after everything has been given back.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        trace: Trace | None = None,
        num_task_managers: int = 1,
        store: SnapshotStore | None = None,
        restart: RestartStrategy | None = None,
        job: str = "job",
        trust_pickle: bool = False,
        num_slots: int | None = None,
        savepoint: str | None = None,
    ) -> None:
        check_num_task_managers(num_task_managers)
        self.recovery: JobRecovery | None = None
        self._stopwatch = Stopwatch()
        self._trace = trace
        self._is_over = False
        if trace is not None:
            trace.use_clock(time.monotonic_ns, time.time_ns() - time.monotonic_ns())
        graph = environment.execution_graph(num_task_managers, secrets.token_bytes(8))
        self._questions = PressureQuestions(subtasks_of(graph))
        self._clock = ProcessingClock(environment.config.epoch_ms)
        self._master: JobInLoop | None = None
        self._only: LoopAttempt | LoopRegions
        self._regions: JobRegions | None = None
        if runs_by_regions(graph, num_slots):
            if store is not None:
                refuse_regions(graph, "there are no checkpoints with them, so leave the store out")
            self._only = by_region = LoopRegions(graph, trace, self._clock, self._stopwatch, num_slots, restart)
            self._regions = by_region.job
            return
        if store is None:
            self._only = LoopAttempt(graph, trace, self._clock, self._stopwatch)
            return
        self.recovery = JobRecovery(graph, store, job, restart, trust_pickle=trust_pickle, savepoint=savepoint)
        self._pools = [pool_of(environment.config, trace) for _ in range(num_task_managers)]
        self._master = JobInLoop(self.recovery, self._deploy, self._clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._newest.close()

    # -- the life of a run ---------------------------------------------------------------------------

    def run(self) -> AsyncRun:
        """Run the job to its end, in a loop of its own.

        Raises:
            LocalUsageError: this thread has a loop already; `await` the run there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.execute())
            return self
        raise LocalUsageError("an event loop runs here already: await AsyncRun(job).execute()")

    async def execute(self) -> AsyncRun:
        """Run the job to its end, in the loop that runs here."""
        self._stopwatch.start()
        self._loop = asyncio.get_running_loop()
        try:
            if self._master is not None:
                await self._master.run()
            else:
                await self._only.run(self._stopwatch.stop)
        except BaseException as error:
            self._newest.close_after(error)
            raise
        finally:
            self._is_over = True
            self._stopwatch.stop()
        self._newest.close()
        return self

    def crash(self, why: str = "its TaskManager is gone") -> None:
        """Let the job fail wherever it is, and begin again. While it waits for that, nothing happens. On any thread.

        Raises:
            LocalUsageError: it does not run, or has no store to begin again from.
        """
        if self._master is None or self._is_over or not self._stopwatch.is_started:
            raise LocalUsageError("the job does not run, or has no store; there is nothing to crash")
        self._master.fail(RemoteTransportError(f"the job was crashed: {why}"))

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def job_regions(self) -> JobRegions | None:
        """The regions of a job that runs region by region, and how far each is."""
        return self._regions

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more, nor will."""
        return self._is_over or (self._stopwatch.is_started and self._master is None and self._only.is_done)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or from start to end."""
        return self._stopwatch.elapsed_s

    def snapshot(self) -> JobSnapshot:
        """The whole job at one moment."""
        parts = [each.snapshot(self.elapsed_s * 1000) for each in self.deployments]
        stats = None if self.recovery is None else self.recovery.checkpoints.stats.snapshot()
        return replace(JobSnapshot.joined(parts), checkpoints=stats)

    def back_pressure(self, vertex: str) -> BackPressureStats | None:
        """As `ThreadedRun.back_pressure`; ask on the loop, between two awaits.

        Raises:
            LocalUsageError: there is no such vertex.
        """
        newest = self._newest
        at_work = newest.at_work if isinstance(newest, LoopRegions) else [newest]
        return self._questions.ask(vertex, [each.samples for each in at_work])

    def _command(self, command: Command) -> None:
        self._newest.do(command)

    def _savepoint(self, recovery: JobRecovery, name: str) -> CheckpointRequest:
        request = recovery.savepoint(name, self._clock.now_ms)
        self._on_news()
        return request

    # -- attempts --------------------------------------------------------------------------------------

    @property
    def _newest(self) -> LoopAttempt | LoopRegions:
        return self._only if self._master is None else self._master.attempt

    def _deploy(self, snapshots: Snapshots) -> LoopAttempt:
        assert self.recovery is not None, "there is a store"
        graph = self.recovery.graph
        return LoopAttempt(graph, self._trace, self._clock, self._stopwatch, snapshots, self._pools, self._on_news)

    def _on_news(self) -> None:
        if self._master is not None:
            self._master.note_news()
