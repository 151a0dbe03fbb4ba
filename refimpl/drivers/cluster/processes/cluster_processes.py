"""The processes of a cluster on this machine: started, replaced when they die, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from refimpl.drivers.cluster.client import ClusterClient
from refimpl.drivers.cluster.high_availability.cluster_folder import ClusterFolder
from refimpl.drivers.cluster.high_availability.leaders import DISPATCHER, RESOURCE_MANAGER
from refimpl.drivers.cluster.high_availability.stored_leaders import StoredLeaders
from refimpl.drivers.cluster.processes.node_options import TASK_MANAGER, NodeOptions, node_command
from refimpl.drivers.cluster.rpc.service import RpcService
from refimpl.errors import LocalUsageError, RemoteTransportError

__all__ = ["ClusterProcesses"]

_SECONDS_TO_END = 20.0
_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_BETWEEN_LIVES = 0.2


class ClusterProcesses:
    """A Dispatcher, a ResourceManager and `num_task_managers` TaskManagers, a process each, of the cluster of `folder`.

    They are called `dispatcher`, `resource-manager` and `tm-0`, `tm-1`, …; what a process prints is in `logs`, in a
    file of its name. One that dies is replaced, as long as `replaces` is set. All end with this process, even if that
    is killed. Leaving a `with` block ends all.

    Flink:   start-cluster.sh, a supervisor of the kind that Flink leaves to others
    """

    def __init__(
        self, folder: Path, num_task_managers: int = 3, options: NodeOptions | None = None, *, replaces: bool = True
    ) -> None:
        self.folder = ClusterFolder.make(folder)
        self.replaces = replaces
        self._options = options or NodeOptions(TASK_MANAGER)
        self._lock = threading.RLock()
        self._is_closed = threading.Event()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in (RESOURCE_MANAGER, DISPATCHER, *(f"tm-{number}" for number in range(num_task_managers))):
                self._spawn(name)
        except BaseException:
            self.close()
            raise
        self._watch = threading.Thread(target=self._replace_dead, name="supervisor", daemon=True)
        self._watch.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def process_ids(self) -> dict[str, int]:
        """The processes that run, by name."""
        with self._lock:
            return {name: child.pid for name, child in self._children.items() if child.poll() is None}

    def wait_until_up(self, timeout_s: float = 60.0) -> None:
        """Wait until the Dispatcher answers.

        Raises:
            RemoteTransportError: it does not in time.
        """
        leaders = StoredLeaders(self.folder.leases)
        rpc = RpcService(self.folder.secret, self._options.host, security=self._options.security)
        client = ClusterClient(rpc, leaders, timeout_s)
        try:
            client.jobs()
        except RemoteTransportError as error:
            raise RemoteTransportError(f"{error} What the processes say is in {self.folder.logs}") from error
        finally:
            client.close()
            leaders.close()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process.

        Raises:
            LocalUsageError: there is none of that name.
        """
        with self._lock:
            child = self._children.get(name)
            if child is None or child.poll() is not None:
                raise LocalUsageError(f"no process {name} runs; there are {', '.join(self.process_ids) or 'none'}")
            child.send_signal(number)

    def close(self) -> None:
        """End all, by force what does not end by itself. Safe to repeat."""
        self._is_closed.set()
        with self._lock:
            children = list(self._children.values())
        for child in children:
            with suppress(OSError):
                child.send_signal(signal.SIGCONT)  # one that was stopped cannot end
            child.terminate()
        give_up_s = time.monotonic() + _SECONDS_TO_END
        for child in children:
            try:
                child.wait(max(0.0, give_up_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdin is not None:
                child.stdin.close()

    # -- processes ---------------------------------------------------------------------------------------

    def _spawn(self, name: str) -> None:
        role = name if name in (DISPATCHER, RESOURCE_MANAGER) else TASK_MANAGER
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        command = node_command(self.folder.folder, replace(self._options, role=role, name=name))
        with (self.folder.logs / f"{name}.log").open("ab") as log:
            # A process group of its own: Ctrl-C in a terminal is for this process, which then ends them.
            self._children[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, process_group=0
            )

    def _replace_dead(self) -> None:
        while not self._is_closed.wait(_SECONDS_BETWEEN_LOOKS):
            with self._lock:
                dead = [name for name, child in self._children.items() if child.poll() is not None]
                if not dead or not self.replaces or self._is_closed.wait(_SECONDS_BETWEEN_LIVES):
                    continue
                for name in dead:
                    stdin = self._children[name].stdin
                    if stdin is not None:
                        stdin.close()
                    self._spawn(name)


def _import_path() -> list[str]:
    """Where a process of this package finds what this one does."""
    return [str(Path(__file__).resolve().parents[4]), *(path for path in sys.path if path)]
