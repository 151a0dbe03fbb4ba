"""Calls to make when time reaches a moment, for a key and a namespace: a queue for each kind of time.

Whoever writes a snapshot needs `items` and `register` only: a queue that gets the items of another one, in their
order, fires as that one would have.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import TypeAlias

from refimpl.producer.key_groups import java_identity

__all__ = ["Timer", "TimerQueue"]

Timer: TypeAlias = tuple[int, Hashable, Hashable]
"""When (ms), for which key, and for which namespace: a window, or `None`."""

_FEW = 64


class TimerQueue:
    """The timers of one operator in one kind of time; equal ones are kept once. Keys are equal if they are in Java.

    Flink:   KeyGroupedInternalPriorityQueue of an InternalTimerServiceImpl (streaming.api.operators), 1.11.4
    Differs: timers of one moment fire in the order they were registered; Flink's order is that of
             its heap.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer, Hashable]] = []  # also those that were deleted, until their time
        self._numbers: dict[Timer, int] = {}  # timer, by the key's identity -> the how manieth that was registered
        self._num_registered = self._num_fired = self._num_deleted = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def num_changes(self) -> tuple[int, int, int]:
        """How many were registered, how many have fired, and how many were deleted."""
        return self._num_registered, self._num_fired, self._num_deleted

    @property
    def head(self) -> int | None:
        """When the earliest timer fires, in ms; `None` if there is none."""
        heap = self._heap
        while heap and not self._is_alive(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def register(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Fire for (key, namespace) when time reaches `timestamp` (ms)."""
        timer = timestamp, java_identity(key), namespace
        if timer not in self._numbers:
            self._numbers[timer] = self._num_registered
            heapq.heappush(self._heap, (timestamp, self._num_registered, timer, key))
            self._num_registered += 1
            if len(self._heap) > 2 * len(self._numbers) + _FEW:
                self._forget_deleted()

    def delete(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Do not fire for (key, namespace) at `timestamp`; nothing happens if there is no such timer."""
        if self._numbers.pop((timestamp, java_identity(key), namespace), None) is not None:
            self._num_deleted += 1

    def advance(self, time_ms: int) -> Iterator[Timer]:
        """The timers due at `time_ms`, earliest first, each removed as it is handed out.

        One that is registered meanwhile comes in the same round if it is due, and one that is deleted does not.
        """
        heap, numbers = self._heap, self._numbers
        while heap and heap[0][0] <= time_ms:
            timestamp, number, timer, key = heapq.heappop(heap)
            if numbers.get(timer) == number:
                del numbers[timer]
                self._num_fired += 1
                yield timestamp, key, timer[2]

    def items(self) -> list[Timer]:
        """All timers, in the order they would fire."""
        in_order = sorted(self._heap, key=lambda entry: entry[:2])
        return [(entry[0], entry[3], entry[2][2]) for entry in in_order if self._is_alive(entry)]

    def _forget_deleted(self) -> None:
        # In place: `advance` may be under way.
        self._heap[:] = [entry for entry in self._heap if self._is_alive(entry)]
        heapq.heapify(self._heap)

    def _is_alive(self, entry: tuple[int, int, Timer, Hashable]) -> bool:
        """Whether an entry of the heap has not been deleted since."""
        return self._numbers.get(entry[2]) == entry[1]
