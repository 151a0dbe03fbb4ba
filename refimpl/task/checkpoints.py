"""Barriers on their way through one task, and where the last one cut it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.producer.record_writer import RecordWriter
from refimpl.records.events import CancelCheckpointMarker, CheckpointBarrier
from refimpl.task.chain import OperatorChain

__all__ = ["Cut", "SubtaskCheckpoints"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a barrier has cut what a task does: so many records had come in by then, and gone out."""

    checkpoint_id: int
    num_records_in: int
    num_records_out: int


class SubtaskCheckpoints:
    """The checkpoints of one task: `last_id` has passed it, or never will; `last_cut` is that of the last barrier.

    Flink:   SubtaskCheckpointCoordinatorImpl (streaming.runtime.tasks), 1.11.4
    Differs: no state is saved.
    """

    def __init__(self, chain: OperatorChain, writers: Sequence[RecordWriter]) -> None:
        self.last_id = 0
        self.last_cut: Cut | None = None
        self._chain = chain
        self._writers = writers

    def pass_on(self, event: CheckpointBarrier | CancelCheckpointMarker) -> None:
        """Send an event behind all that has been emitted, to everybody who reads from here; a barrier is a cut."""
        self.last_id = max(self.last_id, event.checkpoint_id)
        if isinstance(event, CheckpointBarrier):
            num_records_out = sum(writer.num_records for writer in self._writers)
            self.last_cut = Cut(event.checkpoint_id, self._chain.num_records_in, num_records_out)
        for writer in self._writers:
            writer.broadcast_event(event)
