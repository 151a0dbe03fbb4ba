"""Runs one case of exercise 8.1 against a channel that is read when it is finished, and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the reference part; so it imports the
engine and the standard library only. A case is a list of operations:

    ["open", text]    the writer closes the buffer it has, opens another, adds it, and writes `text` into it
    ["write", text]   the writer writes into the buffer it has        ["close"]   the writer closes it
    ["event"]         an event joins
    ["flush"]   ["end"]   ["release"]
    ["full"]          from now on the disk is full
    ["view"]          another reader: the first is 1          ["poll", n]   reader n reads on          ["leave", n]

Nothing is kept before a case makes the channel. An event is [call, fields]:

    answer      what `add` returned, plain; "full" if the disk was
    kept        the pieces in the file, as text, "*" for an event; None as long as an event came last, which
                may be there or not yet
    sealed      whether the file takes no more
    refs        references to all buffers of data there ever were
    view        "made", "refused", "otherwise" with the exception's type, or "?" with the type of what is no view
    piece       what the reader got: text, "*", or "" at the end
    left        data buffers that it has before it
    gone        whether the file is deleted
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import plain
from refimpl.config import FlinkVersion
from refimpl.errors import DiskBudgetError, LocalUsageError
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.memory.data_type import DataType
from refimpl.memory.segment import MemorySegment
from refimpl.producer.blocking_subpartition import BlockingSubpartition, BoundedBlockingView
from refimpl.producer.bounded_data import MemoryBoundedData
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import EndOfSuperstep

__all__ = ["WATCHED", "run_case"]

WATCHED = (Buffer, BufferSlice, BufferBuilder, BufferConsumer, BlockingSubpartition, BoundedBlockingView)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_SEGMENT_BYTES = 16


class _NextOwner:
    """A pool whose next owner writes over a segment at once."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        assert segment.view is not None, "nothing here frees it"
        segment.view[:] = b"\xdd" * segment.size


class _File(MemoryBoundedData):
    """What is kept, and what became of it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []
        self.is_sealed = self.is_gone = False

    def write(self, data: memoryview, data_type: DataType, is_compressed: bool = False) -> None:
        super().write(data, data_type, is_compressed)
        self.kept.append(bytes(data).decode("ascii", "replace") if data_type is DataType.DATA else "*")

    def finish(self) -> None:
        super().finish()
        self.is_sealed = True

    def close(self) -> None:
        super().close()
        self.is_gone = True


class _Run:
    """One channel, its file, its readers, and the writer's open buffer."""

    def __init__(self, part: Any) -> None:
        self.file = _File()
        self.buffers: list[Buffer] = []
        self.views: list[BoundedBlockingView | None] = []
        self.builder: BufferBuilder | None = None
        self.is_full = self.is_event_last = False
        self.target = part(0, "map-0", self.file, None, self._charge)

    def _charge(self, num_bytes: int) -> None:
        if self.is_full:
            raise DiskBudgetError("map-0", num_bytes, 0, 0)

    def do(self, name: str, *given: Any) -> dict[str, Any]:
        try:
            fields = self._do(name, *given)
        except DiskBudgetError:
            fields = {"answer": "full"}
        if name in ("event", "open", "flush", "end", "release"):
            self.is_event_last = name == "event"
        fields["kept"] = None if self.is_event_last else list(self.file.kept)
        fields["sealed"] = self.file.is_sealed
        fields["refs"] = sum(buffer.num_references for buffer in self.buffers)
        fields["gone"] = self.file.is_gone
        return fields

    def _do(self, name: str, given: Any = "") -> dict[str, Any]:
        match name:
            case "open":
                self._close()
                buffer = Buffer(MemorySegment.allocate(_SEGMENT_BYTES), _NextOwner())
                self.buffers.append(buffer)
                self.builder = BufferBuilder(buffer)
                answer = self.target.add(self.builder.create_consumer())
                self._write(given)
                return {"answer": plain(answer)}
            case "write":
                self._write(given)
            case "close":
                self._close()
            case "event":
                self._close()
                return {"answer": plain(self.target.add(BufferConsumer.of_buffer(event_to_buffer(EndOfSuperstep()))))}
            case "flush":
                self.target.flush()
            case "end":
                self._close()
                self.target.finish(FlinkVersion.V1_11)
            case "release":
                self.target.release()
            case "full":
                self.is_full = True
            case "view":
                return {"view": self._view()}
            case "poll":
                return self._poll(given)
            case "leave":
                if (view := self._reader(given)) is not None:
                    view.close()
        return {}

    def _write(self, text: str) -> None:
        if text and self.builder is not None:
            self.builder.append_and_commit(text.encode())

    def _close(self) -> None:
        if self.builder is not None:
            self.builder.finish()
        self.builder = None

    def _reader(self, number: int) -> BoundedBlockingView | None:
        return self.views[number - 1] if number <= len(self.views) else None

    def _view(self) -> str:
        self.views.append(None)
        try:
            view = self.target.create_view()
        except LocalUsageError:
            return "refused"
        except (ValueError, RuntimeError, LookupError, AssertionError, OSError, TypeError) as error:
            return f"otherwise {type(error).__name__}"[:60]
        if not isinstance(view, BoundedBlockingView):
            return f"?{type(view).__name__}"[:60]
        self.views[-1] = view
        return "made"

    def _poll(self, number: int) -> dict[str, Any]:
        view = self._reader(number)
        if view is None or view.is_consumed:
            return {"piece": "", "left": 0}
        taken = view.poll()
        if taken is None:
            return {"piece": "", "left": 0}
        piece = taken.buffer
        text = bytes(piece.data).decode("ascii", "replace") if piece.is_buffer else "*"
        piece.recycle()
        return {"piece": text, "left": taken.backlog}


_CALLED = {"open": "add", "event": "add", "end": "finish", "view": "create_view"}
"""What of the part an operation calls; of those that are missing, what bears their name."""


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    run: _Run | None = None
    for op in case:
        event: list[Any] = [_CALLED.get(op[0], op[0])]
        events.append(event)
        run = run or _Run(part)
        event.append(run.do(*op))
