"""A channel whose producer lives in the same process: it reads the producer's queue directly.

Nothing is copied and there is no credit. The buffer goes from the producer's builder to the
consumer's deserializer and then home to the producer's pool; so what stops a producer here is its
own empty pool.
"""

from __future__ import annotations

from collections.abc import Callable

from refimpl.consumer.channel import ChannelSnapshot
from refimpl.consumer.channel_capture import ChannelCapture
from refimpl.producer.blocking_subpartition import BoundedBlockingView
from refimpl.producer.subpartition_view import BufferAndBacklog, PipelinedSubpartitionView

__all__ = ["LocalInputChannel"]


class LocalInputChannel:
    """Reads one subpartition of this process through its `view`.

    Flink:   LocalInputChannel (runtime.io.network.partition.consumer), 1.11.4
    Differs: never asks again for a partition: all there are in a process exist before its gates. An unaligned
             barrier is seen at once, as in 2.x; in 1.11 when it is polled.
    """

    def __init__(self, index: int, view: PipelinedSubpartitionView | BoundedBlockingView) -> None:
        self.index = index
        self.view = view
        self.capture: ChannelCapture | None = None
        self._is_released = False
        self._next_sequence_number = 0

    def __repr__(self) -> str:
        return f"LocalInputChannel({self.index} reads {self.view.subpartition!r})"

    def open(self, on_data_available: Callable[[], None]) -> None:
        self.view.open(on_data_available, None if self.capture is None else self.capture.note_arrival)

    def poll(self) -> BufferAndBacklog | None:
        piece = None if self._is_released else self.view.poll()
        if piece is not None:
            assert piece.sequence_number == self._next_sequence_number, (
                f"{self} got sequence number {piece.sequence_number}, not {self._next_sequence_number}"
            )
            self._next_sequence_number += 1
            if self.capture is not None and self.capture.is_copying and piece.buffer.is_buffer:
                self.capture.copy(piece.buffer.data)
        return piece

    def poll_priority(self) -> BufferAndBacklog | None:
        return self.poll() if not self._is_released and self.view.has_priority_event else None

    def begin_capture(self, checkpoint_id: int) -> None:
        """Copy what is polled from now on: what is not polled yet, its producer copies."""
        if self.capture is not None:
            self.capture.begin(checkpoint_id)

    def resume(self) -> None:
        self.view.resume()

    def release(self) -> None:
        if not self._is_released:
            self._is_released = True
            self.view.close()

    def snapshot(self) -> ChannelSnapshot:
        read = self.view.subpartition
        return ChannelSnapshot(self.index, f"{read.owner}[{read.index}]", read.num_queued, self._is_released)
