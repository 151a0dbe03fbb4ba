"""Parts of remote channels in a running job on two TaskManagers: frames, numbers, and both ends of the credit.

A channel's buffers are promised and its queue is half sent when the part comes. So an object of the learner's class
takes the place of the engine's own, which hands over everything it holds. A part that raises is taken out; what it left
half done is put right from what the object holds, and ours goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from course.swap.guard import Guard
from refimpl.config import Config
from refimpl.consumer import BufferManager, RemoteInputChannel, SequenceNumbers
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.exchange import (
    PartitionRequest,
    ProducerId,
    RequestDecoder,
    ResultPartitionId,
    SubpartitionReader,
    frames,
    to_frame,
)
from refimpl.exchange.before_credit import BufferWait, MarkedConnection, PoolBuffers, PooledInputChannel, WaterMarks
from refimpl.job import Deployment
from refimpl.memory import Buffer
from refimpl.producer import BufferAndBacklog

__all__ = [
    "await_readers", "made", "put_decoders", "put_framing", "put_marks", "put_receivers", "put_senders",
    "put_sequences", "put_waits", "standing_still",
]  # fmt: skip

_SECONDS_TO_CONNECT = 5.0
_NOBODY = ResultPartitionId(bytes(16), 0, ProducerId(bytes(16)))


@contextlib.contextmanager
def standing_still(job: Simulation | ThreadedRun) -> Iterator[Sequence[Deployment]]:
    """The parts of the job, between two of their steps: on threads, under every TaskManager's monitor."""
    with contextlib.ExitStack() as stack:
        if isinstance(job, ThreadedRun):
            for task_manager in job.task_managers:
                stack.enter_context(task_manager.monitor)
        yield job.deployments


def put_receivers(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let every remote channel decide with the learner's part; with ours if there is no guard."""
    with standing_still(job) as deployments:
        for deployment in deployments:
            part = _receiver(guard) if guard is not None else deployment.shuffle.makers.buffer_manager
            for channel in deployment.shuffle.remote_channels:
                if isinstance(channel, RemoteInputChannel) and not channel.is_released:
                    before = channel.buffers
                    segments = [buffer.segment for buffer in before.exclusive_buffers]
                    arguments = segments, deployment.pool, before.floating_pool, channel.call_for_attention
                    if (manager := made(part, arguments, guard)) is not None:
                        before.hand_over_to(manager)
                        channel.buffers = manager


def put_senders(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let every reader of a remote channel decide with the learner's part; with ours if there is no guard."""
    await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            part = _sender(guard) if guard is not None else deployment.shuffle.makers.reader
            for connection in deployment.shuffle.producer_connections:
                for before in list(connection.readers.values()):
                    view = before.view if guard is None else _Watched(before.view)
                    request = PartitionRequest(_NOBODY, before.subpartition, before.subpartition, before.receiver, 0)
                    if (reader := made(part, (view, request), guard)) is not None:
                        before.hand_over_to(reader)
                        connection.queue.replace(reader)


def await_readers(job: Simulation | ThreadedRun) -> None:
    """On threads the first records may be read before the connections stand: let them come about."""
    wanted = sum(len(deployment.shuffle.remote_channels) for deployment in job.deployments)
    give_up = time.monotonic() + _SECONDS_TO_CONNECT
    while isinstance(job, ThreadedRun) and time.monotonic() < give_up:
        with standing_still(job) as deployments:
            connections = [each for deployment in deployments for each in deployment.shuffle.producer_connections]
            if sum(len(connection.readers) for connection in connections) >= wanted:
                return
        time.sleep(0.002)


def made(part: type, arguments: Sequence[Any], guard: Guard | None) -> Any:
    """An object of the class, or `None` if it cannot be made: then ours stays where it is."""
    if guard is None:
        return part(*arguments)
    new = None
    if not guard.is_out:
        with guard.call():
            new = part(*arguments)
    return new


# -- the receiver ------------------------------------------------------------------------------------


def _receiver(guard: Guard) -> type[BufferManager]:
    """The learner's class with ours behind each of its two decisions."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        def on_backlog(self, backlog: int) -> None:
            if not guard.is_out:
                with guard.call():
                    super().on_backlog(backlog)
                    return
                _put_right(self)
            BufferManager.on_backlog(self, backlog)

        def on_recycled(self) -> None:
            if not guard.is_out:
                with guard.call():
                    super().on_recycled()
                    return
                _put_right(self)  # that counts the buffer that came home
            else:
                BufferManager.on_recycled(self)

    return Guarded


def _put_right(manager: BufferManager) -> None:
    """Count as credit what is empty, no more and no less, after a decision that broke off."""
    difference = manager.num_available - manager.credit.num_available
    if difference > 0:
        manager.add_credit(difference)
    else:
        manager.credit.num_unannounced = max(0, manager.credit.num_unannounced + difference)


# -- the sender --------------------------------------------------------------------------------------


class _Watched:
    """A view that remembers what was taken last, lest it be lost when the one who took it breaks off."""

    def __init__(self, view: Any) -> None:
        self._view = view
        self.taken: BufferAndBacklog | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def poll(self) -> BufferAndBacklog | None:
        self.taken = self._view.poll()
        return self.taken


def _sender(guard: Guard) -> type[SubpartitionReader]:
    """The learner's class with ours behind each of its decisions."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        credit: int

        def add_credit(self, credit: int) -> None:
            total = self.credit + credit
            if not guard.is_out:
                with guard.call():
                    super().add_credit(credit)
                    return
            self.credit = total

        @property
        def is_available(self) -> bool:
            if not guard.is_out:
                with guard.call():
                    return bool(super().is_available)
            return _ours_may_speak(self)

        def poll(self) -> tuple[BufferAndBacklog, bool] | None:
            credit, self.view.taken = self.credit, None
            if guard.is_out:
                return SubpartitionReader.poll(self)
            with guard.call():
                answer: tuple[BufferAndBacklog, bool] | None = super().poll()
                return answer
            if (taken := self.view.taken) is None:
                return SubpartitionReader.poll(self)
            self.credit = credit - taken.buffer.is_buffer
            return taken, taken.is_more_available if self.credit > 0 else taken.is_event_next

    return Guarded


_ours_may_speak: Callable[[SubpartitionReader], bool] = vars(SubpartitionReader)["is_available"].fget


# -- frames and numbers ------------------------------------------------------------------------------


def put_framing(_job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's function wrap every message of this process, until the run is over."""
    if guard is None:
        return  # ours is there already

    def framed(frame_id: int, body: bytes) -> bytes:
        if not guard.is_out:
            with guard.call():
                return bytes(guard.part(frame_id, body))
        return to_frame(frame_id, body)

    guard.at_end.callback(setattr, frames, "to_frame", to_frame)
    vars(frames)["to_frame"] = framed


def put_decoders(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part cut the requests that come to each producer; with ours if there is no guard."""
    part = _decoder(guard) if guard is not None else RequestDecoder
    await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.producer_connections:
                before = connection.decoder
                if (decoder := made(part, (deployment.config,), guard)) is not None:
                    decoder.feed(bytes(before.gathered[before.position :]))
                    decoder.has_read_frame = before.has_read_frame
                    connection.decoder = decoder


def _decoder(guard: Guard) -> type[RequestDecoder]:
    """The learner's class with ours beside it, which is fed the same and can go on at any time."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.ours = RequestDecoder(config)

        def feed(self, data: bytes | bytearray | memoryview) -> None:
            self.ours.feed(bytes(data))
            if not guard.is_out:
                with guard.call():
                    super().feed(data)

        def next_frame(self) -> bytes | None:
            right = self.ours.next_frame()
            if not guard.is_out:
                with guard.call():
                    frame = super().next_frame()
                    return None if frame is None else bytes(frame)
            return right

    return Guarded


def put_sequences(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part say which number must come next on each remote channel; with ours if there is no guard."""
    part = _sequence(guard) if guard is not None else SequenceNumbers
    with standing_still(job) as deployments:
        for deployment in deployments:
            for channel in deployment.shuffle.remote_channels:
                if (sequence := made(part, (), guard)) is not None:
                    sequence.expected = channel.received.sequence.expected
                    channel.received.sequence = sequence


def _sequence(guard: Guard) -> type[SequenceNumbers]:
    """The learner's class with ours behind it."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        expected: int

        def is_next(self, number: int) -> bool:
            expected = self.expected
            if not guard.is_out:
                with guard.call():
                    return bool(super().is_next(number))
                self.expected = expected
            return SequenceNumbers.is_next(self, number)

        def advance(self) -> int:
            expected = self.expected
            if not guard.is_out:
                with guard.call():
                    return int(super().advance())
                self.expected = expected
            return SequenceNumbers.advance(self)

    return Guarded


# -- the way before credits --------------------------------------------------------------------------


def put_marks(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part say how much each producer hands out; with ours if there is no guard."""
    await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            part = _marks(guard) if guard is not None else deployment.shuffle.makers.water_marks
            for connection in deployment.shuffle.producer_connections:
                if isinstance(connection, MarkedConnection):
                    before = connection.marks
                    if (marks := made(part, (before.low_bytes, before.high_bytes), guard)) is not None:
                        marks.num_handed_out, marks.num_written = before.num_handed_out, before.num_written
                        marks.is_writable = before.is_writable
                        connection.marks = marks


def _marks(guard: Guard) -> type[WaterMarks]:
    """The learner's class with ours behind it."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        num_handed_out: int
        num_written: int
        is_writable: bool

        def hand_out(self, num_bytes: int) -> None:
            before = self.num_handed_out, self.num_written, self.is_writable
            if not guard.is_out:
                with guard.call():
                    super().hand_out(num_bytes)
                    return
                self.num_handed_out, self.num_written, self.is_writable = before
            WaterMarks.hand_out(self, num_bytes)

        def written(self, num_bytes: int) -> None:
            before = self.num_handed_out, self.num_written, self.is_writable
            if not guard.is_out:
                with guard.call():
                    super().written(num_bytes)
                    return
                self.num_handed_out, self.num_written, self.is_writable = before
            WaterMarks.written(self, num_bytes)

    return Guarded


def put_waits(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let the learner's part say where each channel's data waits; with ours if there is no guard."""
    part = _waiting(guard) if guard is not None else PoolBuffers
    with standing_still(job) as deployments:
        for deployment in deployments:
            for channel in deployment.shuffle.remote_channels:
                if isinstance(channel, PooledInputChannel) and not channel.is_released:
                    before = channel.buffers
                    if (buffers := made(part, (before.pool,), guard)) is not None:
                        buffers.wait = before.wait
                        channel.buffers = buffers


def _waiting(guard: Guard) -> type[PoolBuffers]:
    """The learner's class with ours behind it; a buffer that it took and did not give is given then."""
    theirs: Any = guard.part

    class Guarded(theirs):  # type: ignore[misc]  # the class is the learner's
        def request_buffer(self) -> Buffer | BufferWait:
            if guard.is_out:
                return PoolBuffers.request_buffer(self)
            pool, wait = self.pool, self.wait
            lent, came = set(pool.lent), None if wait is None else wait.buffer
            with guard.call():
                given: Buffer | BufferWait = super().request_buffer()
                return given
            taken = [buffer for segment, buffer in pool.lent.items() if segment not in lent]
            if came is not None and (wait is None or wait.buffer is None):
                taken.append(came)
            if not taken:
                return PoolBuffers.request_buffer(self)
            self.end_wait()
            return taken[0]

    return Guarded
