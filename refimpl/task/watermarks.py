"""Watermarks: who says how far event time has come, when, and who is quiet.

generator   sees every record, and is asked every `auto_watermark_interval_ms` of processing time (periodic). One
            that answers at a record is punctuated
emitter     lets only larger watermarks out, and says ACTIVE before one if the stream was idle
idleness    is found out by the probes: it begins at the first that has seen no record since the one before
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from refimpl.errors import USER_CODE_RAISES, LocalUsageError
from refimpl.records.elements import MAX_WATERMARK, MIN_TIMESTAMP, StreamRecord, StreamStatus, Watermark
from refimpl.records.vectorized import for_one
from refimpl.task.operators import Operator, OperatorContext, event_time
from refimpl.task.outputs import Output
from refimpl.task.time_service import ProcessingTimeService

__all__ = [
    "BoundedOutOfOrderness",
    "IngestionTimeOperator",
    "TimestampsAndWatermarksOperator",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarksWithIdleness",
]


class WatermarkOutput(Protocol):
    """What a generator may say.

    Flink:   WatermarkOutput (api.common.eventtime), 1.11.4
    """

    def emit_watermark(self, watermark: Watermark) -> None:
        """Nothing at or below this time is expected any more; it goes out if it is larger than the last."""

    def mark_idle(self) -> None:
        """Do not wait for this stream until it has a larger watermark."""


@runtime_checkable
class WatermarkGenerator(Protocol):
    """Says how far event time has come: at a record, or when it is asked.

    Flink:   WatermarkGenerator (api.common.eventtime), 1.11.4
    """

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """A record has gone out."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """It is time to say how far event time has come."""


class BoundedOutOfOrderness:
    """The largest time seen, less `bound_ms`, less one: a record exactly at the bound is not late.

    With a bound of 0 it is for times that never fall. It begins so that the first answer is the least long.

    Flink:   BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks (api.common.eventtime), 1.11.4
    """

    def __init__(self, bound_ms: int) -> None:
        if isinstance(bound_ms, bool) or not isinstance(bound_ms, int) or bound_ms < 0:
            raise LocalUsageError(f"an out-of-orderness of {bound_ms!r} ms is none; use a whole number, 0 or more")
        self.bound_ms = bound_ms
        self.max_timestamp = MIN_TIMESTAMP + bound_ms + 1

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        """A record has gone out: its time is noted, and nothing is said."""
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """It is time to say how far event time has come."""
        output.emit_watermark(Watermark(self.max_timestamp - self.bound_ms - 1))


class WatermarksWithIdleness:
    """Another generator, whose stream is idle when more than `timeout_ms` have passed since a probe without a record.

    The clock starts at the first such probe, so it may take two probes longer. Records alone do not end it: the next
    larger watermark does.

    Flink:   WatermarksWithIdleness (api.common.eventtime), 1.11.4
    """

    def __init__(self, generator: WatermarkGenerator, timeout_ms: int, time: ProcessingTimeService) -> None:
        self.generator = generator
        self._timeout_ms = timeout_ms
        self._time = time
        self._has_seen_any = False  # since the last probe
        self._inactive_since_ms: int | None = None

    def on_event(self, value: Any, timestamp: int, output: WatermarkOutput) -> None:
        self.generator.on_event(value, timestamp, output)
        self._has_seen_any = True

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self._is_idle():
            output.mark_idle()
        else:
            self.generator.on_periodic_emit(output)

    def _is_idle(self) -> bool:
        if self._has_seen_any:
            self._has_seen_any, self._inactive_since_ms = False, None
            return False
        if self._inactive_since_ms is None:
            self._inactive_since_ms = self._time.now_ms
            return False
        return self._time.now_ms - self._inactive_since_ms > self._timeout_ms


class _Emitter:
    """Lets watermarks out that are larger than the last, and says when the stream is idle and when no more.

    Flink:   TimestampsAndWatermarksOperator.WatermarkEmitter, 1.11.4
    """

    def __init__(self, output: Output) -> None:
        self.current_watermark = MIN_TIMESTAMP
        self._output = output
        self._is_idle = False

    def emit_watermark(self, watermark: Watermark) -> None:
        if watermark.timestamp <= self.current_watermark:
            return
        self.current_watermark = watermark.timestamp
        if self._is_idle:
            self._is_idle = False
            self._output.emit_status(StreamStatus.ACTIVE)
        self._output.emit_watermark(Watermark(watermark.timestamp))

    def mark_idle(self) -> None:
        if not self._is_idle:
            self._is_idle = True
            self._output.emit_status(StreamStatus.IDLE)


class _Timed(Operator):
    """Emits watermarks of its own: those from upstream are dropped, but for the last one, which ends event time.

    `_probe` is called every so often in processing time.
    """

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.emitter = _Emitter(output)

    def process_watermark(self, watermark: Watermark) -> None:
        if watermark == MAX_WATERMARK:
            self._say(watermark)

    def process_status(self, status: StreamStatus) -> None:
        """Drop it: whether this stream is idle is said here."""

    def _say(self, watermark: Watermark) -> None:
        self.emitter.emit_watermark(watermark)
        self.current_watermark = self.emitter.current_watermark

    def _probe(self) -> None:
        """Say how far time has come."""

    def _wait_for_probe(self, timestamp_ms: int) -> None:
        self.context.time.register(timestamp_ms, self._on_time)

    def _on_time(self, _timestamp_ms: int) -> None:
        self._probe()
        self._wait_for_probe(self.context.time.now_ms + self.context.config.auto_watermark_interval_ms)


class TimestampsAndWatermarksOperator(_Timed):
    """Gives each record its event time, and says how far event time has come as `make_generator` has it.

    `timestamp_of` maps a value to ms, parts of one are rounded down; without it records keep the time they have. The
    generator is asked every `auto_watermark_interval_ms`, never if that is 0, and once more at the end of input.

    Raises (process):
        UserCodeError: `timestamp_of` raised, or there is none and the record has no time.

    Flink:   TimestampsAndWatermarksOperator (streaming.runtime.operators), 1.11.4
    Differs: a record without a time is an error; Flink gives it the least long. A status from upstream is dropped, as
             in 1.14 and later; in 1.11 it is one with that of the task.
    """

    def __init__(
        self,
        timestamp_of: Callable[[Any], int] | None,
        make_generator: Callable[[ProcessingTimeService], WatermarkGenerator],
    ) -> None:
        self.timestamp_of = timestamp_of
        self._timestamp_of_one = None if timestamp_of is None else for_one(timestamp_of)
        self._make_generator = make_generator

    def open(self) -> None:
        self.generator = self._make_generator(self.context.time)
        if interval_ms := self.context.config.auto_watermark_interval_ms:
            self._wait_for_probe(self.context.time.now_ms + interval_ms)

    def process(self, record: StreamRecord) -> None:
        try:
            timestamp = self._time_of(record)
        except USER_CODE_RAISES as error:
            raise self.fail(record.value, error) from error
        value = record.value
        record.timestamp = timestamp
        self.output.collect(record)
        try:
            self.generator.on_event(value, timestamp, self.emitter)
        except USER_CODE_RAISES as error:
            raise self.fail(value, error) from error
        self.current_watermark = self.emitter.current_watermark

    @property
    def takes_latest(self) -> bool:
        """Whether of records that go out together the generator needs to know the latest time only."""
        generator = self.generator
        inner = generator.generator if isinstance(generator, WatermarksWithIdleness) else generator
        # Whoever has written a method of their own is to see each record.
        return isinstance(inner, BoundedOutOfOrderness) and "on_event" not in _written_below(type(inner))

    def note_latest(self, timestamp: int) -> None:
        """Records have gone out together, the latest at `timestamp`; only if it `takes_latest`."""
        self.generator.on_event(None, timestamp, self.emitter)

    def finish(self) -> None:
        self._probe()

    def _time_of(self, record: StreamRecord) -> int:
        if self._timestamp_of_one is not None:
            return event_time(self._timestamp_of_one(record.value))
        if record.timestamp is None:
            raise LocalUsageError("the record has no time: give the strategy `with_timestamp_assigner`")
        return record.timestamp

    def _probe(self) -> None:
        try:
            self.generator.on_periodic_emit(self.emitter)
        except USER_CODE_RAISES as error:
            raise self.fail(None, error) from error
        self.current_watermark = self.emitter.current_watermark


class IngestionTimeOperator(_Timed):
    """Gives each record the processing time at which it came, and says how far that has come.

    The watermark is the last multiple of `auto_watermark_interval_ms` up to now, without the one less of event time.

    Flink:   StreamSourceContexts.AutomaticWatermarkContext (streaming.api.operators), 1.11.4
    Differs: an operator behind the source. With an interval of 0 there are no watermarks but the last.
    """

    def open(self) -> None:
        self._interval_ms = self.context.config.auto_watermark_interval_ms
        self._next_ms = 0  # a watermark goes out when this is over
        if self._interval_ms:
            self._wait_for_probe(self.context.time.now_ms + self._interval_ms)

    def process(self, record: StreamRecord) -> None:
        record.timestamp = self.context.time.now_ms
        self.output.collect(record)
        if self._interval_ms:
            self._probe()

    def _probe(self) -> None:
        now_ms = self.context.time.now_ms
        if now_ms > self._next_ms:
            reached_ms = now_ms - now_ms % self._interval_ms
            self._next_ms = reached_ms + self._interval_ms
            self._say(Watermark(reached_ms))


def _written_below(kind: type[BoundedOutOfOrderness]) -> set[str]:
    """What a class has of its own that derives from the one here."""
    below = kind.__mro__[: kind.__mro__.index(BoundedOutOfOrderness)]
    return set().union(*map(vars, below))
