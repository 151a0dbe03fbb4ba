"""Watermark generators: what they say, when, and that time never goes back."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.records import MAX_WATERMARK, MIN_TIMESTAMP, LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.task import (
    BoundedOutOfOrderness,
    IngestionTimeOperator,
    Operator,
    OperatorContext,
    OutputTag,
    ProcessingTimeService,
    TimestampsAndWatermarksOperator,
    WatermarkOutput,
    WatermarksWithIdleness,
)

IDLE, ACTIVE = StreamStatus.IDLE, StreamStatus.ACTIVE


class Rig:
    """One operator and its processing time; `out` is what came out since it was asked last: times, statuses, values."""

    def __init__(self, operator: Operator, interval_ms: int = 10, now_ms: int = 0) -> None:
        self.operator, self._out = operator, list[Hashable]()
        self.time = ProcessingTimeService()
        self.time.advance(now_ms)
        config = Config(auto_watermark_interval_ms=interval_ms)
        operator.setup(OperatorContext("timed", 0, 1, 128, self.time, config), self)
        operator.open()

    def collect(self, record: StreamRecord) -> None:
        self._out.append((record.value, record.timestamp))

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None: ...

    def emit_watermark(self, watermark: Watermark) -> None:
        self._out.append(watermark.timestamp)

    def emit_status(self, status: StreamStatus) -> None:
        self._out.append(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...

    def out(self) -> list[Hashable]:
        """What came out besides records."""
        out, self._out = self._out, []
        return [each for each in out if not isinstance(each, tuple)]

    def records(self) -> list[Hashable]:
        out, self._out = self._out, []
        return [each for each in out if isinstance(each, tuple)]

    def pass_to(self, now_ms: float) -> list[Hashable]:
        self.time.advance(now_ms)
        self.time.fire_due()
        return self.out()

    def put(self, *values: int) -> list[Hashable]:
        for value in values:
            self.operator.process(StreamRecord(value))
        return self.out()


def bounded(bound_ms: int, idle_ms: int | None = None) -> TimestampsAndWatermarksOperator:
    def make(time: ProcessingTimeService) -> Any:
        generator = BoundedOutOfOrderness(bound_ms)
        return generator if idle_ms is None else WatermarksWithIdleness(generator, idle_ms, time)

    return TimestampsAndWatermarksOperator(lambda value: value, make)


def test_a_bounded_generator_is_asked_every_interval_and_says_the_largest_time_less_the_bound_less_one() -> None:
    rig = Rig(bounded(5))
    assert rig.put(100, 90) == []
    assert rig.pass_to(9) == []
    assert rig.pass_to(10) == [94]
    assert rig.put(99) == []
    assert rig.pass_to(20) == []  # not larger
    rig.put(101)
    assert (rig.pass_to(29), rig.pass_to(31), rig.time.next_deadline) == ([], [95], 41)


@pytest.mark.parametrize("bound_ms", [0, 7, 2**40])
def test_before_the_first_record_a_bounded_generator_says_nothing_and_does_not_underflow(bound_ms: int) -> None:
    assert BoundedOutOfOrderness(bound_ms).max_timestamp == MIN_TIMESTAMP + bound_ms + 1
    rig = Rig(bounded(bound_ms))
    assert rig.pass_to(10) == []
    rig.put(MIN_TIMESTAMP)
    assert rig.pass_to(20) == []


def test_with_an_interval_of_0_nothing_comes_until_the_end_of_input() -> None:
    rig = Rig(bounded(0), interval_ms=0)
    rig.put(3, 8)
    assert (rig.time.next_deadline, rig.pass_to(10**6)) == (None, [])
    rig.operator.finish()
    assert rig.out() == [7]


def test_the_first_probe_is_one_interval_after_the_start() -> None:
    rig = Rig(bounded(0), interval_ms=200, now_ms=1_234)
    assert rig.time.next_deadline == 1_434


def test_watermarks_and_statuses_from_upstream_are_dropped_but_the_last() -> None:
    rig = Rig(bounded(0))
    rig.operator.process_watermark(Watermark(50))
    rig.operator.process_status(IDLE)
    assert rig.out() == []
    rig.operator.process_watermark(MAX_WATERMARK)
    rig.operator.finish()
    assert rig.out() == [MAX_WATERMARK.timestamp]
    assert rig.operator.current_watermark == MAX_WATERMARK.timestamp


def test_a_stream_is_idle_when_more_than_the_timeout_has_passed_since_a_probe_that_saw_nothing() -> None:
    """Probes at 10, 20, ...: one that sees a record, one that starts the clock, and idle at most two probes late."""
    rig = Rig(bounded(0, idle_ms=25))
    rig.put(5)
    assert rig.pass_to(10) == [4]
    assert [rig.pass_to(now) for now in (20, 30, 40, 45)] == [[], [], [], []]  # the clock started at 20
    assert rig.pass_to(50) == [IDLE]
    assert rig.pass_to(60) == []  # said once


def test_exactly_the_timeout_is_not_idle_yet() -> None:
    rig = Rig(bounded(0, idle_ms=10))
    assert (rig.pass_to(10), rig.pass_to(20), rig.pass_to(30)) == ([], [], [IDLE])


def test_records_flow_while_the_stream_is_idle_and_active_comes_before_the_first_larger_watermark() -> None:
    rig = Rig(bounded(3, idle_ms=10))
    rig.put(100)
    for now in (10, 20, 30, 40):
        rig.pass_to(now)
    rig.operator.process(StreamRecord(90))
    assert rig.records() == [(90, 90)]
    assert rig.pass_to(50) == []  # it has seen a record, and has no larger watermark
    rig.put(101)
    assert rig.pass_to(60) == [ACTIVE, 97]


class Punctuated:
    """Says a watermark at each value that ends with 0, and nothing when it is asked."""

    def on_event(self, value: int, timestamp: int, output: WatermarkOutput) -> None:
        if value % 10 == 0:
            output.emit_watermark(Watermark(timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


def test_a_punctuated_generator_answers_at_a_record_behind_it() -> None:
    rig = Rig(TimestampsAndWatermarksOperator(lambda value: value, lambda _time: Punctuated()))
    for value in (7, 10, 5, 10, 20):
        rig.operator.process(StreamRecord(value))
    assert rig._out == [(7, 7), (10, 10), 10, (5, 5), (10, 10), (20, 20), 20]
    rig.out()
    assert rig.pass_to(100) == []


def test_a_punctuated_watermark_ends_idleness_at_once() -> None:
    rig = Rig(
        TimestampsAndWatermarksOperator(
            lambda value: value, lambda time: WatermarksWithIdleness(Punctuated(), 10, time)
        )
    )
    assert [rig.pass_to(now) for now in (10, 20, 30)] == [[], [], [IDLE]]
    assert rig.put(7, 10) == [ACTIVE, 10]


def test_without_an_assigner_records_keep_their_time_and_one_without_is_refused() -> None:
    rig = Rig(TimestampsAndWatermarksOperator(None, lambda _time: BoundedOutOfOrderness(0)))
    rig.operator.process(StreamRecord("a", 40))
    assert rig.records() == [("a", 40)]
    with pytest.raises(UserCodeError, match=r"timed.*with_timestamp_assigner"):
        rig.operator.process(StreamRecord("b"))


def raises(*_: object) -> Any:
    raise KeyError("no such airport")


class Raising:
    def __init__(self, word: str) -> None:
        setattr(self, word, raises)

    def on_event(self, value: int, timestamp: int, output: WatermarkOutput) -> None: ...

    def on_periodic_emit(self, output: WatermarkOutput) -> None: ...


@pytest.mark.parametrize(
    ("operator", "act"),
    [
        (TimestampsAndWatermarksOperator(raises, lambda _: Punctuated()), lambda rig: rig.put(1)),
        (TimestampsAndWatermarksOperator(int, lambda _: Raising("on_event")), lambda rig: rig.put(1)),
        (TimestampsAndWatermarksOperator(int, lambda _: Raising("on_periodic_emit")), lambda rig: rig.pass_to(10)),
    ],
)
def test_what_the_users_code_raises_names_the_operator(operator: Operator, act: Callable[[Rig], object]) -> None:
    with pytest.raises(UserCodeError, match=r"timed.*no such airport"):
        act(Rig(operator))


def test_ingestion_time_is_now_and_its_watermark_the_last_multiple_of_the_interval() -> None:
    """Flink: StreamSourceOperatorWatermarksTest#testAutomaticWatermarkContext."""
    rig = Rig(IngestionTimeOperator(), interval_ms=10)
    rig.pass_to(7)
    rig.operator.process(StreamRecord("a", 99))
    assert rig._out == [("a", 7), 0]
    assert (rig.out(), rig.pass_to(9), rig.pass_to(10)) == ([0], [], [])
    rig.pass_to(13)
    assert rig.put(1) == [10]
    assert (rig.pass_to(20), rig.pass_to(47)) == ([], [40])


def test_ingested_records_are_never_behind_their_watermark() -> None:
    rig = Rig(IngestionTimeOperator(), interval_ms=10)
    reached = MIN_TIMESTAMP
    for now in (3, 10, 10, 11, 20, 20, 21, 30, 59, 60, 60, 61):
        rig.time.advance(now)
        rig.time.fire_due()
        rig.operator.process(StreamRecord(now))
    for each in rig._out:
        if isinstance(each, tuple):
            assert each[1] > reached
        else:
            assert isinstance(each, int)
            assert each > reached
            reached = each
    assert reached == 60


def test_without_an_interval_ingestion_time_has_no_watermark_but_the_last() -> None:
    rig = Rig(IngestionTimeOperator(), interval_ms=0)
    assert (rig.pass_to(100), rig.put(1), rig.time.next_deadline) == ([], [], None)
    rig.operator.process_watermark(MAX_WATERMARK)
    assert rig.out() == [MAX_WATERMARK.timestamp]


@pytest.mark.parametrize("bound", [-1, 1.5, True, None])
def test_what_is_no_bound_is_refused(bound: Any) -> None:
    with pytest.raises(LocalUsageError, match="an out-of-orderness of"):
        BoundedOutOfOrderness(bound)
