"""TaskManagers on demand: who can start and stop them, and what becomes of the ResourceManager's orders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from refimpl.cluster.slot_manager import ReleaseWorker, StartWorkers
from refimpl.drivers.transport.few_warnings import logger

__all__ = ["START_RETRY_MS", "WORKER_PREFIX", "WorkerLauncher", "Workers"]

START_RETRY_MS = 3_000.0
WORKER_PREFIX = "worker-"

_log = logger("sluice.drivers.cluster")


class WorkerLauncher(Protocol):
    """Where TaskManagers run, each under a name: containers, machines, or processes beside this one.

    Flink:   ResourceManagerDriver (runtime.resourcemanager.active), 1.12; ActiveResourceManager, 1.11.4
    """

    def start(self, name: str) -> None:
        """Let a TaskManager begin; whether it comes, it says itself.

        Raises:
            OSError: it cannot be started.
        """

    def stop(self, name: str) -> None:
        """End a TaskManager, and return when it has; one that has ended, or never was, is fine."""

    def stop_aside(self, name: str) -> None:
        """Begin to end it, and return at once: for who may not wait."""

    def list(self) -> Sequence[str]:
        """Those that were started and have not ended, whoever has started them."""


class Workers:
    """The workers that one ResourceManager, under `epoch`, has ordered from `launcher`; times in ms.

    No name is given twice. One that cannot be started, or ends before it has registered, is lost, and is said to be so
    after 3 s: who orders another one at once would do nothing else.

    Flink:   ActiveResourceManager (runtime.resourcemanager), resourcemanager.start-worker.retry-interval, 1.11.4
    """

    def __init__(self, launcher: WorkerLauncher, epoch: int, retry_ms: float = START_RETRY_MS) -> None:
        self._launcher = launcher
        self._epoch = epoch
        self._retry_ms = retry_ms
        self._num_started = 0
        self._starting: set[str] = set()
        self._lost_at_ms: list[float] = []

    @property
    def next_deadline(self) -> float | None:
        """When `num_lost` wants to be asked, in ms."""
        return min((at + self._retry_ms for at in self._lost_at_ms), default=None)

    def carry_out(self, orders: Iterable[StartWorkers | ReleaseWorker], now_ms: float) -> None:
        """Do what the ResourceManager wants."""
        for order in orders:
            match order:
                case StartWorkers(number):
                    for _ in range(number):
                        self._start(now_ms)
                case ReleaseWorker(task_manager):
                    self._starting.discard(name := _name_in(task_manager))
                    self._launcher.stop_aside(name)

    def num_lost(self, registered: Collection[str], now_ms: float) -> int:
        """How many that were ordered will not come, and are not told of yet; `registered` are addresses of those here.

        To be told to `SlotManager.workers_lost`.
        """
        self._starting -= {_name_in(each) for each in registered}
        gone = self._starting - set(self._launcher.list())
        self._starting -= gone
        self._lost_at_ms += [now_ms] * len(gone)
        due = [at for at in self._lost_at_ms if now_ms >= at + self._retry_ms]
        self._lost_at_ms = self._lost_at_ms[len(due) :]
        return len(due)

    def _start(self, now_ms: float) -> None:
        self._num_started += 1
        name = f"{WORKER_PREFIX}{self._epoch}-{self._num_started}"
        try:
            self._launcher.start(name)
        except OSError as error:
            _log.warning("%s cannot be started: %s", name, error)
            self._lost_at_ms.append(now_ms)
        else:
            self._starting.add(name)


def _name_in(address: str) -> str:
    """The worker whose TaskManager has this address: they have one name."""
    return address.rpartition("@")[0] or address
