"""One process of a cluster: it has one role, and lives until it is told to end, or can be of no more use."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.on_demand import OnDemand
from refimpl.cluster.restart import FixedDelayRestart
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.components.dispatcher import LeadingDispatcher
from refimpl.drivers.cluster.components.resource_manager import LeadingResourceManager
from refimpl.drivers.cluster.components.task_manager import TaskManager
from refimpl.drivers.cluster.components.workers import WORKER_PREFIX
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.election import Granted, LeaderElection
from refimpl.drivers.cluster.high_availability.leaders import RESOURCE_MANAGER
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.node_options import ROLES, TASK_MANAGER, NodeOptions, node_command
from refimpl.drivers.cluster.processes.process_launcher import ProcessLauncher
from refimpl.drivers.cluster.rpc.address import rpc_address
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.cluster.tasks.job_place import Workplace
from refimpl.errors import LocalUsageError, SluiceError

__all__ = ["ClusterNode"]

_SECONDS_TO_END = 10.0


class ClusterNode:
    """The process's part of the cluster of `folder`; `run` returns when it has ended.

    Flink:   ClusterEntrypoint, TaskManagerRunner (runtime.entrypoint, runtime.taskexecutor), 1.11.4
    """

    def __init__(self, folder: ClusterFolder, options: NodeOptions) -> None:
        if options.role not in ROLES:
            raise LocalUsageError(f"there is no role {options.role!r}, only {', '.join(ROLES)}")
        self._folder = folder
        self._options = options
        self._ends = threading.Event()
        self._trouble: BaseException | None = None
        self._leaders = StoredLeaders(folder.leases)
        self._rpc = RpcService(folder.secret, options.host, security=options.security)
        self._loop = ComponentLoop(self._rpc, self._leaders, self._fail)
        self._end_parts: list[Callable[[], object]] = []

    def end(self) -> None:
        """Let `run` return. Any thread, any time, also from a signal."""
        self._ends.set()

    def run(self) -> None:
        """Play the role until `end`.

        Raises:
            SluiceError: it cannot be played any more: the lead is lost, or nobody leads for five minutes.
            BaseException: a bug.
        """
        try:
            self._loop.start()
            if self._options.role == TASK_MANAGER:
                self._lend()
            else:
                self._lead()
        finally:
            self._loop.close()
            for end in self._end_parts:
                end()
            self._leaders.close()
        if self._trouble is not None:
            raise self._trouble

    def _fail(self, trouble: BaseException) -> None:
        self._trouble = self._trouble or trouble
        self._ends.set()

    # -- roles -------------------------------------------------------------------------------------------

    def _lend(self) -> None:
        """Be a TaskManager. Its token is that of a life: later ones of the same name have a higher epoch."""
        name = self._options.name or f"tm-{secrets.token_hex(3)}"
        token = FencingToken(time.time_ns() // 1_000_000, secrets.token_bytes(16))
        workplace = Workplace(self._folder.store, self._options.host, self._options.security)
        task_manager = TaskManager(name, self._options.num_slots, token, self._loop, workplace, self._options.heartbeat)
        self._loop.post(lambda _now_ms: self._loop.add(task_manager))
        self._end_parts.append(lambda: task_manager.end(_SECONDS_TO_END))
        while not self._ends.wait(1.0):
            if why := task_manager.endpoint.given_up:
                raise LocalUsageError(f"{name} is of no use any more: {why}")

    def _lead(self) -> None:
        """Want to lead, and do it when elected, until the lead is lost: then this life is over."""
        address = rpc_address(self._options.role, self._rpc.place)
        election = LeaderElection(self._folder.leases, self._options.role, address, self._options.lease_ms)
        try:
            while not self._ends.is_set():
                for news in election.step():
                    if not isinstance(news, Granted):
                        raise LocalUsageError(f"the {self._options.role} at {address} leads no more")
                    self._begin(news.token)
                    election.publish(news.token)
                self._ends.wait(max(0.0, election.next_deadline - time.monotonic()))
        finally:
            with suppress(SluiceError):
                election.release()

    def _begin(self, token: FencingToken) -> None:
        """Lead under this token; returns when it has begun."""
        begun = threading.Event()

        def begin(_now_ms: float) -> None:
            if self._options.role == RESOURCE_MANAGER:
                self._loop.add(self._resource_manager(token))
            else:
                dispatcher = self._dispatcher(token)
                self._end_parts.append(dispatcher.end)
                self._loop.add(dispatcher)
            begun.set()

        self._loop.post(begin)
        while not begun.wait(0.1) and not self._ends.is_set():
            pass  # the loop may have ended with a bug

    def _resource_manager(self, token: FencingToken) -> LeadingResourceManager:
        options = self._options
        if options.max_workers is None:
            return LeadingResourceManager(token, self._loop, options.heartbeat)
        launcher = ProcessLauncher(self._worker_command, self._folder.logs)
        self._end_parts.append(launcher.close)
        on_demand = OnDemand(options.num_slots, options.idle_timeout_ms, options.max_workers, WORKER_PREFIX)
        return LeadingResourceManager(token, self._loop, options.heartbeat, on_demand, launcher)

    def _worker_command(self, name: str) -> Sequence[str]:
        """What runs a TaskManager of this name in a process."""
        return node_command(self._folder.folder, replace(self._options, role=TASK_MANAGER, name=name))

    def _dispatcher(self, token: FencingToken) -> LeadingDispatcher:
        max_restarts, delay_ms = self._options.max_restarts, self._options.restart_delay_ms
        return LeadingDispatcher(
            token,
            self._loop,
            self._leaders,
            self._folder.jobs,
            self._folder.store,
            lambda: FixedDelayRestart(max_restarts, delay_ms),
            self._options.heartbeat,
        )
