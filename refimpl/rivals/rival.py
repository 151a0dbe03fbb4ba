"""What the race asks of a system that pushes back, and what all of them share."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from refimpl.rivals.workload import RECORD_BYTES

__all__ = ["FOREVER", "Delayed", "Levels", "Rival"]

T = TypeVar("T")

FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class Levels:
    """How many records a system holds: in queues that have a bound, and in lists that have none.

    Whoever has taken a record out to work on it holds it no more. What is on a wire is counted where it was sent from.
    """

    queued: int
    unbounded: int = 0

    @property
    def num_bytes(self) -> int:
        return (self.queued + self.unbounded) * RECORD_BYTES


class Rival(Protocol):
    """A pure machine: no thread, no sleep, no clock. Times are ms of virtual time; a record is when it was emitted.

    `stage` and `branch` are numbers of `workload`. A stage has one record in hand at a time in each branch.
    """

    name: str

    @property
    def next_tick_ms(self) -> float:
        """When `on_tick` wants to be called; `FOREVER` if nothing waits for time to pass."""

    def on_tick(self, now_ms: float) -> None:
        """Do what is due by now."""

    def may_emit(self, branch: int, now_ms: float) -> float:
        """0 if a source may emit a record now; else after how many ms it asks again, `FOREVER`: when something moved.

        Whoever is told 0 emits.
        """

    def can_enqueue(self, stage: int, branch: int) -> bool:
        """Whether a stage's output has room for a record; a stage without room takes none."""

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        """Take the output of a stage; it comes to the next worker later: `arrive`."""

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        """Take in what has come over the wire for a stage."""

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        """The next record of a stage that is free, or `None`."""

    def measure(self) -> Levels: ...


class Delayed(Generic[T]):
    """Things on their way, in order, each there after the same time."""

    def __init__(self, delay_ms: float) -> None:
        self.delay_ms = delay_ms
        self._things: deque[tuple[float, T]] = deque()

    @property
    def next_ms(self) -> float:
        return self._things[0][0] if self._things else FOREVER

    def put(self, thing: T, now_ms: float) -> None:
        self._things.append((now_ms + self.delay_ms, thing))

    def take(self, now_ms: float) -> list[T]:
        """What has come by now."""
        came = list[T]()
        while self._things and self._things[0][0] <= now_ms:
            came.append(self._things.popleft()[1])
        return came
