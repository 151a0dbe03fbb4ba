"""What an operator remembers between records: values for each key, and timers in event time."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from refimpl.producer.key_groups import java_identity

__all__ = ["EventTimeTimers", "KeyedState"]

T = TypeVar("T")


class KeyedState(Generic[T]):
    """One value for each (key, namespace); a namespace is a window, or `None`. Keys are equal if they are in Java.

    Flink:   HeapKeyedStateBackend, StateTable (runtime.state.heap), 1.11.4
    """

    def __init__(self) -> None:
        self._values: dict[tuple[Hashable, Hashable], T] = {}

    def __len__(self) -> int:
        return len(self._values)

    def find(self, key: Hashable, namespace: Hashable = None) -> tuple[T, ...]:
        """The value alone, which may be `None` itself; nothing if there is none."""
        found = java_identity(key), namespace
        return (self._values[found],) if found in self._values else ()

    def get(self, key: Hashable, namespace: Hashable = None) -> T | None:
        """The value, or `None` if there is none."""
        return self._values.get((java_identity(key), namespace))

    def put(self, key: Hashable, namespace: Hashable, value: T) -> None:
        self._values[java_identity(key), namespace] = value

    def remove(self, key: Hashable, namespace: Hashable = None) -> T | None:
        """Forget the value and return it."""
        return self._values.pop((java_identity(key), namespace), None)


class EventTimeTimers:
    """Calls to make when event time reaches a moment; equal ones are kept once.

    Flink:   InternalTimerServiceImpl (streaming.api.operators), 1.11.4
    Differs: timers of one moment fire in the order they were registered; Flink's order is that of
             its heap.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Hashable, Hashable]] = []  # also those that were deleted, until their time
        self._numbers: dict[tuple[int, Hashable, Hashable], int] = {}  # timer -> the how manieth that was registered
        self._num_registered = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def register(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Fire for (key, namespace) when the watermark reaches `timestamp` (ms)."""
        timer = timestamp, java_identity(key), namespace
        if timer not in self._numbers:
            self._numbers[timer] = self._num_registered
            heapq.heappush(self._heap, (timestamp, self._num_registered, key, namespace))
            self._num_registered += 1

    def delete(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        """Do not fire for (key, namespace) at `timestamp`; nothing happens if there is no such timer."""
        self._numbers.pop((timestamp, java_identity(key), namespace), None)

    def advance(self, watermark: int) -> Iterator[tuple[int, Hashable, Hashable]]:
        """The timers due at `watermark`, earliest first, each removed as it is handed out."""
        while self._heap and self._heap[0][0] <= watermark:
            timestamp, number, key, namespace = heapq.heappop(self._heap)
            timer = timestamp, java_identity(key), namespace
            if self._numbers.get(timer) == number:
                del self._numbers[timer]
                yield timestamp, key, namespace
