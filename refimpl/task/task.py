"""One subtask at work: poll, process, emit, and say how it went.

    poll      take buffers from the gate                 short, under the driver's exclusion
    process   elements through the operators             the user's code; needs no exclusion
    emit      give buffers back, end what has ended      short, under the driver's exclusion

A task stops taking input when an output has no buffer to spare. If an output runs dry in the middle
of a record, the writer keeps what is left and the task stands still until a buffer comes back. Both
look the same from outside: `BACKPRESSURED`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from refimpl.consumer.barrier_handler import BarrierHandler
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import StreamElement, StreamRecord
from refimpl.records.events import CancelCheckpointMarker, CheckpointBarrier, Event
from refimpl.task.chain import OperatorChain
from refimpl.task.snapshot import Cut, Progress, TaskSnapshot
from refimpl.trace import Trace

__all__ = ["Task", "TaskInput"]

_SEVERAL = 4


class TaskInput(Protocol):
    """Where a task's elements come from: the network, or a reader."""

    @property
    def is_ready(self) -> bool: ...

    @property
    def is_drained(self) -> bool: ...

    @property
    def is_finished(self) -> bool: ...

    @property
    def is_flowing(self) -> bool:
        """Whether there is probably more to take that nobody else puts there: a `take` needs no exclusion then."""

    @property
    def valve(self) -> StatusWatermarkValve | None:
        """What makes one watermark of those of several channels, if there are channels."""

    @property
    def alignment(self) -> BarrierHandler | None:
        """What makes one barrier of those of several channels, if there are channels."""

    def take(self, limit: int = 1) -> int: ...

    def next_records(self) -> Iterator[StreamRecord]: ...

    def next_values(self) -> Iterator[tuple[object, int | None]]: ...

    def next_element(self) -> StreamElement | Event | None: ...

    def recycle(self) -> None: ...

    def close(self) -> None: ...


class Task:
    """One parallel instance of a chain, with its input and its outputs.

    Invariant: what is neither in a buffer nor in an accumulator is at most the elements of
    `buffers_per_step` buffers and what the user's code made of one element.

    Flink:   StreamTask, StreamOneInputProcessor (streaming.runtime.tasks, .io), 1.11.4
    """

    def __init__(
        self,
        name: str,
        chain: OperatorChain,
        source: TaskInput,
        writers: Sequence[RecordWriter],
        buffers_per_step: int = 1,
        trace: Trace | None = None,
    ) -> None:
        self.name = name
        self.chain = chain
        self.input = source
        self.writers = writers
        self.progress = Progress.IDLE
        self.num_steps = 0
        self.num_taken = 0  # buffers or events, in the last step that took some
        self.rest_ms = 0.0  # to be let pass after each step, by drivers that have a clock; see `slow`
        self.cut: Cut | None = None  # the last one
        self.last_checkpoint_id = 0  # the last one that has passed, or will not
        self._most_buffers = self._buffers_per_step = buffers_per_step
        self._notes = None if trace is None else {each: trace.note(each.value, name) for each in Progress}
        self._noted: Progress | None = None
        self._mail: deque[Callable[[], None]] = deque()
        self._is_open = False
        self._is_chain_finished = False

    def __repr__(self) -> str:
        return f"Task({self.name}, {self.progress.value})"

    # -- state -------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        return self.progress is Progress.DONE

    @property
    def is_runnable(self) -> bool:
        """Whether a step now would get something done."""
        if self.is_done:
            return False
        if self._mail:
            return True
        is_blocked = False
        for writer in self.writers:
            if writer.is_blocked:
                if writer.partition.pool.can_request:
                    return True
                is_blocked = True
            elif not writer.is_available:
                is_blocked = True
        if is_blocked:
            return False
        return self.input.is_ready or self.input.is_finished

    @property
    def is_blocked(self) -> bool:
        """Whether a record in hand waits for a buffer."""
        return any(writer.is_blocked for writer in self.writers)

    @property
    def moves_much(self) -> bool:
        """Whether buffers come, or leave, several at a time: it would pay to wait for more of them."""
        return self.num_taken >= _SEVERAL or not all(writer.is_available for writer in self.writers)

    def held_buffers(self) -> list[Buffer | BufferSlice]:
        """Buffers this task holds between steps, for the laws."""
        return list(getattr(self.input, "held_buffers", ()))

    def snapshot(self) -> TaskSnapshot:
        valve, alignment = self.input.valve, self.input.alignment
        return TaskSnapshot(
            self.name,
            self.progress,
            tuple(node.context.name for node in self.chain.nodes),
            self.chain.num_records_in,
            sum(writer.num_records for writer in self.writers),
            self.chain.head.current_watermark,
            self.rest_ms,
            () if valve is None else valve.channel_watermarks,
            () if valve is None else valve.idle_channels,
            None if alignment is None else alignment.snapshot(),
            self.cut,
        )

    # -- the three parts of a step -------------------------------------------------------------------

    def poll(self) -> bool:
        """Take input, if there is room for results; true if `process` has something to do."""
        self.num_steps += 1
        if not self._is_open:
            self._is_open = True
            self.chain.open()
        while self._mail:
            self._mail.popleft()()
        # Each blocked writer gets its turn, also when another one stays blocked: no short cut here.
        resumed = [writer.resume() for writer in self.writers if writer.is_blocked]
        if not all(resumed):
            self._say(Progress.BACKPRESSURED)
            return False
        if not self.input.is_drained:
            return True
        if not all(writer.is_available for writer in self.writers):
            self._say(Progress.BACKPRESSURED)
            return False
        num_taken = self.input.take(self._buffers_per_step)
        if num_taken or self.input.is_finished:
            self.num_taken = num_taken
            return True
        self._say(Progress.IDLE)
        return False

    def process(self) -> None:
        """Send the elements at hand through the operators, until done or an output runs dry."""
        if self._notes is not None:
            self._note(Progress.MADE)
        element: StreamElement | Event | None = None
        while True:
            if self.chain.takes_values:
                self.chain.process_values(self.input.next_values(), self.writers)
            else:
                self.chain.process_records(self.input.next_records(), self.writers)
            if self.is_blocked:
                return
            element = self.input.next_element()
            if element is None:
                break
            if isinstance(element, StreamElement):
                self.chain.process(element)
                if self.is_blocked:
                    return
            elif isinstance(element, CheckpointBarrier | CancelCheckpointMarker):
                self.pass_on(element)
        if self.input.is_finished and not self._is_chain_finished:
            self._is_chain_finished = True
            self.chain.finish()

    def emit(self) -> Progress:
        """Give consumed buffers back and, if everything is out, end the outputs."""
        self.input.recycle()
        if self.is_blocked:
            self._say(Progress.BACKPRESSURED)
        elif self._is_chain_finished and self.input.is_finished:
            for writer in self.writers:
                writer.finish()
            self.input.close()
            self._say(Progress.DONE)
        else:
            self._say(Progress.MADE)
        return self.progress

    def go_on(self) -> bool:
        """Begin another step where the last one was processed, without exclusion; false if it must be as usual.

        A source does so while it has room: it holds no buffers to give back, and what it reads is its own.
        """
        if not self.input.is_flowing or self._mail or any(not writer.is_available for writer in self.writers):
            return False
        self._say(Progress.MADE)
        self.num_steps += 1
        return self.input.take() > 0

    def step(self) -> Progress:
        """Poll, process and emit, for drivers that have no second thread to wait for."""
        if not self.is_done and self.poll():
            self.process()
            return self.emit()
        return self.progress

    def pass_on(self, event: CheckpointBarrier | CancelCheckpointMarker) -> None:
        """Send an event behind all that has been emitted, to everybody who reads from here; a barrier is a cut.

        Flink:   SubtaskCheckpointCoordinatorImpl.checkpointState, 1.11.4; Differs: no state is saved
        """
        self.last_checkpoint_id = max(self.last_checkpoint_id, event.checkpoint_id)
        if isinstance(event, CheckpointBarrier):
            num_records_out = sum(writer.num_records for writer in self.writers)
            self.cut = Cut(event.checkpoint_id, self.chain.num_records_in, num_records_out)
        for writer in self.writers:
            writer.broadcast_event(event)

    # -- from outside --------------------------------------------------------------------------------

    def submit(self, action: Callable[[], None]) -> None:
        """Do `action` between two steps, when nothing of this task is in motion.

        Flink:   MailboxExecutor (streaming.runtime.tasks.mailbox), 1.11.4
        """
        self._mail.append(action)

    def slow(self, rest_ms: float) -> None:
        """Take one buffer at a time from now on and rest so long after each; 0 is full speed again."""
        self.rest_ms = rest_ms
        self._buffers_per_step = 1 if rest_ms else self._most_buffers

    def note_rest(self) -> None:
        """For the trace, if this task is not runnable: then it is not stepped, and `progress` stays what it was."""
        if self._notes is not None and not self.is_done:
            has_room = all(writer.is_available for writer in self.writers)
            self._note(Progress.IDLE if has_room else Progress.BACKPRESSURED)

    def close(self) -> None:
        """Give back everything held, after a failure or a cancellation."""
        try:
            self.input.close()
        finally:
            for writer in self.writers:
                writer.close()

    def _say(self, progress: Progress) -> None:
        self.progress = progress
        if self._notes is not None:
            self._note(progress)

    def _note(self, progress: Progress) -> None:
        if self._notes is not None and progress is not self._noted:
            self._noted = progress
            self._notes[progress]()
