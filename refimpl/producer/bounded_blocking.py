"""The rules of a channel that is read when it is finished, by any number of readers, each from its beginning.

Its producer waits for nobody: what is written goes to where it is kept, and the buffer goes home. So one or two buffers
for each channel are enough, and a consumer that has failed reads again without the producer.
"""

from __future__ import annotations

from refimpl.config import FlinkVersion
from refimpl.memory.builder import BufferConsumer
from refimpl.producer.blocking_subpartition import (
    BLOCKING_TRANSITIONS,
    BlockingEvent,
    BlockingState,
    BlockingSubpartition,
    BoundedBlockingView,
)
from refimpl.transitions import next_state

__all__ = ["BoundedBlockingSubpartition"]


class BoundedBlockingSubpartition(BlockingSubpartition):
    """A channel that is written as a whole, and then read by as many readers as there are.

    Flink:   BoundedBlockingSubpartition (runtime.io.network.partition), 1.11.4
    Differs: a flush writes what there is of an open buffer, and its rest later; in 1.11 the rest would be lost, so that
             nobody may flush, and 2.x ends the buffer.
    """

    def add(self, consumer: BufferConsumer) -> bool:
        """Take a buffer or an event, and write the one before.

        Returns whether it was taken. One that comes after the end, or when all is released, is closed instead.
        """
        if self.state is not BlockingState.WRITING:
            consumer.close()
            return False
        self.flush()
        if self.current is not None:
            self.current.close()
        self.current = consumer
        return True

    def flush(self) -> None:
        """Write what `current` has that is not written yet; nobody is told.

        Its piece is recycled, also where writing fails; what has no bytes is not written. A `current` that is finished
        and written is forgotten.
        """
        if self.current is None:
            return
        piece = self.current.take()
        try:
            if piece.size:
                self.write(piece)
        finally:
            piece.recycle()
        if self.current.is_finished:
            self.current = None

    def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> None:
        """Write what is left, and the end of the partition; from now on it can be read.

        Raises:
            LocalUsageError: it has finished before, or is released.
        """
        self.add(self.end_of_partition(version))
        self.flush()
        self.seal()

    def create_view(self) -> BoundedBlockingView:
        """Another reader, from the beginning: whoever comes before `finish`, or after a release, is refused.

        A refusal is a LocalUsageError.

        Raises:
            LocalUsageError: it is not finished, or is released.
        """
        next_state(BLOCKING_TRANSITIONS, self.state, BlockingEvent.READ, self)
        return self.new_view()
