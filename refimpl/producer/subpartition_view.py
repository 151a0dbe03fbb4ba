"""The reader's face of a subpartition: it is opened once, told of data, held up by a barrier, and closed.

A view outlives the rules behind it: a subpartition of other rules takes the old one's place, and its reader goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from refimpl.memory.buffer import BufferSlice
from refimpl.transitions import next_state

__all__ = [
    "VIEW_TRANSITIONS",
    "BufferAndBacklog",
    "PipelinedSubpartitionView",
    "ReadableSubpartition",
    "ViewEvent",
    "ViewState",
]


class BufferAndBacklog(NamedTuple):
    """The bytes of one poll, and how the queue stands behind them.

    Ownership: the buffer is the caller's to recycle. `sequence_number` counts deliveries,
    data and events, from 0.

    Flink:   ResultSubpartition.BufferAndBacklog (runtime.io.network.partition), 1.11.4
    """

    buffer: BufferSlice
    is_more_available: bool
    backlog: int
    is_event_next: bool
    sequence_number: int


class ReadableSubpartition(Protocol):
    """A subpartition as its view needs it; `owner` says in words whose it is."""

    index: int
    owner: str
    failure_cause: str | None

    @property
    def num_queued(self) -> int: ...

    @property
    def is_data_available(self) -> bool: ...

    @property
    def is_event_available(self) -> bool: ...

    @property
    def has_priority_event(self) -> bool: ...

    def poll(self) -> BufferAndBacklog | None: ...


class ViewState(Enum):
    """How far the one reader of a subpartition has come."""

    UNREAD = "unread"
    READING = "being read"
    BLOCKED = "blocked"
    CONSUMED = "consumed"


class ViewEvent(Enum):
    """What happens to a view: `BLOCK` when an event was delivered that blocks, the others by the reader."""

    OPEN = "open"
    BLOCK = "block"
    RESUME = "resume"
    CLOSE = "close"


VIEW_TRANSITIONS = {
    ViewState.UNREAD: {ViewEvent.OPEN: ViewState.READING, ViewEvent.CLOSE: ViewState.UNREAD},
    ViewState.READING: {ViewEvent.BLOCK: ViewState.BLOCKED, ViewEvent.CLOSE: ViewState.CONSUMED},
    ViewState.BLOCKED: {
        ViewEvent.BLOCK: ViewState.BLOCKED,
        ViewEvent.RESUME: ViewState.READING,
        ViewEvent.CLOSE: ViewState.CONSUMED,
    },
    ViewState.CONSUMED: {ViewEvent.CLOSE: ViewState.CONSUMED},
}


class PipelinedSubpartitionView:
    """The one reader's way to a subpartition, which may be replaced behind it.

    Ownership: what `poll` gives is the caller's to recycle.

    Raises (open, resume):
        LocalUsageError: the view was opened before; nothing blocks.

    Flink:   PipelinedSubpartitionView (runtime.io.network.partition), 1.11.4
    Differs: made with the subpartition; Flink's is made when a reader asks for it.
    """

    def __init__(self, subpartition: ReadableSubpartition) -> None:
        self.subpartition = subpartition
        self.state = ViewState.UNREAD
        self._on_data_available: Callable[[], None] | None = None
        self._on_priority: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"PipelinedSubpartitionView({self.subpartition!r})"

    @property
    def owner(self) -> str:
        return self.subpartition.owner

    @property
    def is_consumed(self) -> bool:
        """Whether the reader has come and gone."""
        return self.state is ViewState.CONSUMED

    @property
    def is_data_available(self) -> bool:
        return self.subpartition.is_data_available

    @property
    def is_event_available(self) -> bool:
        return self.subpartition.is_event_available

    @property
    def has_priority_event(self) -> bool:
        """Whether the next poll gives an event that has overtaken what waits."""
        return self.subpartition.has_priority_event

    @property
    def failure_cause(self) -> str | None:
        return self.subpartition.failure_cause

    def open(self, on_data_available: Callable[[], None], on_priority: Callable[[], None] | None = None) -> None:
        """Become the one reader; told at once if something is queued.

        `on_priority` is called in the place of `on_data_available` when an event has overtaken what waits.
        """
        self.state = next_state(VIEW_TRANSITIONS, self.state, ViewEvent.OPEN, self)
        self._on_data_available = on_data_available
        self._on_priority = on_priority
        if self.has_priority_event:
            self.notify_priority()
        if self.subpartition.num_queued:
            self.notify()

    def poll(self) -> BufferAndBacklog | None:
        """The next bytes, or `None` if there are none now."""
        return self.subpartition.poll()

    def block(self) -> None:
        """Hold the reader up behind the event that is being delivered."""
        self.state = next_state(VIEW_TRANSITIONS, self.state, ViewEvent.BLOCK, self)

    def resume(self) -> None:
        """Go on behind an event that blocked; told at once if there is something to read."""
        self.state = next_state(VIEW_TRANSITIONS, self.state, ViewEvent.RESUME, self)
        if self.has_priority_event:
            self.notify_priority()
        if self.is_data_available or self.is_event_available:
            self.notify()

    def notify(self) -> None:
        """Tell the reader, if there is one, that a poll is worth while."""
        if self._on_data_available is not None:
            self._on_data_available()

    def notify_priority(self) -> None:
        """Tell the reader, if there is one, that an event has overtaken what waits."""
        if self._on_priority is not None:
            self._on_priority()
        else:
            self.notify()

    def close(self) -> None:
        """Leave for good. The queued buffers stay; their owner decides what becomes of them."""
        self.state = next_state(VIEW_TRANSITIONS, self.state, ViewEvent.CLOSE, self)
        self._on_data_available = self._on_priority = None

    def forget_reader(self) -> None:
        """Tell nobody any more: the subpartition was released."""
        self._on_data_available = self._on_priority = None
