"""A learner's rules of a blocking result in a running job, with ours behind them.

What a learner's method writes is kept back until it returns. So one that raises, or answers what no rule may answer,
has written nothing: its entry is put back as it was, and ours makes the same call. Only what has gone home meanwhile
is written as the learner's method wanted it.
"""

from __future__ import annotations

from typing import Any

from course.swap.guard import Guard
from course.swap.queues import Entry
from refimpl.config import FlinkVersion
from refimpl.memory import Buffer, BufferConsumer, BufferSlice, heap_buffer
from refimpl.producer import BlockingSubpartition, BoundedBlockingSubpartition, BoundedBlockingView

__all__ = ["guarded_blocking"]


def guarded_blocking(guard: Guard) -> type[BlockingSubpartition]:
    """The learner's class, each of its calls watched by `guard`."""
    part: Any = guard.part
    ours: Any = BoundedBlockingSubpartition

    class Guarded(part):  # type: ignore[misc]  # the class is the learner's
        kept_back: list[Buffer] | None = None

        def write(self, piece: BufferSlice) -> None:
            if self.kept_back is None:
                super().write(piece)
            else:
                self.kept_back.append(heap_buffer(bytes(piece.data), piece.data_type))

        def seal(self) -> None:
            _keep(self)  # what is sealed cannot be taken back
            super().seal()

        def add(self, consumer: BufferConsumer) -> Any:
            return _called(guard, self, part.add, ours.add, bool, consumer)

        def flush(self) -> Any:
            return _called(guard, self, part.flush, ours.flush, type(None))

        def finish(self, version: FlinkVersion = FlinkVersion.V1_11) -> Any:
            return _called(guard, self, part.finish, ours.finish, type(None), version)

        def create_view(self) -> Any:
            return _called(guard, self, part.create_view, ours.create_view, BoundedBlockingView)

    found: type[BlockingSubpartition] = Guarded
    return found


def _called(guard: Guard, channel: Any, theirs: Any, ours: Any, kind: type, *given: Any) -> Any:
    """What theirs answers, if it answers a `kind`; what ours does otherwise."""
    if channel.kept_back is not None:  # theirs calls another of its own
        return theirs(channel, *given)
    if guard.is_out:
        return ours(channel, *given)
    before, state = channel.current, channel.state
    stood = [Entry(each) for each in (before, *given) if isinstance(each, BufferConsumer)]
    channel.kept_back = []
    answer: Any = guard  # which is what nothing answers
    with guard.call():
        answer = theirs(channel, *given)
    if isinstance(answer, kind):
        _keep(channel)
        return answer
    is_home = before is not None and before.buffer.num_references == 0
    if is_home:
        _keep(channel)  # its buffer is another's by now, and this is all there is of it
    channel.kept_back = None
    if not guard.is_out:
        guard.take_out(f"{theirs.__name__} answered {answer!r}"[:80], None)
    if channel.state is not state:
        return None  # it has finished, and cannot again
    channel.current = None if is_home else before
    for each in stood:
        each.put_back()
    return ours(channel, *given)


def _keep(channel: Any) -> None:
    """Write what was kept back, and keep nothing back from now on."""
    written, channel.kept_back = channel.kept_back or [], None
    for buffer in written:
        piece = buffer.read_only_slice()
        channel.write(piece)
        piece.recycle()
