"""Several serializers at one output: of the parts of a learner more than one is a serializer, or a part of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from refimpl.drivers import Simulation
from refimpl.memory import BufferBuilder
from refimpl.records import RecordSerializer, SerializationResult

__all__ = ["InTurn", "TakesSerializers"]


class TakesSerializers:
    """A job into which parts are swapped; serializers are kept in `serializers`, where another would replace them."""

    def __init__(self, job: Simulation) -> None:
        self._job = job
        self.serializers: list[Callable[[], RecordSerializer]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    def swap(self, **parts: Any) -> None:
        """What `Simulation.swap` does, but for serializers."""
        if "SpanningRecordSerializer" in parts:
            self.serializers.append(parts.pop("SpanningRecordSerializer"))
        if parts:
            self._job.swap(**parts)


class InTurn:
    """A serializer that gives each record to the next of several."""

    def __init__(self, makers: Sequence[Callable[[], RecordSerializer]]) -> None:
        self._all = [each() for each in makers]
        self._at = 0

    def serialize_record(self, record: bytes) -> None:
        self._at = (self._at + 1) % len(self._all)
        self._all[self._at].serialize_record(record)

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        return self._all[self._at].copy_to_buffer_builder(builder)

    def reset(self) -> None:
        self._all[self._at].reset()

    def prune(self) -> None:
        self._all[self._at].prune()
