"""Types that only state has: several values as one, nothing at all, and what has to be pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Hashable
from typing import Any, cast

from refimpl.errors import USER_CODE_RAISES, LocalUsageError, RemoteProtocolError, described, shown
from refimpl.producer.key_groups import java_identity, key_of_identity
from refimpl.records.types import BYTES, TypeSerializer, read_varint, write_varint

__all__ = ["PICKLE", "VOID", "ListType", "MapType", "PickleType", "is_pickled", "written_as"]


class VoidType:
    """The namespace of state that has none: `None`, in no bytes.

    Flink:   VoidNamespaceSerializer (runtime.state), 1.11.4 (one byte there)
    """

    name = "void"
    struct_format: str | None = None

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: object, target: bytearray) -> None:
        self.copy(value)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        return None, position

    def copy(self, value: object) -> object:
        if value is not None:
            raise LocalUsageError(f"{shown(value)} is a namespace, and this state has none")
        return None


class ListType:
    """How many elements, then each.

    Flink:   ListSerializer (api.common.typeutils.base), 1.11.4
    """

    struct_format: str | None = None

    def __init__(self, element: TypeSerializer) -> None:
        self.parts = (element,)
        self.name = f"list({element.name})"

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: Any, target: bytearray) -> None:
        write_varint(len(value), target)
        for element in value:
            self.parts[0].serialize(element, target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        count, position = read_varint(source, position)
        elements = []
        for _ in range(count):
            element, position = self.parts[0].deserialize(source, position)
            elements.append(element)
        return elements, position

    def copy(self, value: Any) -> object:
        return [self.parts[0].copy(element) for element in value]


class MapType:
    """How many entries, then each key with its value. The keys are told apart as Java does.

    Flink:   MapSerializer (api.common.typeutils.base), 1.11.4
    """

    struct_format: str | None = None

    def __init__(self, key: TypeSerializer, value: TypeSerializer) -> None:
        self.parts = (key, value)
        self.name = f"map({key.name}, {value.name})"

    def __repr__(self) -> str:
        return self.name

    def serialize(self, value: Any, target: bytearray) -> None:
        key_type, value_type = self.parts
        write_varint(len(value), target)
        for identity, part in value.items():
            key_type.serialize(key_of_identity(identity), target)
            value_type.serialize(part, target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        key_type, value_type = self.parts
        count, position = read_varint(source, position)
        entries: dict[Hashable, object] = {}
        for _ in range(count):
            key, position = key_type.deserialize(source, position)
            if not isinstance(key, Hashable):
                raise RemoteProtocolError(f"{shown(key)} at byte {position} cannot be a key")
            entries[java_identity(key)], position = value_type.deserialize(source, position)
        return entries, position

    def copy(self, value: Any) -> object:
        return {identity: self.parts[1].copy(part) for identity, part in value.items()}


class PickleType:
    """Whatever can be pickled: objects of the user's own classes. To read it is to run what it says.

    So it is only used where it is asked for, a checkpoint that has it says so, and it is read of a store that others
    may have written to only by those who say `trust_pickle=True`.

    Flink:   KryoSerializer plays this part, 1.11.4
    """

    name = "pickle"
    struct_format: str | None = None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "PICKLE"

    def serialize(self, value: object, target: bytearray) -> None:
        try:
            raw = pickle.dumps(value)
        except USER_CODE_RAISES as error:
            raise LocalUsageError(f"{shown(value)} cannot be pickled: {described(error)}") from None
        BYTES.serialize(raw, target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        raw, end = BYTES.deserialize(source, position)
        try:
            return pickle.loads(cast("bytes", raw)), end  # noqa: S301
        except USER_CODE_RAISES as error:
            raise RemoteProtocolError(f"a pickled value at byte {position}: {described(error)}") from None

    def copy(self, value: object) -> object:
        return copy.deepcopy(value)


VOID = VoidType()
PICKLE = PickleType()


def is_pickled(value_type: TypeSerializer) -> bool:
    """Whether values of this type are pickled, or have parts that are."""
    parts = [*getattr(value_type, "parts", ()), *getattr(value_type, "fields", ())]
    return isinstance(value_type, PickleType) or any(map(is_pickled, parts))


def written_as(value_type: TypeSerializer) -> str:
    """What a checkpoint calls a type: its name, and its attribute `version` where that is not 1, as in `fare/2`."""
    version = int(getattr(value_type, "version", 1))
    return value_type.name if version == 1 else f"{value_type.name}/{version}"
