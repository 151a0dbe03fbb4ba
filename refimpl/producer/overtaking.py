"""An event that overtakes: it goes to the head of a queue, and what it passes is copied.

What is passed will be read behind the event, so for whoever is cut by it, it is still to come: it is the state of the
output. And when a job goes on from there, that state comes first in the queue, before anything new.
"""

from __future__ import annotations

from refimpl.memory.buffer import heap_buffer
from refimpl.memory.builder import BufferConsumer
from refimpl.memory.data_type import DataType
from refimpl.producer.subpartition_queue import SubpartitionQueue

__all__ = ["overtake", "put_recovered"]


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


def put_recovered(subpartition: SubpartitionQueue, data: bytes, segment_size_bytes: int) -> None:
    """Queue what a checkpoint has of this subpartition, in buffers outside the pool, before anything is written here.

    Flink:   PipelinedSubpartition.readRecoveredState (runtime.io.network.partition), 1.11.4
    Differs: outside the pool; Flink waits for buffers of the pool.
    """
    assert not subpartition.queue, f"{subpartition}: what is recovered comes first"
    for start in range(0, len(data), segment_size_bytes):
        buffer = heap_buffer(data[start : start + segment_size_bytes], DataType.DATA)
        subpartition.add(BufferConsumer.of_buffer(buffer, -1))
