"""An event that overtakes: it goes to the head of a queue, and what it passes is copied.

What is passed will be read behind the event, so for whoever is cut by it, it is still to come: it is the state of the
output. And when a job goes on from there, that state comes first in the queue, before anything new.
"""

from __future__ import annotations

from refimpl.config import FlinkVersion
from refimpl.memory.buffer import heap_buffer
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.data_type import DataType
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.records.event_serializer import event_from_bytes, event_to_buffer
from refimpl.records.events import CheckpointBarrier

__all__ = ["has_waiting", "overtake", "overtake_waiting", "put_recovered"]


def overtake(subpartition: SubpartitionQueue, event: BufferConsumer) -> bytes:
    """Queue `event` at the head, behind those that did so before, and tell the reader; the data it passes, copied.

    Of an open buffer that is what is committed. Events are passed too, and are not among the bytes. Nothing if nobody
    will read here any more.

    Flink:   PipelinedSubpartition.add with priority, requestInflightBufferSnapshot, 1.11.4 and 2.2.1
    Differs: copies; Flink keeps references to the buffers until they are written.
    """
    passed = b"".join(each.unread for each in subpartition.queue if each.is_buffer)
    if not subpartition.enqueue_first(event):
        return b""
    subpartition.num_priority += 1
    subpartition.view.notify_priority()
    return passed


def has_waiting(subpartition: SubpartitionQueue, barrier: CheckpointBarrier) -> bool:
    """Whether a barrier that was queued here is here still, behind data or as the next to be read."""
    return _position_of(subpartition, barrier) is not None


def overtake_waiting(subpartition: SubpartitionQueue, barrier: CheckpointBarrier) -> bytes:
    """Let a barrier that waits in the queue go to the head, as one that overtakes, and tell the reader.

    The data it passes, copied: that before it. Nothing if it waits no more. Only in 2.x a barrier has a timeout.

    Flink:   PipelinedSubpartition.alignedBarrierTimeout (runtime.io.network.partition), 2.2.1
    """
    if (position := _position_of(subpartition, barrier)) is None:
        return b""
    queue = subpartition.queue
    passed = b"".join(each.unread for each in tuple(queue)[:position] if each.is_buffer)
    # What it passes was complete for the reader because of it, and stays so.
    subpartition.is_flush_requested |= bool(passed) and position == len(queue) - 1
    queue[position].close()
    del queue[position]
    queue.insert(
        subpartition.num_priority, BufferConsumer.of_buffer(event_to_buffer(barrier.as_unaligned(), FlinkVersion.V2_2))
    )
    subpartition.num_priority += 1
    subpartition.view.notify_priority()
    return passed


def _position_of(subpartition: SubpartitionQueue, barrier: CheckpointBarrier) -> int | None:
    for position, each in enumerate(tuple(subpartition.queue)):
        if each.buffer.data_type is DataType.TIMEOUTABLE_BARRIER:
            event = event_from_bytes(each.unread, FlinkVersion.V2_2)
            if isinstance(event, CheckpointBarrier) and event.checkpoint_id == barrier.checkpoint_id:
                return position
    return None


def put_recovered(subpartition: SubpartitionQueue, data: bytes, segment_size_bytes: int) -> None:
    """Queue what a checkpoint has of this subpartition, in buffers outside the pool, before anything is written here.

    Flink:   PipelinedSubpartition.readRecoveredState (runtime.io.network.partition), 1.11.4
    Differs: outside the pool; Flink waits for buffers of the pool.
    """
    assert not subpartition.queue, f"{subpartition}: what is recovered comes first"
    for start in range(0, len(data), segment_size_bytes):
        buffer = heap_buffer(data[start : start + segment_size_bytes], DataType.DATA)
        subpartition.add(BufferConsumer.of_buffer(buffer, -1))
