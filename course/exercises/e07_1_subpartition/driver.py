"""Runs one case of lesson 7 against any subpartition and writes down what was seen.

The same text runs in the child with the learner's class and in the judge with the reference part;
so it imports the engine and the standard library only. A case is a list of operations:

    ["open", text]     the writer closes the buffer it has, opens another, adds it, and writes `text` into it
    ["write", text]    the writer writes into the buffer it has
    ["close"]          the writer closes the buffer it has
    ["event"]          an event joins         ["barrier"]  one that blocks
    ["flush"]  ["poll"]  ["resume"]  ["end"]  ["release"]

Nothing is written before a case makes the subpartition; a reader is there from the start. An event is [call, fields]:

    answer      what the call returned: of `poll` "taken", "nothing", or what came instead
    piece       the bytes `poll` gave, as text; "event" for those of an event
    told        how often the reader was told during this operation; None where once more does no harm
    queued      entries in the queue afterwards, and
    mark        the flush mark, and
    backlog     the backlog; None where Flink's versions differ
    more, event_next, number    what `poll` said besides, and
    sent        the backlog it said; None where Flink's versions differ
    refs        references to all buffers of data there ever were
    ready       whether there was something to read each time the reader was told; None if it was not, or need not be
"""

from __future__ import annotations

from typing import Any

from course.grading.kinds import plain
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.memory.builder import BufferBuilder, BufferConsumer
from refimpl.memory.segment import MemorySegment
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import BufferAndBacklog, PipelinedSubpartitionView
from refimpl.records.event_serializer import event_to_buffer
from refimpl.records.events import CheckpointBarrier, EndOfSuperstep

__all__ = ["WATCHED", "run_case"]

WATCHED = (
    Buffer,
    BufferSlice,
    BufferBuilder,
    BufferConsumer,
    SubpartitionQueue,
    PipelinedSubpartitionView,
    BufferAndBacklog,
)
"""The engine's classes that are lent to a part; it leaves them as they are."""

_SEGMENT_BYTES = 16


class _NoPool:
    """Where the segments of a check go when they are recycled: nowhere."""

    def recycle_segment(self, segment: MemorySegment) -> None:
        """Keep nothing."""


class _Run:
    """One subpartition, its reader, and the writer's open buffer."""

    def __init__(self, part: Any) -> None:
        self.ready_when_told: list[bool] = []
        self.buffers: list[Buffer] = []
        self.builder: BufferBuilder | None = None
        self.target = part(0)
        self.target.view.open(self._on_data_available)

    def _on_data_available(self) -> None:
        # A reader in another thread looks at once: what is there now is all that it finds.
        self.ready_when_told.append(bool(self.target.is_data_available))

    def do(self, op: list[Any]) -> dict[str, Any]:
        self.ready_when_told, target = [], self.target
        # Behind an entry that is complete from birth Flink tells the reader once more; to tell it once is as good.
        joins = op[0] in ("open", "event", "barrier")
        may_tell_again = joins and len(target.queue) == 1 and target.queue[0].is_finished
        fields = self._do(*op)
        told = self.ready_when_told
        fields["told"] = None if may_tell_again else len(told)
        backlog = target.count_backlog()
        fields["queued"] = len(target.queue)
        fields["mark"] = bool(target.is_flush_requested)
        # With an event as the last entry Flink 1.11 leaves out a buffer that 2.x counts: both are right here.
        is_open = target.queue and not (target.queue[-1].is_buffer or target.is_flush_requested or target.is_finished)
        is_unclear = is_open and any(each.is_buffer for each in target.queue)
        fields["backlog"] = None if is_unclear else plain(backlog)
        if is_unclear and "sent" in fields:
            fields["sent"] = None
        fields["refs"] = sum(buffer.num_references for buffer in self.buffers)
        fields["ready"] = None if may_tell_again or not told else all(told)
        return fields

    def _do(self, name: str, text: str = "") -> dict[str, Any]:
        match name:
            case "open":
                self._close()
                buffer = Buffer(MemorySegment.allocate(_SEGMENT_BYTES), _NoPool())
                self.buffers.append(buffer)
                self.builder = BufferBuilder(buffer)
                answer = self.target.add(self.builder.create_consumer())
                self._write(text)
                return {"answer": plain(answer)}
            case "write":
                self._write(text)
            case "close":
                self._close()
            case "event" | "barrier":
                self._close()
                event = EndOfSuperstep() if name == "event" else CheckpointBarrier(1, 1000)
                return {"answer": plain(self.target.add(BufferConsumer.of_buffer(event_to_buffer(event))))}
            case "flush":
                return {"answer": plain(self.target.flush())}
            case "poll":
                return self._poll()
            case "resume":
                if self.target.is_blocked:
                    self.target.view.resume()
            case "end":
                self._close()
                self.target.finish()
            case "release":
                self.target.release()
        return {}

    def _write(self, text: str) -> None:
        if text and self.builder is not None:
            self.builder.append_and_commit(text.encode())

    def _close(self) -> None:
        if self.builder is not None:
            self.builder.finish()
        self.builder = None

    def _poll(self) -> dict[str, Any]:
        taken = self.target.poll()
        if taken is None:
            return {"answer": "nothing", "piece": None}
        if not isinstance(taken, BufferAndBacklog):
            return {"answer": f"?{type(taken).__name__}"[:60], "piece": None}
        piece = taken.buffer
        text = bytes(piece.data).decode("ascii", "replace") if piece.is_buffer else "event"
        piece.recycle()
        return {
            "answer": "taken",
            "piece": text,
            "more": plain(taken.is_more_available),
            "event_next": plain(taken.is_event_next),
            "number": plain(taken.sequence_number),
            "sent": plain(taken.backlog),
        }


_CALLED = {"open": "add", "event": "add", "barrier": "add", "end": "finish"}
"""What of the part an operation calls; of those that are missing, what bears their name."""


def run_case(part: Any, case: list[Any], events: list[Any]) -> None:
    """Run the operations of `case`, appending what is seen to `events`."""
    run: _Run | None = None
    for op in case:
        event: list[Any] = [_CALLED.get(op[0], op[0])]
        events.append(event)
        run = run or _Run(part)
        event.append(run.do(op))
