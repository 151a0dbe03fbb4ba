"""A learner's rules of a subpartition in a running job, with ours behind them.

Rules work on a queue that others use too. So before each call it is noted how the queue stands; if the call raises, or
answers what no rule may answer, all is put back and ours makes the same call.
"""

from __future__ import annotations

from typing import Any

from course.swap.guard import Guard
from refimpl.memory import BufferConsumer
from refimpl.producer import BufferAndBacklog, PipelinedSubpartition, SubpartitionQueue

__all__ = ["Entry", "guarded_rules"]


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
    """How a queue and its entries stood, with the entry that joins."""

    def __init__(self, queue: SubpartitionQueue, *joining: BufferConsumer) -> None:
        self._queue = queue
        self._saved = queue.save()
        self._entries = [Entry(entry) for entry in [*queue.queue, *joining]]

    def put_back(self) -> None:
        """Undo what was done since; a segment that went home meanwhile stays there."""
        self._queue.restore(self._saved)
        for entry in self._entries:
            entry.put_back()


class Entry:
    """How far an entry was read, and how many references its buffer had."""

    def __init__(self, consumer: BufferConsumer) -> None:
        self._consumer = consumer
        self._is_finished, self._is_closed = consumer.is_finished, consumer.is_closed
        self._read_position, self._written_bytes = consumer.read_position, consumer.written_bytes
        self._num_references = consumer.buffer.num_references

    def put_back(self) -> None:
        consumer = self._consumer
        consumer.is_finished, consumer.is_closed = self._is_finished, self._is_closed
        consumer.read_position, consumer.written_bytes = self._read_position, self._written_bytes
        if consumer.buffer.num_references:
            consumer.buffer.num_references = self._num_references
