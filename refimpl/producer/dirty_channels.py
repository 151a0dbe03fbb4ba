"""The channels a flush must look at: those where something was published since their reader took note.

The writer says so itself, with the first record after that. So a flush of a thousand quiet channels costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refimpl.memory.builder import BufferConsumer

__all__ = ["ChannelWatch", "DirtyChannels"]


class DirtyChannels:
    """The dirty channels of one partition, by index, each at most once.

    A writer marks them without exclusion, while a flush takes them.
    """

    def __init__(self) -> None:
        self._marked: dict[int, None] = {}

    def __bool__(self) -> bool:
        return bool(self._marked)

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._marked))

    def mark(self, index: int) -> None:
        """Let the next flush look at channel `index`."""
        self._marked[index] = None

    def take(self) -> list[int]:
        """The dirty channels in the order of their index; from now on they are clean."""
        taken = sorted(self._marked)
        for index in taken:
            self._marked.pop(index, None)
        return taken


class ChannelWatch:
    """Waits for the next record in an open buffer of channel `index`, and marks the channel dirty then."""

    def __init__(self, index: int, dirty: DirtyChannels) -> None:
        self._index = index
        self._dirty = dirty
        self._watched: BufferConsumer | None = None

    def mark(self) -> None:
        """The channel is dirty, whatever its buffers say."""
        self._dirty.mark(self._index)

    def watch(self, consumer: BufferConsumer) -> None:
        """Become dirty with the next record in an open buffer; at once if there is one already."""
        if self._watched is not consumer:
            self._watched = consumer
            consumer.watch(self._on_news)
        if consumer.is_data_available:
            self._on_news()

    def watch_tail(self, queue: Sequence[BufferConsumer]) -> None:
        """Watch the one entry that is left, if it is still being written; behind others it is watched already."""
        if len(queue) == 1 and not queue[0].is_finished:
            self.watch(queue[0])

    def _on_news(self) -> None:
        self._watched = None
        self._dirty.mark(self._index)
