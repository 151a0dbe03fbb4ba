"""What one subtask produces for who reads along: a queue for each of its consumers, and the pool they share."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.producer.blocking_subpartition import BlockingSubpartition
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.dirty_channels import DirtyChannels
from refimpl.producer.overtaking import overtake, put_recovered
from refimpl.producer.result_subpartition import SubpartitionState
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import Event
from refimpl.trace import Trace

__all__ = ["ResultPartition"]


class ResultPartition(BufferWritingResultPartition):
    """An output that is read while it is written: a pipelined one.

    Flink:   ResultPartition (runtime.io.network.partition), 1.11.4; PipelinedResultPartition, 1.12
    """

    rules: type[SubpartitionQueue] = PipelinedSubpartition
    subpartitions: list[SubpartitionQueue]

    def __init__(
        self,
        name: str,
        num_subpartitions: int,
        pool: LocalBufferPool,
        config: Config,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(name, pool, config)
        self._dirty = DirtyChannels()
        self.subpartitions = [self.rules(index, name, trace, self._dirty) for index in range(num_subpartitions)]

    @property
    def is_finished(self) -> bool:
        """Whether nothing is added to any channel any more."""
        return not any(subpartition.producer_state is SubpartitionState.OPEN for subpartition in self.subpartitions)

    @property
    def is_consumed(self) -> bool:
        """Whether every reader has come and gone; then nobody needs the queued buffers."""
        return all(subpartition.view.is_consumed for subpartition in self.subpartitions)

    @property
    def has_unannounced_data(self) -> bool:
        """Whether a flush would make something available."""
        return bool(self._dirty) and any(self.subpartitions[index].has_unannounced_data for index in self._dirty)

    def use(self, rules: type[SubpartitionQueue | BlockingSubpartition]) -> None:
        """Put a subpartition of class `rules` in the place of each, between two steps of the task that writes here.

        The queues, their marks and their readers stay; the old subpartitions are empty and released. Rules of blocking
        results change nothing.
        """
        if not issubclass(rules, SubpartitionQueue):
            return
        for index, old in enumerate(self.subpartitions):
            self.subpartitions[index] = rules(index, self.name)
            self.subpartitions[index].take_over(old)

    def create_view(self, channel: int) -> PipelinedSubpartitionView:
        """The way to read one channel, for its one reader."""
        return self.subpartitions[channel].view

    def overtake(self, event: Event) -> list[bytes]:
        """Queue the same event for every channel, before all that waits there; what waits, as bytes for each channel.

        Buffers stay open: what is committed of them is among these bytes.

        Flink:   ResultPartition.addBufferConsumer with priority, 1.11.4
        Differs: Flink finishes the open buffers first.
        """
        shared = BufferConsumer.of_buffer(event_to_buffer(event, self.config.flink_version))
        passed = [overtake(subpartition, shared.copy()) for subpartition in self.subpartitions]
        shared.close()
        return passed

    def put_recovered(self, channel: int, data: bytes) -> None:
        """Queue what a checkpoint has of one channel, before anything is written."""
        self.num_bytes_recovered += len(data)
        put_recovered(self.subpartitions[channel], data, self.config.segment_size_bytes)

    def flush(self, channel: int) -> None:
        self.subpartitions[channel].flush()

    def flush_all(self) -> None:
        """Flush every channel that has something to flush; the others cost nothing."""
        for index in self._dirty.take():
            self.subpartitions[index].flush_dirty()

    def next_deadline(self, now_ms: float) -> float | None:
        """When `on_timeout` wants to be called, in ms; `None` if nothing waits to be flushed."""
        return self.flusher.next_deadline(now_ms, self.has_unannounced_data)

    def on_timeout(self, now_ms: float, since_ms: float | None = None) -> None:
        """Flush if the deadline has passed.

        A driver that does not see each write cannot know the deadline: it calls once per timeout, and `since_ms` is
        when it called last. What waits may have waited from then on.
        """
        if self.flusher.is_due(now_ms, since_ms):
            self.flush_all()
