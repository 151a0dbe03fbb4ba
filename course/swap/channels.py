"""Parts of remote channels in a running job on two TaskManagers: frames, numbers, and both ends of the credit.

A channel's buffers are promised and its queue is half sent when the part comes, so nothing is made anew: the engine's
own object goes on as an object of the learner's class, with everything it holds. A part that raises is taken out; what
it left half done is put right from what the object holds, and ours goes on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from course.swap.guard import Guard
from refimpl.config import Config
from refimpl.consumer import SequenceNumbers
from refimpl.consumer.buffer_manager import BufferManager
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.exchange import (
    BufferWait,
    PartitionRequest,
    PoolBuffers,
    ProducerId,
    RequestDecoder,
    ResultPartitionId,
    WaterMarks,
    frames,
    to_frame,
)
from refimpl.exchange.producer_credit import SubpartitionReader
from refimpl.job import Deployment
from refimpl.memory import Buffer
from refimpl.producer import BufferAndBacklog

__all__ = [
    "put_decoders", "put_framing", "put_marks", "put_receivers", "put_senders", "put_sequences", "put_waits",
    "standing_still",
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
    part = _receiver(guard) if guard is not None else BufferManager
    with standing_still(job) as deployments:
        for deployment in deployments:
            for channel in deployment.shuffle.remote_channels:
                manager = channel.buffers
                if isinstance(manager, BufferManager) and not channel.is_released:
                    state = dict(vars(manager))
                    segments = [buffer.segment for buffer in manager.exclusive_buffers]
                    arguments = segments, state["_global_pool"], state["floating_pool"], state["_on_credit"]
                    _become(manager, part, BufferManager, arguments, guard)


def put_senders(job: Simulation | ThreadedRun, guard: Guard | None) -> None:
    """Let every reader of a remote channel decide with the learner's part; with ours if there is no guard."""
    part = _sender(guard) if guard is not None else SubpartitionReader
    _await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.producer_connections:
                for reader in connection.readers.values():
                    request = PartitionRequest(_NOBODY, reader.subpartition, reader.subpartition, reader.receiver, 0)
                    _become(reader, part, SubpartitionReader, (reader.view, request), guard)
                    if guard is not None:
                        reader.view = _Watched(reader.view)


def _await_readers(job: Simulation | ThreadedRun) -> None:
    """On threads the first records may be read before the connections stand: let them come about."""
    wanted = sum(len(deployment.shuffle.remote_channels) for deployment in job.deployments)
    give_up = time.monotonic() + _SECONDS_TO_CONNECT
    while isinstance(job, ThreadedRun) and time.monotonic() < give_up:
        with standing_still(job) as deployments:
            connections = [each for deployment in deployments for each in deployment.shuffle.producer_connections]
            if sum(len(connection.readers) for connection in connections) >= wanted:
                return
        time.sleep(0.002)


def _become(thing: Any, part: type, ours: type, arguments: Sequence[Any], guard: Guard | None) -> None:
    """Let `thing` go on as a `part`: what that sets up for itself it has, and what `thing` held is kept."""
    state = dict(vars(thing))
    with guard.call() if guard is not None else contextlib.nullcontext():
        thing.__class__ = part
        part.__init__(thing, *arguments)
    if guard is not None and guard.is_out:
        thing.__class__ = ours
    vars(thing).update(state)


# -- the receiver ------------------------------------------------------------------------------------


def _receiver(guard: Guard) -> type[BufferManager]:
    """The learner's class with ours behind each of its two decisions."""
    theirs: type[BufferManager] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
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
    theirs: type[SubpartitionReader] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
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
                return super().poll()
            if (taken := self.view.taken) is None:
                return SubpartitionReader.poll(self)
            self.credit = credit - self.price * taken.buffer.is_buffer
            return taken, taken.is_more_available if self.credit >= self.price else taken.is_event_next

    return Guarded


_ours_may_speak: Callable[[SubpartitionReader], bool] = SubpartitionReader.is_available.fget  # type: ignore[attr-defined]


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
    _await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.producer_connections:
                decoder = connection.decoder
                unread = bytes(decoder.gathered[decoder.position :])
                decoder.close()
                _become(decoder, part, RequestDecoder, (deployment.config,), guard)
                decoder.feed(unread)


def _decoder(guard: Guard) -> type[RequestDecoder]:
    """The learner's class with ours beside it, which is fed the same and can go on at any time."""
    theirs: type[RequestDecoder] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
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
                _become(channel.sequence, part, SequenceNumbers, (), guard)


def _sequence(guard: Guard) -> type[SequenceNumbers]:
    """The learner's class with ours behind it."""
    theirs: type[SequenceNumbers] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
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
    part = _marks(guard) if guard is not None else WaterMarks
    _await_readers(job)
    with standing_still(job) as deployments:
        for deployment in deployments:
            for connection in deployment.shuffle.producer_connections:
                marks = connection.marks
                _become(marks, part, WaterMarks, (marks.low_bytes, marks.high_bytes), guard)


def _marks(guard: Guard) -> type[WaterMarks]:
    """The learner's class with ours behind it."""
    theirs: type[WaterMarks] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
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
                if isinstance(buffers := channel.buffers, PoolBuffers) and not channel.is_released:
                    _become(buffers, part, PoolBuffers, (buffers.pool,), guard)


def _waiting(guard: Guard) -> type[PoolBuffers]:
    """The learner's class with ours behind it; a buffer that it took and did not give is given then."""
    theirs: type[PoolBuffers] = guard.part

    class Guarded(theirs):  # type: ignore[valid-type, misc]
        def request_buffer(self) -> Buffer | BufferWait:
            if guard.is_out:
                return PoolBuffers.request_buffer(self)
            pool, wait = self.pool, self.wait
            lent, came = set(pool.lent), None if wait is None else wait.buffer
            with guard.call():
                return super().request_buffer()
            taken = [buffer for segment, buffer in pool.lent.items() if segment not in lent]
            if came is not None and (wait is None or wait.buffer is None):
                taken.append(came)
            if not taken:
                return PoolBuffers.request_buffer(self)
            self.end_wait()
            return taken[0]

    return Guarded
