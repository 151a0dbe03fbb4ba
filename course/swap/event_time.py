"""A learner's generator of watermarks and a learner's valve in a running job, with ours behind them.

A generator has seen records before it comes in, so it is told the largest time of ours. A valve is told what ours has
noted of each channel, in the words it knows: watermarks and statuses. From then on both hear everything, and the
learner's is believed; where it fails, ours goes on, and time does not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course.swap.guard import Guard
from refimpl.consumer import NetworkInput, StatusWatermarkValve
from refimpl.job import Deployment
from refimpl.records import MIN_TIMESTAMP, StreamStatus, Watermark
from refimpl.task import BoundedOutOfOrderness, Task, TimestampsAndWatermarksOperator, WatermarkOutput

__all__ = ["our_generators", "our_valves", "their_generators", "their_valves"]

_Out = list[Watermark | StreamStatus]


def _tasks(job: Any) -> Iterator[Task]:
    deployments: list[Deployment] = getattr(job, "deployments", None) or [job.deployment]
    for deployment in deployments:
        yield from deployment.tasks


# -- generators ------------------------------------------------------------------------------------


def our_generators(job: Any) -> None:
    """Put in a generator of ours for each that there is: the swap that changes nothing."""
    _swap_generators(job, lambda ours: ours)


def their_generators(job: Any, guard: Guard) -> None:
    """Let the learner's generators say how far time has come."""
    _swap_generators(job, partial(_GuardedGenerator, guard))


def _swap_generators(job: Any, make: Callable[[BoundedOutOfOrderness], Any]) -> None:
    for task in _tasks(job):
        for node in task.chain.nodes:
            if isinstance(node.operator, TimestampsAndWatermarksOperator):
                task.submit(partial(_put_generator, node.operator, make))


def _put_generator(operator: TimestampsAndWatermarksOperator, make: Callable[[BoundedOutOfOrderness], Any]) -> None:
    now: Any = operator.generator
    operator.generator = make(now.ours if isinstance(now, _GuardedGenerator) else now)


class _GuardedGenerator:
    """Both generators hear of each record; the learner's is asked, and ours where it is out."""

    def __init__(self, guard: Guard, ours: BoundedOutOfOrderness) -> None:
        self.ours = ours
        self._guard = guard
        self._theirs: Any = None
        if not guard.is_out:
            with guard.call():
                self._theirs = guard.part(ours.bound_ms)
                if ours.max_timestamp > MIN_TIMESTAMP + ours.bound_ms + 1:
                    self._theirs.on_event(None, ours.max_timestamp, _Heard())

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        self.ours.on_event(value, timestamp, output)
        self._ask(lambda heard: self._theirs.on_event(value, timestamp, heard), output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if not self._ask(lambda heard: self._theirs.on_periodic_emit(heard), output):
            self.ours.on_periodic_emit(output)

    def _ask(self, call: Callable[[WatermarkOutput], None], output: WatermarkOutput) -> bool:
        """Whether theirs answered; what it said goes out when all of it is known to be right."""
        if self._guard.is_out:
            return False
        heard = _Heard()
        with self._guard.call():
            call(heard)
            for watermark in heard.said:
                output.emit_watermark(Watermark(int(watermark.timestamp)))
            return True
        return False


class _Heard:
    """An output that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[Watermark] = []

    def emit_watermark(self, watermark: Watermark) -> None:
        self.said.append(watermark)

    def mark_idle(self) -> None:
        """Keep nothing: whether a stream is idle is not for the part to say."""


# -- valves ----------------------------------------------------------------------------------------


def our_valves(job: Any) -> None:
    """Put in a valve of ours for each that there is: the swap that changes nothing."""
    _swap_valves(job, lambda ours: ours)


def their_valves(job: Any, guard: Guard) -> None:
    """Let the learner's valves say what time it is."""
    _swap_valves(job, partial(_GuardedValve, guard))


def _swap_valves(job: Any, make: Callable[[StatusWatermarkValve], Any]) -> None:
    for task in _tasks(job):
        if isinstance(task.input, NetworkInput):
            task.submit(partial(_put_valve, task.input, make))


def _put_valve(read: NetworkInput, make: Callable[[StatusWatermarkValve], Any]) -> None:
    now: Any = read.valve
    if isinstance(now, _GuardedValve):
        now = now.ours
    if isinstance(now, StatusWatermarkValve):
        read.valve = make(now)


class _GuardedValve:
    """Both valves hear of each channel; the learner's is believed, and ours where it is out."""

    def __init__(self, guard: Guard, ours: StatusWatermarkValve) -> None:
        self.ours = ours
        self.current_watermark = ours.current_watermark
        self._guard = guard
        self._theirs: Any = None
        if not guard.is_out:
            with guard.call():
                self._theirs = guard.part(len(ours.channel_watermarks))
                self._tell_all()

    def _tell_all(self) -> None:
        """What ours has noted of each channel: who has to catch up is idle until the others have spoken."""
        for index, mark in enumerate(self.ours.channel_watermarks):
            if mark > MIN_TIMESTAMP:
                list(self._theirs.input_watermark(Watermark(mark), index))
        idle = self.ours.idle_channels
        marks = enumerate(self.ours.channel_watermarks)
        late = [index for index, mark in marks if mark < self.current_watermark and index not in idle]
        for index in (*idle, *late):
            list(self._theirs.input_status(StreamStatus.IDLE, index))
        for index in late:
            list(self._theirs.input_status(StreamStatus.ACTIVE, index))

    @property
    def channel_watermarks(self) -> tuple[int, ...]:
        return self.ours.channel_watermarks

    @property
    def idle_channels(self) -> tuple[int, ...]:
        return self.ours.idle_channels

    def input_watermark(self, watermark: Watermark, index: int) -> _Out:
        ours = self.ours.input_watermark(watermark, index)
        return self._believed(lambda: self._theirs.input_watermark(watermark, index), ours)

    def input_status(self, status: StreamStatus, index: int) -> _Out:
        ours = self.ours.input_status(status, index)
        return self._believed(lambda: self._theirs.input_status(status, index), ours)

    def _believed(self, call: Callable[[], Any], ours: _Out) -> _Out:
        out = ours
        if not self._guard.is_out:
            with self._guard.call():
                out = [_own(each) for each in call()]
        found: _Out = []
        for each in out:
            if isinstance(each, Watermark):
                if each.timestamp <= self.current_watermark:
                    continue  # the other of the two has said it already
                self.current_watermark = each.timestamp
            found.append(each)
        return found


def _own(element: Any) -> Watermark | StreamStatus:
    """What came out, as the engine's own.

    Raises:
        TypeError: it is neither a watermark nor a status.
    """
    if isinstance(element, StreamStatus):
        return element
    if isinstance(element, Watermark):
        return Watermark(int(element.timestamp))
    raise TypeError(f"a {type(element).__name__} came out, which is neither a Watermark nor a StreamStatus")
