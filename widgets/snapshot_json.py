"""Snapshots as JSON and back: what is the same in many of them is written once.

A node is `[kind, field, ...]`; a field that is a snapshot itself, or a tuple, stands there as `[number of its
node]`. From one step to the next nearly everything stays, so a thousand snapshots take little more than one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import repeat
from typing import Any, get_args, get_origin, get_type_hints

from refimpl.checkpoint import (
    CheckpointCounts,
    CheckpointFailureReason,
    CheckpointStats,
    CheckpointStatsSnapshot,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskStats,
)
from refimpl.config import CheckpointingMode
from refimpl.consumer import AlignmentSnapshot, BufferManagerSnapshot, ChannelSnapshot, GateSnapshot
from refimpl.exchange import FrameSnapshot, ReaderSnapshot, WireSnapshot
from refimpl.job import JobSnapshot, TaskManagerSnapshot
from refimpl.memory import DataType, LocalPoolSnapshot, NetworkPoolSnapshot
from refimpl.producer import PartitionSnapshot, QueuedBufferSnapshot, SubpartitionSnapshot
from refimpl.state import CheckpointKind
from refimpl.task import Cut, Progress, TaskSnapshot, TaskTimes

__all__ = ["from_nodes", "to_nodes"]

Node = list[Any]

_TUPLE, _BYTES = "tuple", "bytes"
_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (
        AlignmentSnapshot,
        BufferManagerSnapshot,
        ChannelSnapshot,
        CheckpointCounts,
        CheckpointStats,
        CheckpointStatsSnapshot,
        Cut,
        FrameSnapshot,
        GateSnapshot,
        JobSnapshot,
        LocalPoolSnapshot,
        NetworkPoolSnapshot,
        PartitionSnapshot,
        QueuedBufferSnapshot,
        ReaderSnapshot,
        RestoredCheckpoint,
        SubpartitionSnapshot,
        SubtaskStats,
        TaskManagerSnapshot,
        TaskTimes,
        TaskSnapshot,
        WireSnapshot,
    )
}
_ENUMS: dict[str, type[Enum]] = {
    each.__name__: each
    for each in (CheckpointFailureReason, CheckpointKind, CheckpointStatus, CheckpointingMode, DataType, Progress)
}


def to_nodes(snapshots: Sequence[JobSnapshot]) -> tuple[list[Node], list[int]]:
    """All nodes, each after those it names, and for each snapshot the number of its node."""
    nodes: list[Node] = []
    numbers: dict[object, int] = {}

    def write(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        known = numbers.get(value)
        if known is None:
            node = _node(value, write)
            known = numbers[value] = len(nodes)
            nodes.append(node)
        return [known]

    return nodes, [write(snapshot)[0] for snapshot in snapshots]


def _node(value: Any, write: Callable[[Any], Any]) -> Node:
    if isinstance(value, tuple):
        return [_TUPLE, *map(write, value)]
    if isinstance(value, bytes):
        return [_BYTES, value.hex()]
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    fields = (getattr(value, field.name) for field in dataclasses.fields(value))
    return [type(value).__name__, *map(write, fields)]


def from_nodes(nodes: Sequence[Node], roots: Sequence[int]) -> list[JobSnapshot]:
    """The snapshots again.

    Raises:
        KeyError, TypeError, ValueError, IndexError: this is not what `to_nodes` wrote.
    """
    made: list[Any] = []
    for kind, *fields in nodes:
        if kind in (_BYTES, *_ENUMS):
            made.append(bytes.fromhex(fields[0]) if kind == _BYTES else _ENUMS[kind][fields[0]])
            continue
        values = [made[field[0]] if isinstance(field, list) else field for field in fields]
        made.append(tuple(values) if kind == _TUPLE else _made(_CLASSES[kind], values))
    snapshots = [made[root] for root in roots]
    if not all(isinstance(each, JobSnapshot) for each in snapshots):
        raise TypeError("not every root is a snapshot of a job")
    return snapshots


def _made(class_: type, values: Sequence[Any]) -> Any:
    """A snapshot of these fields, if each is what it must be: a view that draws it trusts in that."""
    for (name, hint), value in zip(_hints(class_).items(), values, strict=False):
        if not _fits(value, hint):
            raise TypeError(f"{class_.__name__}.{name} is {value!r:.80}")
    return class_(*values)


@functools.cache
def _hints(class_: type) -> dict[str, Any]:
    """The types of its fields, in order."""
    return get_type_hints(class_)


def _fits(value: Any, hint: Any) -> bool:
    args = get_args(hint)
    if get_origin(hint) is tuple:
        is_any_length = args[-1] is Ellipsis
        if not isinstance(value, tuple) or not (is_any_length or len(value) == len(args)):
            return False
        return all(map(_fits, value, repeat(args[0]) if is_any_length else args))
    if args:  # a union
        return any(_fits(value, each) for each in args)
    if hint in (int, float):
        return isinstance(value, hint if hint is int else int | float) and not isinstance(value, bool)
    return isinstance(value, hint)
