"""How many TaskManagers to start for wishes that no slot is there for, and which of them to end again.

To start: as many as the waiting wishes fill, less those that are on their way, and never more than `max_workers` with
those that are there. To end: each worker that nobody has used for the idle time, and no TaskManager that is no worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refimpl.errors import ConfigError

__all__ = ["TASK_MANAGER_IDLE_TIMEOUT_MS", "OnDemand"]

TASK_MANAGER_IDLE_TIMEOUT_MS = 30_000.0


@dataclass(frozen=True, slots=True)
class OnDemand:
    """The rule for workers, TaskManagers that can be started, of `slots_per_worker` slots each; with 0 there are none.

    `max_workers` is the most at a time, without it any number. A worker's name begins with `name_prefix`; others are
    not ended, since nobody would bring them back. Times are in ms.

    Raises:
        ConfigError: a number or a time cannot be.

    Flink:   taskmanager.numberOfTaskSlots, resourcemanager.taskmanager-timeout, slotmanager.number-of-slots.max, 1.11.4
    Differs: the most is given in workers, not in slots.
    """

    slots_per_worker: int = 0
    idle_timeout_ms: float = TASK_MANAGER_IDLE_TIMEOUT_MS
    max_workers: int | None = None
    name_prefix: str = ""

    def __post_init__(self) -> None:
        if self.slots_per_worker < 0:
            raise ConfigError("slots_per_worker", self.slots_per_worker, "it is a number from 0")
        if self.max_workers is not None and self.max_workers < 1:
            raise ConfigError("max_workers", self.max_workers, "it is a number from 1")
        if not self.idle_timeout_ms > 0:
            raise ConfigError("idle_timeout_ms", self.idle_timeout_ms, "it is a time above 0 ms")

    def is_worker(self, task_manager: str) -> bool:
        """Whether a TaskManager, by its address, is one that can be started."""
        return self.slots_per_worker > 0 and task_manager.startswith(self.name_prefix)

    def num_to_start(self, num_waiting: int, num_starting: int, num_there: int) -> int:
        """How many more for so many wishes without a slot, with so many workers on their way and so many there."""
        if self.slots_per_worker == 0:
            return 0
        missing = -(-num_waiting // self.slots_per_worker) - num_starting
        if self.max_workers is not None:
            missing = min(missing, self.max_workers - num_starting - num_there)
        return max(0, missing)

    def next_end(self, idle_since_ms: Mapping[str, float]) -> float | None:
        """When the first of the TaskManagers that are idle since then is to end."""
        ends = [since + self.idle_timeout_ms for each, since in idle_since_ms.items() if self.is_worker(each)]
        return min(ends, default=None)

    def to_end(self, idle_since_ms: Mapping[str, float], now_ms: float) -> tuple[str, ...]:
        """Those of them whose time is over."""
        due = ((each, since + self.idle_timeout_ms) for each, since in idle_since_ms.items() if self.is_worker(each))
        return tuple(each for each, end_ms in due if end_ms <= now_ms)  # the sum that `next_end` says
