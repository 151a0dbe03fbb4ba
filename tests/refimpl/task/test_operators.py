"""Operators: what each makes of a record, and whose name stands in the error when the user's code fails."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from refimpl.errors import LocalUsageError, SpillError, UserCodeError
from refimpl.records import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    Field,
    LatencyMarker,
    RecordBatch,
    StreamRecord,
    StreamStatus,
    Vectorized,
    Watermark,
)
from refimpl.task import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    OperatorContext,
    OutputTag,
    SinkOperator,
    TumblingWindows,
    WatermarkOperator,
    WindowOperator,
)

MARKER = LatencyMarker(1, 2, 3, 4)


class Kept:
    """An output that keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def collect(self, record: StreamRecord) -> None:
        self.items.append(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        self.items.append((tag.name, record))

    def emit_watermark(self, watermark: Watermark) -> None:
        self.items.append(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        self.items.append(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.items.append(marker)


def set_up(operator: Operator) -> Kept:
    kept = Kept()
    operator.setup(OperatorContext("parse", 3, 4, 128), kept)
    operator.open()
    return kept


# -- what goes through -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operator",
    [Operator(), MapOperator(abs), FilterOperator(abs), FlatMapOperator(lambda value: [value])],
    ids=lambda operator: type(operator).__name__,
)
def test_an_operator_passes_on_everything_that_is_no_record(operator: Operator) -> None:
    kept = set_up(operator)
    assert operator.current_watermark == MIN_TIMESTAMP
    operator.process_watermark(Watermark(5))
    operator.process_status(StreamStatus.IDLE)
    operator.process_latency_marker(MARKER)
    operator.finish()
    assert kept.items == [Watermark(5), StreamStatus.IDLE, MARKER]
    assert operator.current_watermark == 5


def test_the_plain_operator_passes_on_the_record_itself() -> None:
    operator, record = Operator(), StreamRecord([1], 2)
    kept = set_up(operator)
    operator.process(record)
    assert kept.items[0] is record


def test_map_makes_one_value_of_one_and_keeps_the_time() -> None:
    operator, record = MapOperator(lambda value: value * 2), StreamRecord(3, 7)
    kept = set_up(operator)
    operator.process(record)
    operator.process(StreamRecord("a"))
    assert kept.items == [StreamRecord(6, 7), StreamRecord("aa")]
    assert record == StreamRecord(3, 7)  # the record that came in is not touched


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [(True, True), (False, False), (1, True), (0, False), ("", False), ("no", True), (None, False)],
)
def test_filter_keeps_what_the_function_finds_true(answer: object, is_kept: bool) -> None:
    operator, record = FilterOperator(lambda _value: answer), StreamRecord(3, 7)
    kept = set_up(operator)
    operator.process(record)
    assert kept.items == ([record] if is_kept else [])


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda value: [value, value + 1], [5, 6]),
        (lambda value: (), []),
        (lambda value: (number for number in range(value)), [0, 1, 2, 3, 4]),
        (lambda value: "ab", ["a", "b"]),
        (lambda value: {"k": value}, ["k"]),
    ],
)
def test_flat_map_makes_any_number_of_values_and_keeps_the_time(
    function: Callable[[int], object], values: list[object]
) -> None:
    operator = FlatMapOperator(function)
    kept = set_up(operator)
    operator.process(StreamRecord(5, 7))
    assert kept.items == [StreamRecord(value, 7) for value in values]


def test_flat_map_sends_each_value_before_it_asks_for_the_next() -> None:
    seen: list[int] = []

    def function(_value: object) -> object:
        for number in range(3):
            seen.append(len(kept.items))
            yield number

    operator = FlatMapOperator(function)
    kept = set_up(operator)
    operator.process(StreamRecord(0))
    assert seen == [0, 1, 2]


def test_a_sink_calls_the_function_and_sends_nothing_on() -> None:
    values: list[object] = []
    operator = SinkOperator(values.append)
    kept = set_up(operator)
    operator.process(StreamRecord(5, 7))
    operator.process_watermark(Watermark(9))
    operator.process_status(StreamStatus.IDLE)
    operator.process_latency_marker(MARKER)
    assert (values, kept.items, operator.current_watermark) == ([5], [], 9)


@pytest.mark.parametrize("kind", [MapOperator, SinkOperator])
def test_a_swapped_function_is_used_from_the_next_record_on(kind: type[FunctionOperator]) -> None:
    calls: list[tuple[str, object]] = []
    operator = kind(lambda value: calls.append(("old", value)))
    set_up(operator)
    operator.process(StreamRecord(1))
    operator.swap_function(lambda value: calls.append(("new", value)))
    operator.process(StreamRecord(2))
    assert calls == [("old", 1), ("new", 2)]


# -- the user's mistakes ---------------------------------------------------------------------------


def fails(value: object) -> object:
    raise KeyError("no such airport")


def fails_in_the_middle(value: object) -> object:
    yield value
    raise KeyError("no such airport")


def not_an_iterable(value: object) -> object:
    return 7


FAILING = [
    (MapOperator(fails), "KeyError: 'no such airport'"),
    (FilterOperator(fails), "KeyError: 'no such airport'"),
    (FlatMapOperator(fails), "KeyError: 'no such airport'"),
    (FlatMapOperator(fails_in_the_middle), "KeyError: 'no such airport'"),
    (FlatMapOperator(not_an_iterable), "TypeError: a flat_map function returns an iterable, not 7"),
    (SinkOperator(fails), "KeyError: 'no such airport'"),
    (WatermarkOperator(fails, 0), "KeyError: 'no such airport'"),
    (WatermarkOperator(lambda value: "noon", 0), "ValueError: invalid literal for int"),
    (WatermarkOperator(lambda value: None, 0), "TypeError: int"),
]


@pytest.mark.parametrize(("operator", "said"), FAILING, ids=lambda case: type(case).__name__)
def test_an_exception_names_operator_subtask_and_record(operator: Operator, said: str) -> None:
    set_up(operator)
    with pytest.raises(UserCodeError) as caught:
        operator.process(StreamRecord(("JFK", 5), 7))
    assert str(caught.value).startswith(f"parse, subtask 3, raised {said}")
    assert str(caught.value).endswith("while processing ('JFK', 5)")
    error = caught.value
    assert (error.operator, error.subtask, error.record) == ("parse", 3, ("JFK", 5))


def test_the_users_exception_is_kept_as_the_cause() -> None:
    operator = MapOperator(fails)
    set_up(operator)
    with pytest.raises(UserCodeError) as caught:
        operator.process(StreamRecord(1))
    assert isinstance(caught.value.__cause__, KeyError)


def test_values_sent_before_the_exception_have_gone() -> None:
    operator = FlatMapOperator(fails_in_the_middle)
    kept = set_up(operator)
    with pytest.raises(UserCodeError):
        operator.process(StreamRecord(1, 2))
    assert kept.items == [StreamRecord(1, 2)]


def test_an_error_of_the_engine_downstream_is_not_blamed_on_the_user() -> None:
    def full_disk(_value: object) -> object:
        raise SpillError(9, "/full", "is full")

    for operator in (MapOperator(full_disk), FilterOperator(full_disk), SinkOperator(full_disk)):
        set_up(operator)
        with pytest.raises(SpillError, match="/full is full"):
            operator.process(StreamRecord(1))


def test_an_operator_behind_that_fails_keeps_its_own_name() -> None:
    second = MapOperator(fails)
    second.setup(OperatorContext("second", 0, 1, 1), Kept())

    class Chained(Kept):
        def collect(self, record: StreamRecord) -> None:
            second.process(record)

    for first in (MapOperator(str), FilterOperator(str), FlatMapOperator(str)):
        first.setup(OperatorContext("first", 0, 1, 1), Chained())
        with pytest.raises(UserCodeError) as caught:
            first.process(StreamRecord(12))
        assert caught.value.operator == "second"


def test_an_interrupt_is_no_mistake_of_the_users_and_passes() -> None:
    def interrupted(_value: object) -> object:
        raise KeyboardInterrupt

    operator = MapOperator(interrupted)
    set_up(operator)
    with pytest.raises(KeyboardInterrupt):
        operator.process(StreamRecord(1))


# -- event time ------------------------------------------------------------------------------------


def times(kept: Kept) -> list[object]:
    """Watermarks as numbers, records as their times."""
    return [item.timestamp for item in kept.items if isinstance(item, Watermark)]


def test_each_record_gets_its_time_and_a_watermark_follows_each_few() -> None:
    operator = WatermarkOperator(lambda value: value * 10, max_out_of_orderness_ms=5, every=2)
    kept = set_up(operator)
    for value in (1, 3, 2, 2, 5):
        operator.process(StreamRecord(value))
    assert kept.items == [
        StreamRecord(1, 10),
        StreamRecord(3, 30),
        Watermark(24),
        StreamRecord(2, 20),
        StreamRecord(2, 20),
        StreamRecord(5, 50),
    ]
    assert operator.current_watermark == 24


def test_a_watermark_never_repeats_and_never_goes_back() -> None:
    operator = WatermarkOperator(lambda value: value, max_out_of_orderness_ms=0, every=1)
    kept = set_up(operator)
    for value in (5, 3, 5, 6, -9, 6, 7):
        operator.process(StreamRecord(value))
    assert times(kept) == [4, 5, 6]


def test_a_record_exactly_at_the_bound_is_not_late() -> None:
    operator = WatermarkOperator(lambda value: value, max_out_of_orderness_ms=10, every=1)
    kept = set_up(operator)
    operator.process(StreamRecord(100))
    assert times(kept) == [89]


def test_before_the_first_record_time_has_not_begun() -> None:
    operator = WatermarkOperator(lambda value: value, max_out_of_orderness_ms=10, every=1)
    kept = set_up(operator)
    operator.process(StreamRecord(MIN_TIMESTAMP))
    assert times(kept) == []
    assert operator.current_watermark == MIN_TIMESTAMP


def test_watermarks_from_upstream_are_dropped_but_for_the_end_of_time() -> None:
    operator = WatermarkOperator(lambda value: value, max_out_of_orderness_ms=0, every=1)
    kept = set_up(operator)
    operator.process_watermark(Watermark(10**6))
    operator.process(StreamRecord(5))
    operator.process_watermark(MAX_WATERMARK)
    operator.process_watermark(MAX_WATERMARK)
    assert times(kept) == [4, MAX_WATERMARK.timestamp]


@pytest.mark.parametrize(("bound", "every"), [(-1, 1), (0, 0), (0, -3)])
def test_a_bound_or_a_period_that_cannot_be_is_refused(bound: int, every: int) -> None:
    with pytest.raises(LocalUsageError, match=f"out-of-orderness {bound} ms must be 0 or more, every {every}"):
        WatermarkOperator(int, bound, every)


# -- functions for a value and for a batch -----------------------------------------------------------


@pytest.mark.parametrize(("field", "value"), [(1, (7, 8)), ("b", {"a": 7, "b": 8}), (-1, (7, 8))])
def test_a_field_is_that_of_a_value_or_of_a_batch(field: int | str, value: Any) -> None:
    taken = pickle.loads(pickle.dumps(Field(field)))  # a job goes to other processes
    batch = RecordBatch([np.array([1, 7]), np.array([2, 8])], names=("a", "b"))
    assert (taken(value), taken.one(value), taken.field, repr(taken)) == (8, 8, field, f"Field({field!r})")
    assert taken.many(batch).tolist() == [2, 8]


class InParts(Vectorized):
    """Whoever calls it for each value pays for two calls."""

    def __call__(self, value: Any) -> Any:
        raise AssertionError("called, where `one` would do")


class Sum:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + int(value[1])

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other


@pytest.mark.parametrize(("make", "arrived"), [
    (MapOperator, [StreamRecord(4, 5)]),
    (lambda second: WatermarkOperator(second, 0), [StreamRecord((3, 4), 4)]),
    (lambda second: WindowOperator(second, TumblingWindows(10), Sum()), [StreamRecord((4, 0, 10, 4), 9)]),
])  # fmt: skip
def test_who_calls_for_each_value_calls_nothing_around_the_function(
    make: Callable[[InParts], Operator], arrived: list[StreamRecord]
) -> None:
    operator = make(InParts(lambda value: value[1], lambda batch: batch[1]))
    kept = set_up(operator)
    operator.process(StreamRecord((3, 4), 5))
    operator.process_watermark(MAX_WATERMARK)
    assert kept.items[: len(arrived)] == arrived
