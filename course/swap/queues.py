"""A learner's rules of a subpartition in a running job, with ours behind them.

Rules work on a queue that others use too. So before each call it is noted how the queue stands; if the call raises, or
answers what no rule may answer, all is put back and ours makes the same call.
"""

from __future__ import annotations

from typing import Any

from course.swap.guard import Guard
from refimpl.memory import BufferConsumer
from refimpl.producer import BufferAndBacklog, PipelinedSubpartition, SubpartitionQueue

__all__ = ["guarded_rules"]

_BOOKS = ("num_data_buffers", "is_flush_requested", "is_blocked", "num_buffers_total", "num_bytes_total",
          "_sequence_number")  # fmt: skip
_OF_AN_ENTRY = ("is_finished", "is_closed", "read_position", "written_bytes")


def guarded_rules(guard: Guard) -> type[SubpartitionQueue]:
    """The learner's class, each of its calls watched by `guard`."""
    part: Any = guard.part
    ours: Any = PipelinedSubpartition

    class Guarded(part):  # type: ignore[misc]  # the class is the learner's
        def count_backlog(self) -> Any:
            return _called(guard, self, part.count_backlog, ours.count_backlog, (int,), ())

        def add(self, consumer: BufferConsumer) -> Any:
            return _called(guard, self, part.add, ours.add, (bool,), (consumer,))

        def flush(self) -> Any:
            return _called(guard, self, part.flush, ours.flush, (type(None),), ())

        def poll(self) -> Any:
            return _called(guard, self, part.poll, ours.poll, (type(None), BufferAndBacklog), ())

    found: type[SubpartitionQueue] = Guarded
    return found


def _called(
    guard: Guard, queue: SubpartitionQueue, theirs: Any, ours: Any, kinds: tuple[type, ...], arguments: tuple[Any, ...]
) -> Any:
    """What theirs answers, if it answers one of `kinds`; what ours does otherwise."""
    if guard.is_out:
        return ours(queue, *arguments)
    before = _State(queue, *arguments)
    answer: Any = guard  # which is what nothing answers
    with guard.call():
        answer = theirs(queue, *arguments)
    if isinstance(answer, kinds):
        return answer
    if not guard.is_out:
        guard.take_out(f"{theirs.__name__} answered {answer!r}"[:80], None)
    before.put_back()
    return ours(queue, *arguments)


class _State:
    """How a queue, its books and its entries stood."""

    def __init__(self, queue: SubpartitionQueue, *joining: BufferConsumer) -> None:
        self._queue = queue
        self._entries = list(queue.queue)
        self._books = {name: getattr(queue, name) for name in _BOOKS}
        self._of_entries = [
            (entry, {name: getattr(entry, name) for name in _OF_AN_ENTRY}, entry.buffer.num_references)
            for entry in [*self._entries, *joining]
        ]

    def put_back(self) -> None:
        """Undo what was done since; a segment that went home meanwhile stays there."""
        self._queue.queue.clear()
        self._queue.queue.extend(self._entries)
        for name, value in self._books.items():
            setattr(self._queue, name, value)
        for entry, fields, num_references in self._of_entries:
            for name, value in fields.items():
                setattr(entry, name, value)
            if entry.buffer.num_references:
                entry.buffer.num_references = num_references
