"""A job on several processes: each is one TaskManager, and they speak over TCP.

The job is written once, here; each process gets a copy and runs its part of it, on threads. Results
come back: what a sink does is done here, in the process that started the job.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Self

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.cluster.back_pressure import BackPressureStats
from refimpl.cluster.restart import RestartStrategy
from refimpl.drivers.control import BackgroundRun
from refimpl.drivers.job_threads import JobThreads
from refimpl.drivers.pressure_sampling import PressureQuestions, subtasks_of
from refimpl.drivers.processes.attempts import RemoteAttempts
from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.cluster import ProcessCluster, WhereItRuns
from refimpl.drivers.processes.heartbeats import HEARTBEAT_TIMEOUT_S, ProcessHeartbeats
from refimpl.drivers.processes.regions import RegionProcesses
from refimpl.drivers.processes.remote_samples import RemoteSamples
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.region_master import RegionMaster
from refimpl.drivers.regions import JobRegions, refuse_regions, runs_by_regions
from refimpl.drivers.savepoints import TakesSavepoints
from refimpl.drivers.transport.streams import Security
from refimpl.errors import LocalUsageError, RemoteTransportError, SluiceError
from refimpl.job.commands import Command, Pause, Resume, SwapFunction
from refimpl.job.environment import StreamEnvironment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.snapshots import JobSnapshot
from refimpl.state.store import MemoryStore, SnapshotStore
from refimpl.trace import Trace

__all__ = ["ProcessRun"]

_SECONDS_TO_CANCEL = 5.0


class ProcessRun(TakesSavepoints, BackgroundRun):
    """Runs a job on `num_task_managers` processes of this machine.

    `run()` starts it and waits; or `start()`, look at `snapshot()`, `swap(...)`, and `join()`.
    Leaving a `with` block ends all processes.

    A process that does not answer, since it was stopped, say, is not waited for long: it is shown as
    it was seen last.

    A job with blocking exchanges, or with a limit of `num_slots`, runs region by region: what is written for regions to
    come is in files of the process that has written it. A region that fails begins again as `restart` says, without
    those before it, unless a process has died that they have written in; without `restart`, the first failure is the
    last.

    Functions, readers and parts of the job are copied to the processes, wherever they were defined,
    and their changes there are not seen here. The functions of sinks are called here.
    `make_trace` makes the trace of each TaskManager in its own process, by its number.

    `cores` names a core for each TaskManager, to which all its threads keep (Linux): by number, of those in
    `os.sched_getaffinity(0)`. Bytes for each other are then in the cache of that core, and batches between
    processes are faster: `make bench ONLY=remote-batch/cores`. Only for cores that no other process wants: it
    would be waited for, even while other cores are free.

    With a `store` checkpoints are kept there under the name `job`, put by the processes themselves, and a failed job
    goes on from the newest, as `restart` says; 3 times after 1 s each if it is `None`. Processes stay, and those that
    have died are replaced; so is one that does not answer for `heartbeat_timeout_s`. The first attempts go on from what
    another run has left; `trust_pickle` and `savepoint` as in `JobRecovery`. Functions begin each time as they were
    when the run was made.

    Raises (constructor):
        LocalUsageError: something in the job belongs to this process, such as an open file; or `cores` are
            not to be had; or the store is none that processes share.
        RestoreRefusedError, LeadershipLostError, StoreError, CorruptFileError: as `JobRecovery.snapshots`.
        InsufficientBuffersError: a TaskManager's pool is too small for its part.
    Raises (run, join):
        SluiceError: the job failed for ever; the first error of the last attempts, after every process has ended.
        KeyboardInterrupt: passed on after every process has ended.
    Raises (from outside, while it runs):
        RemoteTransportError: a process does not answer; the others have done it, and it does it when it goes on.

    Flink:   a standalone cluster; here without a JobManager, this process stands in for it
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        num_task_managers: int = 2,
        security: Security | None = None,
        host: str = "127.0.0.1",
        make_trace: Callable[[int], Trace] | None = None,
        cores: Collection[int] | None = None,
        store: SnapshotStore | None = None,
        restart: RestartStrategy | None = None,
        job: str = "job",
        trust_pickle: bool = False,
        savepoint: str | None = None,
        heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S,
        num_slots: int | None = None,
    ) -> None:
        graph = environment.execution_graph(num_task_managers)  # what cannot be is refused here
        by_regions = runs_by_regions(graph, num_slots)
        if by_regions:
            _check_can_run_by_regions(graph, store, restart, make_trace)
        if store is not None:
            _check_can_restart(store, make_trace, heartbeat_timeout_s)
        where = WhereItRuns(_each_core(cores, num_task_managers), host, security, make_trace)
        super().__init__()
        self._questions = PressureQuestions(subtasks_of(graph))
        self._samples: dict[ChildProcess, RemoteSamples] = {}
        self._error: BaseException | None = None  # the first one, as soon as it has happened
        self._last_snapshot: JobSnapshot | None = None
        self._is_over = self._is_cancelled = False
        self._master: JobThreads[RemoteAttempts] | None = None
        self._heartbeats: ProcessHeartbeats | None = None
        self.recovery: JobRecovery | None = None
        if store is not None:
            graph = environment.execution_graph(num_task_managers, secrets.token_bytes(8))
            self.recovery = JobRecovery(graph, store, job, restart, trust_pickle=trust_pickle, savepoint=savepoint)
        saved = None if store is None or self.recovery is None else (store, self.recovery)
        self._cluster: ProcessCluster | RegionProcesses
        if by_regions:
            self._cluster = RegionProcesses(environment, where, self._on_change, num_slots, restart)
        else:
            self._cluster = ProcessCluster(environment, where, self._on_change, saved, self._on_unwanted)
        self._group = self._cluster.group
        self._begin(heartbeat_timeout_s)

    def _begin(self, heartbeat_timeout_s: float) -> None:
        """Start the processes, and make the first attempts in them, or let somebody see to that."""
        try:
            self._cluster.spawn_all()
            if self.recovery is None or isinstance(self._cluster, RegionProcesses):
                self._cluster.deploy()
            else:
                self._lead(self._cluster, self.recovery, heartbeat_timeout_s)
        except BaseException:
            self._close()
            raise

    def _lead(self, cluster: ProcessCluster, recovery: JobRecovery, heartbeat_timeout_s: float) -> None:
        """Begin to see to checkpoints and restarts, and to who is silent."""
        self._heartbeats = ProcessHeartbeats(lambda: [*self._group.children], heartbeat_timeout_s)
        self._heartbeats.start()
        clock = ProcessingClock(recovery.graph.job.config.epoch_ms)
        self._master = JobThreads(recovery, cluster, clock, self._on_over)

    # -- the life of a run ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all tasks; returns at once."""
        self._stopwatch.start()
        try:
            if self._master is not None:
                self._master.start()
            else:
                self._cluster.start_first()
        except BaseException as error:
            self._fail(error)
            self._close()
            raise
        return self

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; true if it has come, false if `timeout_s` passed first."""
        if not self._wait_until(lambda: self.is_done or self._group.is_closed or self._error is not None, timeout_s):
            return False
        try:
            if self._error is None and not self._group.is_closed:
                if self._master is None:
                    self._cluster.settle_last()
                self._last_snapshot = self._seen()
        except SluiceError as error:
            if not self._group.is_closed:  # else somebody has cancelled the run meanwhile
                self._fail(error)
        except BaseException:
            self.cancel()
            raise
        self._close()
        if self._error is not None:
            raise self._group.root_of(self._error)
        return True

    def cancel(self) -> None:
        """End every process, with all that it holds. Does nothing after the end. Checkpoints stay in the store."""
        self._close()

    # -- from outside ----------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether no task runs any more, nor will."""
        is_over = self._attempts.is_over if self._master is None else self._is_over
        return self._stopwatch.is_started and is_over

    @property
    def error(self) -> BaseException | None:
        """Why the job failed, as far as it is known now: the first error, or the death it followed from."""
        return None if self._error is None else self._group.root_of(self._error)

    @property
    def process_ids(self) -> list[int]:
        """The process of each TaskManager; after a restart there may be others."""
        return [child.process.pid for child in self._group.children]

    def snapshot(self) -> JobSnapshot:
        """The whole job; each TaskManager at one moment, one after the other. At last as it ended.

        One whose process has ended before the job, or does not answer, or waits for a restart, is shown as it was seen
        last.

        Raises:
            LocalUsageError: the processes have ended before anybody looked.
        """
        if self._last_snapshot is not None:
            return self._last_snapshot
        if not self._group.is_closed:
            try:
                self._group.look()
            except (LocalUsageError, RemoteTransportError):
                if self._attempts.is_wanted and not any(child.is_gone for child in self._group.children):
                    raise
        return self._seen()

    def _seen(self) -> JobSnapshot:
        stats = None if self._master is None else self._master.stats()
        return replace(self._group.seen(), checkpoints=stats)

    @property
    def is_paused(self) -> bool:
        """Whether it was paused, and not resumed since."""
        return self._cluster.is_paused

    def back_pressure(self, vertex: str) -> BackPressureStats | None:
        """As `ThreadedRun.back_pressure`; what processes have found is there with a later call, which waits for none.

        Raises:
            LocalUsageError: there is no such vertex.
        """
        children = [] if self._group.is_closed else self._group.children
        self._samples = {child: self._samples.get(child) or RemoteSamples(child) for child in children}
        try:
            seen = self._last_snapshot or self._seen()
        except LocalUsageError:  # nobody has looked yet
            seen = self.snapshot()
        for each in self._samples.values():
            each.look(seen)
            each.collect(self._questions.answered)
        return self._questions.ask(vertex, list(self._samples.values()))

    def _command(self, command: Command) -> None:
        if isinstance(command, SwapFunction) and self._cluster.sinks.swap(command.operator_name, command.function):
            return
        if isinstance(command, Pause | Resume):
            self._cluster.is_paused = isinstance(command, Pause) and not self._group.is_closed
        self._group.ask_all(command)

    def _savepoint(self, recovery: JobRecovery, name: str) -> CheckpointRequest:
        assert self._master is not None, "where recovery is, somebody decides about it"
        return self._master.savepoint(name)

    # -- the children --------------------------------------------------------------------------------

    @property
    def job_regions(self) -> JobRegions | None:
        """The regions of a job that runs region by region, and how far each is."""
        return self._cluster.job if isinstance(self._cluster, RegionProcesses) else None

    @property
    def _attempts(self) -> RemoteAttempts | RegionMaster[RemoteAttempts]:
        attempts = self._cluster.attempts
        assert attempts is not None, "the first ones are made where the run is"
        return attempts

    def _on_change(self) -> None:
        """The tasks of a TaskManager have ended, or its process has, or there is other news of them."""
        if self._master is not None:
            self._master.note_news()
        attempts = self._cluster.attempts
        with self._changed:
            if self.recovery is None and attempts is not None and not self._group.is_closed:
                self._error = self._error or attempts.error
                if self.is_done:
                    self._stopwatch.stop()
            self._changed.notify_all()

    def _on_unwanted(self, task: str, generation: int, key: str) -> None:
        if self._master is not None:
            self._master.disown(task, generation, key)

    def _on_over(self, error: BaseException | None) -> None:
        """The job has ended for ever, and nothing of it runs."""
        if isinstance(self._cluster, ProcessCluster):
            self._cluster.remove_leftovers(has_finished=error is None and not self._is_cancelled)
        with self._changed:
            self._error, self._is_over = self._error or error, True
            self._stopwatch.stop()
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _close(self) -> None:
        """End every process, with a word first, by force if that does not help."""
        self._is_cancelled = True
        if self._heartbeats is not None:
            self._heartbeats.end()
        if self._master is not None:
            self._master.cancel(_SECONDS_TO_CANCEL)
        self._cluster.close()
        with self._changed:
            self._changed.notify_all()
        if self._master is not None:
            self._master.cancel(_SECONDS_TO_CANCEL)  # again: it may have waited for a process


def _check_can_run_by_regions(
    graph: ExecutionGraph,
    store: SnapshotStore | None,
    restart: RestartStrategy | None,
    make_trace: Callable[[int], Trace] | None,
) -> None:
    """Refuse what cannot go with a job that runs region by region.

    Raises:
        LocalUsageError: which of it, and why.
    """
    if store is not None:
        refuse_regions(graph, "there are no checkpoints with them, so leave the store out")
    if restart is not None and make_trace is not None:
        raise LocalUsageError("a trace of a process that is replaced would begin anew: leave make_trace or restart out")


def _check_can_restart(
    store: SnapshotStore, make_trace: Callable[[int], Trace] | None, heartbeat_timeout_s: float
) -> None:
    """Refuse what cannot work with restarts.

    Raises:
        LocalUsageError: which of it, and why.
    """
    if isinstance(store, MemoryStore):
        raise LocalUsageError(
            "a MemoryStore is in the memory of one process, and TaskManagers in others put their states into copies of "
            "it that nobody sees; take a FileStore"
        )
    if make_trace is not None:
        raise LocalUsageError("a trace of a process that is replaced would begin anew: leave make_trace or store out")
    if isinstance(heartbeat_timeout_s, bool) or not 0 < heartbeat_timeout_s < threading.TIMEOUT_MAX:
        raise LocalUsageError(f"heartbeat_timeout_s={heartbeat_timeout_s!r} is no time of more than 0 s")


def _each_core(cores: Collection[int] | None, num_task_managers: int) -> list[int] | list[None]:
    """A core for each TaskManager, or none for any.

    Raises:
        LocalUsageError: they are not to be had; says which are.
    """
    if cores is None:
        return [None] * num_task_managers
    if not hasattr(os, "sched_getaffinity"):
        raise LocalUsageError("this system does not let a process choose its core: leave `cores` out")
    there = sorted(os.sched_getaffinity(0))
    chosen = list(cores) if isinstance(cores, Collection) else []
    if len(chosen) != num_task_managers or not all(type(core) is int and core in there for core in chosen):
        raise LocalUsageError(
            f"cores is to name one for each of {num_task_managers} TaskManagers, of those this process may use, "
            f"{', '.join(map(str, there))}; it is {cores!r}"
        )
    return chosen
