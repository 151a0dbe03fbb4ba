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
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import Enum
from typing import ClassVar, Protocol

from refimpl.consumer.barrier_handler import Abort, BarrierHandler
from refimpl.consumer.network_input import InputElement
from refimpl.consumer.two_input_valve import TwoInputValve
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.memory.buffer import Buffer, BufferSlice
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.elements import StreamElement
from refimpl.records.events import CheckpointBarrier
from refimpl.task.chain import OperatorChain
from refimpl.task.checkpoint_reports import StatePlace
from refimpl.task.checkpoints import SubtaskCheckpoints
from refimpl.task.snapshot import Progress, TaskSnapshot
from refimpl.task.times import ProgressTimes
from refimpl.trace import Trace

__all__ = ["Task", "TaskInput"]


class TaskInput(Protocol):
    """Where a task's elements come from: the network, or a reader."""

    @property
    def is_ready(self) -> bool: ...

    @property
    def is_drained(self) -> bool: ...

    @property
    def is_finished(self) -> bool: ...

    @property
    def valve(self) -> StatusWatermarkValve | TwoInputValve | None:
        """What makes one watermark of those of several channels, if there are channels."""

    @property
    def alignment(self) -> BarrierHandler | None:
        """What makes one barrier of those of several channels, if there are channels."""

    @property
    def held_buffers(self) -> Sequence[Buffer | BufferSlice]:
        """Buffers taken and not yet recycled, for the laws."""

    @property
    def pause_ms(self) -> float:
        """How long to wait before it is asked again, where nothing will tell that it has more."""

    def take(self, limit: int = 1) -> int: ...

    def next_element(self) -> InputElement | None: ...

    def recycle(self) -> None: ...

    def close(self) -> None: ...


class _Stage(Enum):
    """How far a task is: it opens its operators in its first step, finishes them once, and then ends its outputs.

    It may have to wait then, for a last checkpoint.
    """

    CREATED = "created"
    OPEN = "open"
    FINISHED = "finished"
    ENDED = "ended"


class _ProgressNotes:
    """Each change of a task's progress: in its `times`, and as an event of `trace`, if there is one."""

    def __init__(self, name: str, trace: Trace | None) -> None:
        self.times = ProgressTimes()
        self._notes = None if trace is None else {each: trace.note(each.value, name) for each in Progress}
        self._last: Progress | None = None

    def note(self, progress: Progress) -> None:
        """Note `progress`, unless it is the last that was noted."""
        if progress is not self._last:
            self._last = progress
            self.times.note(progress)
            if self._notes is not None:
                self._notes[progress]()


class Task:
    """One parallel instance of a chain, with its input and its outputs.

    `state_place` says what the files of its state are called; without one checkpoints keep nothing of it.

    It takes no step before `may_start` says that it may.

    A driver that has a clock lets `rest_ms` pass after each step that `is_work`, or the `pause_ms` of its input if they
    are more. A barrier that is sent before more input is taken is no work: were it, a slow source whose checkpoints
    come faster than it rests would send nothing but barriers.

    Invariant: what is neither in a buffer nor in an accumulator is at most the elements of
    `buffers_per_step` buffers and what the user's code made of one element.

    Flink:   StreamTask, StreamOneInputProcessor (streaming.runtime.tasks, .io), 1.11.4
    """

    make_checkpoints: ClassVar[type[SubtaskCheckpoints]] = SubtaskCheckpoints

    def __init__(
        self,
        name: str,
        chain: OperatorChain,
        source: TaskInput,
        writers: Sequence[RecordWriter],
        buffers_per_step: int = 1,
        trace: Trace | None = None,
        state_place: StatePlace | None = None,
    ) -> None:
        self.name = name
        self.chain = chain
        self.input = source
        self.writers = writers
        self.progress = Progress.IDLE
        self.num_steps = 0
        self.rest_ms = 0.0
        self.is_work = True
        self.checkpoints = self.make_checkpoints(chain, writers, source, state_place)
        self.may_start: Callable[[], bool] = lambda: True
        self._buffers_per_step = buffers_per_step
        self._notes = _ProgressNotes(name, trace)
        self._mail: deque[Callable[[], None]] = deque()
        self._stage = _Stage.CREATED

    def __repr__(self) -> str:
        return f"Task({self.name}, {self.progress.value})"

    # -- state -------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        return self.progress is Progress.DONE

    @property
    def is_runnable(self) -> bool:
        """Whether a step now would get something done."""
        if self.is_done or (self._stage is _Stage.CREATED and not self.may_start()):
            return False
        if self._mail or self.checkpoints.channels.has_news:
            return True
        is_blocked = is_full = False
        for writer in self.writers:
            if writer.is_blocked:
                if writer.partition.pool.can_request:
                    return True
                is_blocked = True
            elif not writer.is_available:
                is_full = True
        if is_blocked:
            return False
        if self.checkpoints.is_waiting or self.checkpoints.has_barriers:
            return True
        if is_full:
            return False
        if self._stage is _Stage.ENDED:
            return self.checkpoints.is_over
        return self.input.is_ready or self.input.is_finished or self.chain.time.is_due

    @property
    def is_started(self) -> bool:
        """Whether it has begun with its first step."""
        return self._stage is not _Stage.CREATED

    @property
    def moves_much(self) -> bool:
        """Whether a driver with threads should let buffers gather before the next step; a plain task needs none."""
        return False

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
            self.checkpoints.last_cut,
            self.chain.latencies(),
            self._notes.times.read(),
            self.is_held_back,
        )

    @property
    def is_held_back(self) -> bool:
        """Whether an output is without a buffer, so that no more input is taken."""
        return not self.is_done and any(not writer.is_available for writer in self.writers)

    def use_clock(self, clock_ms: Callable[[], float]) -> None:
        """Count from now on how long it is busy, idle and back-pressured; `clock_ms` says what time it is.

        A driver that does so calls `note_rest` when the task has to wait.
        """
        self._notes.times.use_clock(clock_ms)

    # -- the three parts of a step -------------------------------------------------------------------

    def poll(self) -> bool:
        """Take input, if there is room for results; true if `process` has something to do."""
        self.num_steps += 1
        if self._stage is _Stage.CREATED:
            self._stage = _Stage.OPEN
            self.chain.open()
        if self._mail or self.checkpoints.channels.has_news:
            while self._mail:
                self._mail.popleft()()
            self.checkpoints.channels.settle()
            self.checkpoints.go_on(lambda: True)  # what touches no output does not wait for one
        # Each blocked writer gets its turn, also when another one stays blocked: no short cut here.
        resumed = [writer.resume() for writer in self.writers if writer.is_blocked]
        if not all(resumed):
            self._say(Progress.BACKPRESSURED)
            return False
        self.checkpoints.take_barriers()
        self.is_work = not (self.checkpoints.is_waiting and self.input.is_drained)
        if self._stage is _Stage.ENDED or not self.is_work or not self.input.is_drained:
            return True
        if not all(writer.is_available for writer in self.writers):
            self._say(Progress.BACKPRESSURED)
            return False
        if self.input.take(1 if self.rest_ms else self._buffers_per_step) or self.input.is_finished:
            return True
        if self.chain.time.is_due:
            return True
        self._say(Progress.IDLE)
        return False

    def process(self) -> None:
        """Do what is due, and send the elements at hand through the operators, until done or an output runs dry."""
        self._notes.note(Progress.MADE)
        if not self._do_what_is_due():
            return
        while (element := self.input.next_element()) is not None:
            self._hand_on(element)
            if self._is_blocked:
                return
        self._finish_chain()

    def emit(self) -> Progress:
        """Give consumed buffers back and, if everything is out, end the outputs."""
        self.input.recycle()
        if self._is_blocked:
            self._say(Progress.BACKPRESSURED)
        elif self._stage is _Stage.FINISHED and self.input.is_finished:
            for writer in self.writers:
                writer.finish()
            self.input.close()
            self._stage = _Stage.ENDED
            self._say(Progress.DONE if self.checkpoints.is_over else Progress.IDLE)
        elif self._stage is _Stage.ENDED:
            self._say(Progress.DONE if self.checkpoints.is_over else Progress.IDLE)
        else:
            self._say(Progress.MADE)
        return self.progress

    def go_on(self) -> bool:
        """Begin another step where the last one was processed, without exclusion; a plain task always needs it.

        False: the driver calls `emit`, then `poll`.
        """
        return False

    def step(self) -> Progress:
        """Poll, process and emit, for drivers that have no second thread to wait for."""
        if not self.is_done and self.poll():
            self.process()
            return self.emit()
        return self.progress

    # -- time ----------------------------------------------------------------------------------------

    def next_deadline(self, now_ms: float) -> float | None:
        """When `on_timeout` wants to be called, in ms of processing time; `None` if nothing waits for time to pass.

        What has come due by the last call is done in the next step, and is no deadline any more.
        """
        time = self.chain.time
        if self.is_done or time.is_due:
            return None
        deadlines = (time.next_deadline, self.checkpoints.channels.next_deadline)
        return min((each for each in deadlines if each is not None), default=None)

    def on_timeout(self, now_ms: float) -> None:
        """Note that it is `now_ms`: the next step begins with what is due by then. A driver says so before each step.

        Flink:   StreamTask.invokeProcessingTimeCallback, which is a mail there, 1.11.4
        """
        self.chain.time.advance(now_ms)
        if (alignment := self.input.alignment) is not None:
            alignment.tell(now_ms)

    # -- from outside --------------------------------------------------------------------------------

    def submit(self, action: Callable[[], None]) -> None:
        """Do `action` between two steps, when nothing of this task is in motion.

        Flink:   MailboxExecutor (streaming.runtime.tasks.mailbox), 1.11.4
        """
        self._mail.append(action)

    def note_rest(self) -> None:
        """Note in the trace why a task rests that is not stepped; `progress` stays what it was."""
        if not self.is_done:
            has_room = all(writer.is_available for writer in self.writers)
            self._notes.note(Progress.IDLE if has_room else Progress.BACKPRESSURED)

    def close(self) -> None:
        """Give back everything held, after a failure or a cancellation."""
        with ExitStack() as stack:
            for writer in reversed(self.writers):
                stack.callback(writer.close)
            stack.callback(self.input.close)
            stack.callback(self.chain.close)

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _is_blocked(self) -> bool:
        """Whether a record in hand waits for a buffer."""
        return any(writer.is_blocked for writer in self.writers)

    def _do_what_is_due(self) -> bool:
        """Snapshots and processing time's timers come before more input; false if they have filled an output."""
        if self.checkpoints.is_waiting:
            self.checkpoints.go_on(lambda: self._is_blocked)
            if self._is_blocked:
                return False
        if self.chain.time.is_due:
            self.chain.time.fire_due()
            return not self._is_blocked
        return True

    def _hand_on(self, element: InputElement) -> None:
        if isinstance(element, StreamElement):
            self.chain.process(element)
        elif isinstance(element, CheckpointBarrier | Abort):
            alignment = self.input.alignment
            took_ms = None if alignment is None else alignment.alignment_ms(element.checkpoint_id)
            self.checkpoints.pass_on(element, took_ms)
            self.checkpoints.go_on(lambda: self._is_blocked)

    def _finish_chain(self) -> None:
        """Finish the operators once, behind the last element."""
        if self.input.is_finished and self._stage is _Stage.OPEN:
            self._stage = _Stage.FINISHED
            self.chain.time.close()
            self.chain.finish()
            self.checkpoints.end_of_input()

    def _say(self, progress: Progress) -> None:
        self.progress = progress
        self._notes.note(progress)
