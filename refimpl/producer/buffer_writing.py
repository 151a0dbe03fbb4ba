"""What a writer needs of the output it writes into, whoever reads it and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from refimpl.config import Config, FlinkVersion
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.pool_snapshots import LocalPoolSnapshot
from refimpl.producer.blocking_subpartition import BlockingSubpartition, BoundedBlockingView
from refimpl.producer.output_flusher import OutputFlusher
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_snapshot import SubpartitionSnapshot
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import Event

__all__ = [
    "BufferWritingResultPartition",
    "PartitionSnapshot",
    "WrittenSubpartition",
    "max_buffers",
    "required_buffers",
]


def required_buffers(num_subpartitions: int) -> int:
    """Buffers an output cannot start without: one for each channel, and one more.

    Flink:   ResultPartitionFactory.createBufferPoolFactory, 1.10 and later; the one more keeps the
             task available while every channel has a buffer open.
    """
    return num_subpartitions + 1


def max_buffers(num_subpartitions: int, config: Config) -> int:
    """Buffers an output may use at most: `buffers_per_channel` each and the floating ones.

    Flink:   ResultPartitionFactory.createBufferPoolFactory for PIPELINED_BOUNDED, 1.11.4
    """
    most = num_subpartitions * config.buffers_per_channel + config.floating_buffers_per_gate
    return max(required_buffers(num_subpartitions), most)


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """One result partition at one moment."""

    name: str
    pool: LocalPoolSnapshot
    subpartitions: tuple[SubpartitionSnapshot, ...]


class WrittenSubpartition(Protocol):
    """One channel of an output, as its writer and the laws see it; `queue` is what holds buffers of the pool."""

    index: int
    owner: str

    @property
    def queue(self) -> Sequence[BufferConsumer]: ...

    @property
    def num_queued(self) -> int: ...

    @property
    def is_released(self) -> bool: ...

    def add(self, consumer: BufferConsumer) -> bool: ...

    def finish(self, version: FlinkVersion) -> None: ...

    def release(self, failure_cause: str | None = None) -> None: ...

    def snapshot(self) -> SubpartitionSnapshot: ...


class BufferWritingResultPartition(ABC):
    """The output of one subtask for one edge of the job: a subpartition for each channel, and the pool they share.

    Ownership: owns `pool` and destroys it on `release`. Buffers that others hold by then return to the global pool one
    by one.

    Flink:   BufferWritingResultPartition (runtime.io.network.partition), 1.12; ResultPartition, 1.11.4
    """

    subpartitions: Sequence[WrittenSubpartition]

    def __init__(self, name: str, pool: LocalBufferPool, config: Config) -> None:
        self.name = name
        self.pool = pool
        self.config = config
        self.flusher = OutputFlusher(config.buffer_timeout_ms)
        self.num_bytes_recovered = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {len(self.subpartitions)} subpartitions)"

    @property
    def is_available(self) -> bool:
        """Whether the task should go on producing."""
        return self.pool.is_available

    def request_builder(self, channel: int) -> BufferBuilder | None:
        """A builder charged to `channel`, or `None`; its consumer is not queued yet."""
        return self.pool.request_builder(channel)

    def add(self, consumer: BufferConsumer, channel: int) -> bool:
        """Queue a buffer for one channel."""
        return self.subpartitions[channel].add(consumer)

    def broadcast_event(self, event: Event) -> None:
        """Queue the same event for every channel; all share one buffer, outside the pool."""
        shared = BufferConsumer.of_buffer(event_to_buffer(event, self.config.flink_version))
        for subpartition in self.subpartitions:
            subpartition.add(shared.copy())
        shared.close()

    def finish(self) -> None:
        """Queue the end on every channel."""
        for subpartition in self.subpartitions:
            subpartition.finish(self.config.flink_version)

    def release(self, failure_cause: str | None = None) -> None:
        """Drop every queued buffer and give the pool up; readers are told `failure_cause`, if any."""
        for subpartition in self.subpartitions:
            subpartition.release(failure_cause)
        self.pool.destroy()

    def snapshot(self) -> PartitionSnapshot:
        return PartitionSnapshot(self.name, self.pool.snapshot(), tuple(sub.snapshot() for sub in self.subpartitions))

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Whether nothing is added to any channel any more."""

    @abstractmethod
    def create_view(self, channel: int) -> PipelinedSubpartitionView | BoundedBlockingView:
        """The way to read one channel."""

    @abstractmethod
    def flush(self, channel: int) -> None:
        """Let the reader of one channel find what is written so far."""

    @abstractmethod
    def flush_all(self) -> None:
        """Let every reader find what is written so far."""

    @abstractmethod
    def next_deadline(self, now_ms: float) -> float | None:
        """When `on_timeout` wants to be called, in ms; `None` if nothing waits to be flushed."""

    @abstractmethod
    def on_timeout(self, now_ms: float, since_ms: float | None = None) -> None:
        """Flush if the deadline has passed."""

    @abstractmethod
    def overtake(self, event: Event) -> list[bytes]:
        """Queue the same event for every channel, before all that waits there; what waits, as bytes by channel."""

    @abstractmethod
    def put_recovered(self, channel: int, data: bytes) -> None:
        """Queue what a checkpoint has of one channel, before anything is written."""

    @abstractmethod
    def use(self, rules: type[SubpartitionQueue | BlockingSubpartition]) -> None:
        """Put a subpartition of class `rules` in the place of each of its kind."""
