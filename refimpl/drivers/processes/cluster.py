"""The processes of a run, with what is deployed in them: the parent's side of a standalone cluster."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from refimpl.drivers.leftovers import remove_checkpoints_of, remove_leftovers_of
from refimpl.drivers.processes.attempts import RemoteAttempts
from refimpl.drivers.processes.child_process import ChildProcess
from refimpl.drivers.processes.group import SECONDS_TO_SETTLE, ProcessGroup
from refimpl.drivers.processes.messages import Deploy, JobOrder, Outgoing, RegionOrder, Saved, Settle, Start, pack
from refimpl.drivers.processes.sinks import SinkFunctions
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.transport.streams import Security
from refimpl.errors import LeadershipLostError, StoreError
from refimpl.job.commands import Pause
from refimpl.job.environment import StreamEnvironment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.laws.records import check_records
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["ProcessCluster", "WhereItRuns"]


@dataclass(frozen=True, slots=True)
class WhereItRuns:
    """What TaskManagers get beside their job: the core of each, or `None` for any, and how they reach each other."""

    cores: Sequence[int | None]
    host: str
    security: Security | None
    make_trace: Callable[[int], Trace] | None

    def order(
        self,
        job: JobOrder,
        number: int,
        graph: ExecutionGraph,
        deployment: int,
        saved: Saved | None = None,
        region: RegionOrder | None = None,
    ) -> Deploy:
        """What TaskManager `number` is told of a deployment of `graph`."""
        return Deploy(
            job,
            number,
            len(self.cores),
            graph.run_id,
            self.host,
            self.security,
            self.make_trace,
            graph.generation,
            saved,
            deployment,
            {(each.vertex.id, each.subtask): each.attempt for each in graph.vertices},
            region,
        )


class ProcessCluster:
    """A process for each TaskManager of a job; they stay from one deployment to the next, and dead ones are replaced.

    `attempts` are those deployed last. `on_change` is called when there is something to look at, `on_unwanted` as in
    `RemoteAttempts`. With `saved` the attempts keep their states in a store, and go on from what `recovery` says.
    """

    def __init__(
        self,
        environment: StreamEnvironment,
        where: WhereItRuns,
        on_change: Callable[[], None],
        saved: tuple[SnapshotStore, JobRecovery] | None = None,
        on_unwanted: Callable[[str, int, str], None] = lambda _task, _generation, _key: None,
    ) -> None:
        self.group = ProcessGroup()
        self.sinks = SinkFunctions(environment.graph.nodes)
        self.is_paused = False
        self.attempts: RemoteAttempts | None = None
        self._job = JobOrder.of(environment)
        self._where = where
        self._saved = saved
        self._on_change = on_change
        self._on_unwanted = on_unwanted
        self._graph = environment.execution_graph(len(where.cores), secrets.token_bytes(8))
        pack(self._job)  # what cannot be sent is refused before a process is there

    def spawn_all(self) -> None:
        """Start a process for each TaskManager.

        Raises:
            OSError: the system has no more.
        """
        for number in range(len(self._where.cores)):
            self.group.children.append(self._spawn(number))

    @property
    def graph(self) -> ExecutionGraph:
        """That of the attempts which are deployed, or are to be."""
        return self._graph if self._saved is None else self._saved[1].graph

    def deploy(self) -> RemoteAttempts:
        """Make the attempts of `graph`; those before are no more.

        Raises:
            LocalUsageError: the group is closed, or the store is none for processes.
            SluiceError: one could not be made; nothing is left of the others.
        """
        saved = None
        if self._saved is not None:
            store, recovery = self._saved
            self.group.replace_lost(self._spawn)
            if recovery.graph.generation:
                self.remove_leftovers()
            saved = Saved(store, recovery.restore_point())
        children, graph = dict(enumerate(self.group.children)), self.graph
        self.attempts = attempts = RemoteAttempts(
            graph.generation, graph.vertices, children, self.sinks, self._on_change, self._on_unwanted
        )
        try:
            orders = {child: pack(self._order(child.number, saved)) for child in children.values()}
            attempts.addresses = self.group.ask(orders, threading.TIMEOUT_MAX)
        except BaseException:
            if saved is not None:
                self.stop(attempts)
            raise
        return attempts

    def start(self, attempts: RemoteAttempts) -> None:
        """Let them run, or stand still if the run is paused."""
        self.group.ask_all(Start(attempts.addresses, attempts.deployment), threading.TIMEOUT_MAX)
        if self.is_paused:
            self.group.ask_all(Pause())

    def start_first(self) -> None:
        """Let those run that were deployed where the run was made."""
        assert self.attempts is not None, "they were deployed"
        self.start(self.attempts)

    def settle_last(self) -> None:
        """As `settle`, of those that were deployed last."""
        assert self.attempts is not None, "they were deployed"
        self.settle(self.attempts)

    def settle(self, attempts: RemoteAttempts) -> None:
        """After the last task: see that nothing is left, and remember how it all was.

        Raises:
            SluiceError: a process has ended, or does not answer.
            AssertionError: a law is broken.
        """
        parts = self.group.ask_all(Settle(attempts.deployment), SECONDS_TO_SETTLE)
        check_records([counts for counts, _ in parts])
        self.group.remember({number: snapshot for number, (_, snapshot) in enumerate(parts)})

    def stop(self, attempts: RemoteAttempts, _error: BaseException | None = None) -> None:
        """End the attempts; a process that does not let go of them is killed. Safe to repeat."""
        attempts.stop()
        self.group.stop()

    def close(self) -> None:
        """End every process. Safe to repeat."""
        self.group.close()

    def remove_leftovers(self, has_finished: bool = False) -> None:
        """Remove what killed attempts have left in the store; all checkpoints, once the job has finished for ever.

        What cannot be removed stays: nothing needs it to be gone.
        """
        if self._saved is None:
            return
        store, recovery = self._saved
        leader = recovery.checkpoints.leader
        with suppress(StoreError, LeadershipLostError):
            leader.check()
            if has_finished:
                remove_checkpoints_of(store, leader.store.job)
            else:
                remove_leftovers_of(store, leader.store.job, leader.epoch)

    def _spawn(self, number: int) -> ChildProcess:
        return ChildProcess(number, self._hear, self._lose, self._where.cores[number])

    def _order(self, number: int, saved: Saved | None) -> Deploy:
        return self._where.order(self._job, number, self.graph, self.graph.generation, saved=saved)

    def _hear(self, child: ChildProcess, message: Outgoing | Any) -> None:
        assert self.attempts is not None, f"{message} came before anything was deployed"
        self.attempts.hear(child, message)

    def _lose(self, child: ChildProcess) -> None:
        if self.attempts is not None:
            if self.group.is_closed:  # then they lose each other's connections, one after the other
                self.attempts.stop()
            self.attempts.lose(child)
        self._on_change()
