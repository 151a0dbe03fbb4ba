"""What an operator remembers between records: values for each key."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from refimpl.producer.key_groups import java_identity

__all__ = ["KeyedState"]

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
