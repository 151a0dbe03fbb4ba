"""A process of a cluster before it runs: the role it is to play, how, and the command that runs it.

dispatcher        wants to lead the cluster's jobs; leads all of them when it is elected
resource-manager  wants to lead the cluster's slots
task-manager      lends its slots, to whoever leads
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from refimpl.cluster.heartbeat import HEARTBEAT_INTERVAL_MS, HEARTBEAT_TIMEOUT_MS, HeartbeatTimes
from refimpl.cluster.on_demand import TASK_MANAGER_IDLE_TIMEOUT_MS, OnDemand
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER
from refimpl.drivers.transport.tls import ClusterKeys

__all__ = ["NODE_COMMAND", "ROLES", "TASK_MANAGER", "NodeOptions", "node_command", "task_manager_in"]

TASK_MANAGER = "task-manager"
ROLES = (DISPATCHER, RESOURCE_MANAGER, TASK_MANAGER)
_LEASE_MS = 2_000


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a process plays its role. Only a TaskManager has a name and slots, only a Dispatcher restarts jobs.

    It listens on `host`, and beyond this machine needs the folder of the cluster's `keys`; with them it speaks with
    nobody who has not the same.

    With `max_workers` a ResourceManager starts so many TaskManagers when they are needed, and ends those that nobody
    has used for `idle_timeout_ms`; they end with it.

    Raises:
        ConfigError: a number or a time of those cannot be.
    """

    role: str
    name: str = ""
    num_slots: int = 2
    host: str = "127.0.0.1"
    keys: str | None = None
    max_restarts: int = 10
    restart_delay_ms: float = 500.0
    lease_ms: int = _LEASE_MS
    heartbeat_interval_ms: float = HEARTBEAT_INTERVAL_MS
    heartbeat_timeout_ms: float = HEARTBEAT_TIMEOUT_MS
    max_workers: int | None = None
    idle_timeout_ms: float = TASK_MANAGER_IDLE_TIMEOUT_MS

    def __post_init__(self) -> None:
        OnDemand(self.num_slots, self.idle_timeout_ms, self.max_workers)

    @property
    def security(self) -> ClusterKeys | None:
        """What its connections are protected by."""
        return None if self.keys is None else ClusterKeys.in_folder(self.keys)

    @property
    def heartbeat(self) -> HeartbeatTimes:
        """All processes of a cluster should have the same."""
        return HeartbeatTimes(self.heartbeat_interval_ms, self.heartbeat_timeout_ms)


NODE_COMMAND = (sys.executable, "-P", "-c", "from refimpl.drivers.cluster.processes.node_main import main; main()")
"""Python, with what it runs; a folder and the options of the role in JSON come behind it."""


def node_command(folder: Path, options: NodeOptions) -> list[str]:
    """What runs a process of the cluster of `folder` in such a role."""
    return [*NODE_COMMAND, str(folder), json.dumps(asdict(options))]


def task_manager_in(command: Sequence[str], folder: Path) -> str | None:
    """The name of the TaskManager of the cluster of `folder` that such a command runs; none if it is something else."""
    if len(command) != len(NODE_COMMAND) + 2 or command[-2] != str(folder.absolute()):
        return None
    options = json.loads(command[-1])
    return str(options["name"]) if options["role"] == TASK_MANAGER else None
