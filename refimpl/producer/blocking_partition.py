"""What one subtask produces for who reads it later: bytes that are kept until nobody wants them, and no queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.producer.blocking_subpartition import BlockingState, BlockingSubpartition, BoundedBlockingView
from refimpl.producer.bounded_blocking import BoundedBlockingSubpartition
from refimpl.producer.bounded_data import BoundedData
from refimpl.producer.buffer_writing import BufferWritingResultPartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.records.compression import BlockCodec
from refimpl.records.events import Event

__all__ = ["BlockingResultPartition"]


class BlockingResultPartition(BufferWritingResultPartition):
    """An output that is read when it is complete, by any number of readers, each from its beginning.

    Its writer waits for no reader: a buffer is home when it is written. Nobody waits for a flush, so there is none.

    Ownership: what is kept in `data`, for each channel, goes with `release`.

    Flink:   ResultPartition of type BLOCKING, 1.11.4; BoundedBlockingResultPartition, 1.12
             (runtime.io.network.partition)
    Differs: a buffer timeout of 0 flushes nothing here; in Flink each record would be an entry of its own.
    """

    subpartitions: list[BlockingSubpartition]

    def __init__(
        self,
        name: str,
        pool: LocalBufferPool,
        config: Config,
        data: Sequence[BoundedData],
        codec: BlockCodec | None = None,
        charge: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(name, pool, config)
        self.subpartitions = [
            BoundedBlockingSubpartition(index, name, each, codec, charge) for index, each in enumerate(data)
        ]

    @property
    def is_finished(self) -> bool:
        """Whether it is complete, and can be read."""
        return all(each.state is BlockingState.FINISHED for each in self.subpartitions)

    @property
    def is_released(self) -> bool:
        """Whether nobody can begin to read it any more."""
        return any(each.is_released for each in self.subpartitions)

    @property
    def num_bytes(self) -> int:
        """What its entries take, without their headers."""
        return sum(each.num_bytes_written for each in self.subpartitions)

    def create_view(self, channel: int) -> BoundedBlockingView:
        """Another reader of one channel, from its beginning.

        Raises:
            LocalUsageError: it is not complete, or has been released.
        """
        return self.subpartitions[channel].create_view()

    def flush(self, channel: int) -> None:
        """Nothing: nobody reads yet."""

    def flush_all(self) -> None:
        """Nothing: nobody reads yet."""

    def next_deadline(self, now_ms: float) -> float | None:
        """Never."""
        return None

    def on_timeout(self, now_ms: float, since_ms: float | None = None) -> None:
        """Nothing: nobody reads yet."""

    def overtake(self, event: Event) -> list[bytes]:
        """Refuse: there are no checkpoints with a blocking result.

        Raises:
            LocalUsageError: always.
        """
        raise LocalUsageError(f"{self}: nothing overtakes in a blocking result")

    def put_recovered(self, channel: int, data: bytes) -> None:
        """Refuse, as `overtake`.

        Raises:
            LocalUsageError: always.
        """
        raise LocalUsageError(f"{self}: a checkpoint has nothing of a blocking result")

    def use(self, rules: type[SubpartitionQueue | BlockingSubpartition]) -> None:
        """Put a subpartition of class `rules` in the place of each, between two steps of the task that writes here.

        What is written stays. Nothing if it is complete, or if the rules are for queues.
        """
        if issubclass(rules, BlockingSubpartition) and not (self.is_finished or self.is_released):
            self.subpartitions = [each.under_other_rules(rules) for each in self.subpartitions]
