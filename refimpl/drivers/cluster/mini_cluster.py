"""A whole cluster in one process: each of its parts on a thread, with real tasks, sockets and checkpoints."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from refimpl.cluster.dispatcher import JobRegistry, MemoryJobRegistry
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.restart import FixedDelayRestart, RestartStrategy
from refimpl.cluster.slot_manager import ManagedSlotState
from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.components.dispatcher import LeadingDispatcher
from refimpl.drivers.cluster.components.resource_manager import LeadingResourceManager
from refimpl.drivers.cluster.components.task_manager import TaskManager
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER, MemoryLeaders
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.drivers.cluster.tasks.job_place import Workplace
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.transport.streams import Security
from refimpl.errors import LocalUsageError

__all__ = ["MiniCluster"]

_SECONDS_TO_END = 15.0


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of the cluster: its loop, and how what it has begun is ended."""

    loop: ComponentLoop
    end: Callable[[], object]


class MiniCluster:
    """A Dispatcher, a ResourceManager and `num_task_managers` with `num_slots` each; checkpoints are kept in `folder`.

    Its jobs are in `registry`; without one, in memory. Its parts speak with each other under `security`. They are
    called `dispatcher`, `resource-manager` and `tm-0`, `tm-1`, …; `crash` ends one without a word, `revive` begins its
    next life. Leaving a `with` block ends all. `bugs` are errors that ended a part and that nobody foresaw.

    Flink:   MiniCluster (runtime.minicluster), 1.11.4
    """

    def __init__(
        self,
        folder: Path,
        num_task_managers: int = 3,
        num_slots: int = 2,
        make_strategy: Callable[[], RestartStrategy] = lambda: FixedDelayRestart(3, 1_000.0),
        registry: JobRegistry | None = None,
        security: Security | None = None,
    ) -> None:
        self.bugs: list[BaseException] = []
        self._store = FileStore(folder, fsync=False)
        self._num_slots = num_slots
        self._make_strategy = make_strategy
        self._secret = ClusterSecret.new()
        self._security = security
        self._leaders = MemoryLeaders()
        self._registry = registry or MemoryJobRegistry()
        self._parts: dict[str, _Part] = {}
        self._num_lives = 0
        self._resource_manager: LeadingResourceManager | None = None
        self._clients: list[ClusterClient] = []
        for name in (RESOURCE_MANAGER, DISPATCHER, *(f"tm-{number}" for number in range(num_task_managers))):
            self.revive(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def names(self) -> list[str]:
        """The parts that are there."""
        return list(self._parts)

    def free_slots(self) -> int:
        """How many slots nobody has, as the ResourceManager knows; none where nobody leads."""
        manager = self._resource_manager
        slots = () if manager is None else manager.endpoint.slots.slots()
        return sum(state is ManagedSlotState.FREE for _, state in slots)

    def client(self, timeout_s: float = 60.0) -> ClusterClient:
        """Somebody who asks the Dispatcher."""
        client = ClusterClient(RpcService(self._secret, security=self._security), self._leaders, timeout_s)
        self._clients.append(client)
        return client

    def revive(self, name: str) -> None:
        """Begin the next life, or leadership, of a part that is not there.

        Raises:
            LocalUsageError: it is there.
        """
        if name in self._parts:
            raise LocalUsageError(f"{name} is there already")
        self._num_lives += 1
        loop = ComponentLoop(RpcService(self._secret, security=self._security), self._leaders, self.bugs.append)
        begin = {RESOURCE_MANAGER: self._begin_resource_manager, DISPATCHER: self._begin_dispatcher}
        end = begin.get(name, self._begin_task_manager)(name, loop)
        self._parts[name] = _Part(loop, end)
        loop.start()

    def crash(self, name: str) -> None:
        """End a part at once: it says nothing to anybody, and nobody hears more of it than that it is gone.

        Raises:
            LocalUsageError: it is not there.
        """
        if name not in self._parts:
            raise LocalUsageError(f"{name} is not there; there are {', '.join(self._parts) or 'no parts'}")
        part = self._parts.pop(name)
        part.loop.close()
        part.end()

    def close(self) -> None:
        """End everything. Safe to repeat."""
        for client in self._clients:
            client.close()
        endings = [threading.Thread(target=self.crash, args=(name,)) for name in self._parts]
        for ending in endings:
            ending.start()
        for ending in endings:
            ending.join()

    # -- parts -------------------------------------------------------------------------------------------

    def _begin_resource_manager(self, name: str, loop: ComponentLoop) -> Callable[[], object]:
        token = self._leaders.claim(name)
        self._resource_manager = manager = LeadingResourceManager(token, loop)
        loop.add(manager)
        self._leaders.publish(name, (manager.endpoint.address, token))
        return _nothing

    def _begin_dispatcher(self, name: str, loop: ComponentLoop) -> Callable[[], object]:
        token = self._leaders.claim(name)
        dispatcher = LeadingDispatcher(token, loop, self._leaders, self._registry, self._store, self._make_strategy)
        loop.add(dispatcher)
        self._leaders.publish(name, (dispatcher.endpoint.address, token))
        return dispatcher.end

    def _begin_task_manager(self, name: str, loop: ComponentLoop) -> Callable[[], object]:
        token = FencingToken(self._num_lives, secrets.token_bytes(16))
        task_manager = TaskManager(name, self._num_slots, token, loop, Workplace(self._store, security=self._security))
        loop.add(task_manager)
        return lambda: task_manager.end(_SECONDS_TO_END)


def _nothing() -> None:
    """It has begun nothing elsewhere."""
