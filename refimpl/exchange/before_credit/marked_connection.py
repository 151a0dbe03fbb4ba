"""The producer's end without credits: whatever is there is sent, up to the high water mark."""

from __future__ import annotations

from collections.abc import Callable

from refimpl.config import UNBOUNDED, Config
from refimpl.exchange.before_credit.water_marks import WaterMarks
from refimpl.exchange.fair_turns import PartitionRequestQueue
from refimpl.exchange.messages import ResultPartitionId
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.exchange.producer_credit import PartitionProvider, SubpartitionReader
from refimpl.producer.subpartition_view import BufferAndBacklog
from refimpl.trace import Trace

__all__ = ["MarkedConnection", "UncreditedReader"]


class UncreditedReader(SubpartitionReader):
    """Reads one subpartition for one receiver: it may speak when there is something.

    Credit that comes all the same is counted, and is of no use.

    Flink:   SequenceNumberingViewReader (runtime.io.network.netty), 1.4 to 1.9
    """

    @property
    def is_available(self) -> bool:
        return self.view.is_data_available

    def poll(self) -> tuple[BufferAndBacklog, bool] | None:
        taken = self.view.poll()
        return None if taken is None else (taken, taken.is_more_available)


class MarkedConnection(ProducerConnection):
    """What one consumer TaskManager reads from this one; `marks` limit what is handed out and not written.

    Flink:   PartitionRequestQueue, NettyServer (runtime.io.network.netty), 1.4 to 1.9
    """

    def __init__(
        self,
        partitions: PartitionProvider,
        config: Config,
        name: str = "connection",
        on_task_event: Callable[[ResultPartitionId, bytes], bool] | None = None,
        trace: Trace | None = None,
        queue: PartitionRequestQueue | None = None,
        reader: type[SubpartitionReader] = UncreditedReader,
        marks: type[WaterMarks] = WaterMarks,
    ) -> None:
        super().__init__(partitions, config, name, on_task_event, trace, queue, reader)
        self.marks = marks.of(config)

    @property
    def has_data_to_send(self) -> bool:
        return self.marks.is_writable and super().has_data_to_send

    def data_to_send(self, max_bytes: int = UNBOUNDED) -> list[bytes | memoryview]:
        """The next whole frames; the last one is that which reaches `max_bytes` or exceeds the high water mark."""
        pieces: list[bytes | memoryview] = []
        num_bytes = 0
        while self.has_data_to_send and num_bytes < max_bytes:
            frame = super().data_to_send(1)
            frame_bytes = sum(map(len, frame))
            if frame_bytes:
                self.marks.hand_out(frame_bytes)
            pieces += frame
            num_bytes += frame_bytes
        return pieces

    def data_sent(self, num_bytes: int | None = None) -> None:
        num_written = self.queue.lent.num_pending if num_bytes is None else num_bytes
        super().data_sent(num_written)
        self.marks.confirm(num_written)
