"""Broadcast state as functions see it: both sides read, and only the side that every subtask gets may write."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.state.operator_state import BroadcastState, OperatorStateBackend

__all__ = ["BroadcastStates", "GuardedBroadcastState", "MapStateDescriptor"]


@dataclass(frozen=True, slots=True)
class MapStateDescriptor:
    """What a map is called, and the types of its keys and values. Equal names are the same map.

    Flink:   MapStateDescriptor (api.common.state), 1.11.4
    """

    name: str
    key_type: TypeSerializer = field(default=ANY, compare=False)
    value_type: TypeSerializer = field(default=ANY, compare=False)


class GuardedBroadcastState:
    """A map that every subtask fills with the same values: those that were broadcast.

    Flink:   BroadcastState and ReadOnlyBroadcastState (api.common.state), 1.11.4
    Differs: to write from the other side is refused when it is tried; in Flink that side has no methods for it.
    """

    def __init__(self, state: BroadcastState, states: BroadcastStates) -> None:
        self._state = state
        self._states = states

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._state

    def get(self, key: Hashable) -> Any:
        """The value of `key`; `None` if there is none."""
        return self._state.get(key)

    def items(self) -> list[tuple[Hashable, Any]]:
        """Each key with its value, in the order the keys were first put."""
        return self._state.items()

    def put(self, key: Hashable, value: Any) -> None:
        """Remember `value` for `key`.

        Raises:
            LocalUsageError: no broadcast value is in hand. So do `remove` and `clear`.
        """
        self._check(f"put({key!r}, …)")
        self._state.put(key, value)

    def remove(self, key: Hashable) -> None:
        """Forget `key`; nothing happens if there is no such."""
        self._check(f"remove({key!r})")
        self._state.remove(key)

    def clear(self) -> None:
        """Forget all."""
        self._check("clear()")
        self._state.clear()

    def _check(self, call: str) -> None:
        if not self._states.may_write:
            raise LocalUsageError(
                f"{call} on broadcast state {self._state.name!r} from the side that is not broadcast: only this "
                f"subtask would see it; write in process_broadcast_element, which every subtask calls"
            )


class BroadcastStates:
    """The maps of one operator, by name; `may_write` says whether what is in hand was broadcast."""

    def __init__(self, descriptors: Iterable[MapStateDescriptor], backend: OperatorStateBackend) -> None:
        self.may_write = False
        self._states = {
            each.name: GuardedBroadcastState(backend.broadcast_state(each.name, each.key_type, each.value_type), self)
            for each in descriptors
        }

    def get(self, descriptor: MapStateDescriptor) -> GuardedBroadcastState:
        """The map of this name.

        Raises:
            LocalUsageError: the stream was not broadcast with it.
        """
        state = self._states.get(descriptor.name)
        if state is None:
            names = ", ".join(map(repr, self._states))
            raise LocalUsageError(
                f"there is no broadcast state {descriptor.name!r} here, only {names}; "
                f"name it where the stream is broadcast"
            )
        return state
