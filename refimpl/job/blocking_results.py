"""The blocking results that one TaskManager keeps, from when they are begun until nobody needs them any more.

They outlive the tasks that have written them, and those that read them: a consumer that begins again reads again.
"""

from __future__ import annotations

from collections.abc import Callable

from refimpl.config import Config
from refimpl.errors import DiskBudgetError
from refimpl.exchange.messages import ResultPartitionId
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.producer.blocking_partition import BlockingResultPartition
from refimpl.producer.bounded_data import BoundedData, MemoryBoundedData
from refimpl.records.compression import BlockCodec

__all__ = ["BlockingResults", "DataMaker"]

DataMaker = Callable[[str], BoundedData]
"""Makes what a channel is kept in, by a name that no other has: one of the characters of a file name."""


def _in_memory(name: str) -> BoundedData:
    return MemoryBoundedData()


class BlockingResults:
    """The results by their ids, with `num_bytes` of disk in use, of `max_spill_bytes` at most.

    `make_data` makes what each channel is kept in; without it, that is memory. `codec` compresses, if there is one.

    Flink:   ResultPartitionManager (runtime.io.network.partition), 1.11.4
    Differs: there results take as much disk as there is.
    """

    def __init__(self, config: Config, make_data: DataMaker = _in_memory, codec: BlockCodec | None = None) -> None:
        self.num_bytes = 0
        self.codec = codec
        self._config = config
        self._make_data = make_data
        self._kept: dict[ResultPartitionId, BlockingResultPartition] = {}
        self._taken: dict[ResultPartitionId, int] = {}

    def __repr__(self) -> str:
        return f"BlockingResults({len(self._kept)} of {self.num_bytes} B)"

    @property
    def ids(self) -> tuple[ResultPartitionId, ...]:
        """Those that are here, complete or not."""
        return tuple(self._kept)

    def create(
        self, partition_id: ResultPartitionId, name: str, num_channels: int, pool: LocalBufferPool
    ) -> BlockingResultPartition:
        """Begin a result.

        Raises:
            SluiceError: there is no place to keep it.
        """
        assert partition_id not in self._kept, f"{name} is there already"
        stem = f"{partition_id.data_set_id.hex()}-{partition_id.number}-{partition_id.producer.id.hex()}"
        if partition_id.producer.attempt:
            stem += f"-{partition_id.producer.attempt}"
        data: list[BoundedData] = []
        try:
            data.extend(self._make_data(f"{stem}-{channel}") for channel in range(num_channels))
        except BaseException:
            for each in data:
                each.close()
            raise
        self._taken[partition_id] = 0
        made = BlockingResultPartition(
            name, pool, self._config, data, self.codec, lambda num_bytes: self._charge(partition_id, name, num_bytes)
        )
        self._kept[partition_id] = made
        return made

    def find(self, partition_id: ResultPartitionId) -> BlockingResultPartition | None:
        """A result that is here, complete or not."""
        return self._kept.get(partition_id)

    def release(self, partition_id: ResultPartitionId) -> None:
        """Drop a result; who reads it still comes to its end. Nothing if it is not here."""
        partition = self._kept.pop(partition_id, None)
        if partition is not None:
            self.num_bytes -= self._taken.pop(partition_id)
            partition.release()

    def close(self) -> None:
        """Drop all."""
        for partition_id in self.ids:
            self.release(partition_id)

    def _charge(self, partition_id: ResultPartitionId, name: str, num_bytes: int) -> None:
        most = self._config.max_spill_bytes
        if self.num_bytes + num_bytes > most:
            raise DiskBudgetError(name, num_bytes, self.num_bytes, most)
        self.num_bytes += num_bytes
        self._taken[partition_id] += num_bytes
