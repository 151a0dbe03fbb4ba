"""Windows in event time: where a record falls, when a window fires, and what is late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.records import MAX_WATERMARK, LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.task import LATE, OperatorContext, OutputTag, TimeWindow, TumblingWindows, WindowOperator


class Total:
    """Adds numbers up."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: tuple[str, int], accumulator: int) -> int:
        return accumulator + value[1]

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Bench:
    """A window operator of 10 ms by the first field, and everything it sends."""

    def __init__(self, aggregate: object | None = None, windows: TumblingWindows | None = None) -> None:
        self.operator = WindowOperator(lambda value: value[0], windows or TumblingWindows(10), aggregate or Total())
        self.sent: list[object] = []
        self.late: list[StreamRecord] = []
        self.operator.setup(OperatorContext("delays", 1, 2, 128), self)

    def add(self, key: object, number: int, timestamp: int | None) -> None:
        self.operator.process(StreamRecord((key, number), timestamp))

    def advance(self, timestamp: int) -> list[object]:
        """What a watermark brings out."""
        self.sent.clear()
        self.operator.process_watermark(Watermark(timestamp))
        return list(self.sent)

    def collect(self, record: StreamRecord) -> None:
        self.sent.append(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        assert tag == LATE
        self.late.append(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.sent.append(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        self.sent.append(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.sent.append(marker)


# -- where a record falls --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "offset", "timestamp", "start"),
    [(10, 0, 0, 0), (10, 0, 9, 0), (10, 0, 10, 10), (10, 0, -1, -10), (10, 0, -10, -10), (10, 0, -11, -20),
     (10, 3, 3, 3), (10, 3, 2, -7), (10, 3, 12, 3), (10, 3, 13, 13), (1, 0, 7, 7),
     (10, -3, 6, -3), (10, -3, 7, 7), (10, -3, -4, -13), (86_400_000, -28_800_000, 0, -28_800_000)],
)  # fmt: skip
def test_a_time_falls_into_the_window_that_starts_at_or_before_it(
    size: int, offset: int, timestamp: int, start: int
) -> None:
    assert TumblingWindows(size, offset).assign(timestamp) == TimeWindow(start, start + size)


@given(st.integers(-(2**62), 2**62), st.integers(1, 10**9), st.data())
def test_windows_lie_side_by_side(timestamp: int, size: int, data: st.DataObject) -> None:
    windows = TumblingWindows(size, data.draw(st.integers(1 - size, size - 1)))
    window = windows.assign(timestamp)
    assert window.start_ms <= timestamp <= window.max_timestamp == window.end_ms - 1
    assert (window.start_ms - windows.offset_ms) % size == 0
    assert windows.assign(window.start_ms - 1).end_ms == window.start_ms
    assert windows.assign(window.end_ms).start_ms == window.end_ms


@pytest.mark.parametrize(("size", "offset"), [(0, 0), (-5, 0), (10, -10), (10, 10), (10, 25)])
def test_a_size_or_an_offset_that_cannot_be_is_refused(size: int, offset: int) -> None:
    with pytest.raises(LocalUsageError, match=f"a window of {size} ms, offset {offset} ms"):
        TumblingWindows(size, offset)


# -- when a window fires ---------------------------------------------------------------------------


def test_a_window_fires_when_the_watermark_reaches_its_last_millisecond() -> None:
    bench = Bench()
    bench.add("a", 1, 0)
    bench.add("a", 2, 9)
    assert bench.advance(8) == [Watermark(8)]
    assert bench.operator.num_open_windows == 1
    assert bench.advance(9) == [StreamRecord(("a", 0, 10, 3), 9), Watermark(9)]
    assert bench.operator.num_open_windows == 0


def test_a_window_fires_once() -> None:
    bench = Bench()
    bench.add("a", 1, 5)
    bench.advance(9)
    assert bench.advance(99) == [Watermark(99)]


def test_keys_and_windows_are_summed_apart_and_fire_in_order_of_time() -> None:
    bench = Bench()
    for key, number, timestamp in (("b", 1, 25), ("a", 2, 5), ("b", 4, 7), ("a", 8, 9), ("a", 16, 10)):
        bench.add(key, number, timestamp)
    assert bench.operator.num_open_windows == 4
    assert bench.advance(19) == [
        StreamRecord(("a", 0, 10, 10), 9),
        StreamRecord(("b", 0, 10, 4), 9),
        StreamRecord(("a", 10, 20, 16), 19),
        Watermark(19),
    ]


def test_the_end_of_event_time_fires_every_window() -> None:
    bench = Bench()
    bench.add("a", 1, 10**15)
    bench.add("a", 2, -(10**15))
    assert [item.value[3] for item in bench.advance(MAX_WATERMARK.timestamp)[:-1]] == [2, 1]
    assert bench.operator.num_open_windows == 0


def test_an_offset_moves_the_windows() -> None:
    bench = Bench(windows=TumblingWindows(10, 3))
    bench.add("a", 1, 2)
    bench.add("a", 2, 3)
    assert bench.advance(2) == [StreamRecord(("a", -7, 3, 1), 2), Watermark(2)]


def test_a_window_of_zeros_is_a_result_too() -> None:
    """An accumulator that is false in Python is still one."""
    bench = Bench()
    bench.add("a", 0, 1)
    bench.add("a", 0, 2)
    assert bench.advance(9)[0] == StreamRecord(("a", 0, 10, 0), 9)


def test_statuses_and_latency_markers_pass() -> None:
    bench = Bench()
    bench.operator.process_status(StreamStatus.IDLE)
    bench.operator.process_latency_marker(LatencyMarker(1, 2, 3, 4))
    assert bench.sent == [StreamStatus.IDLE, LatencyMarker(1, 2, 3, 4)]


# -- late records ----------------------------------------------------------------------------------


def test_a_record_is_late_when_its_window_has_fired_not_when_its_time_has_passed() -> None:
    bench = Bench()
    bench.advance(8)
    bench.add("a", 1, 3)  # older than the watermark, but its window is open
    assert (bench.late, bench.operator.num_late) == ([], 0)
    assert bench.advance(9)[0] == StreamRecord(("a", 0, 10, 1), 9)
    bench.add("a", 2, 9)
    bench.add("b", 4, -50)
    bench.add("a", 8, 10)
    assert bench.late == [StreamRecord(("a", 2), 9), StreamRecord(("b", 4), -50)]
    assert (bench.operator.num_late, bench.operator.num_open_windows) == (2, 1)


def test_a_late_record_opens_no_window_again() -> None:
    bench = Bench()
    bench.add("a", 1, 1)
    bench.advance(9)
    bench.add("a", 2, 1)
    assert bench.operator.num_open_windows == 0
    assert bench.advance(99) == [Watermark(99)]


# -- mistakes --------------------------------------------------------------------------------------


def test_a_record_without_a_time_is_refused() -> None:
    bench = Bench()
    with pytest.raises(UserCodeError, match="a record without event time cannot be put into a window"):
        bench.add("a", 1, None)


class Failing(Total):
    def __init__(self, where: str) -> None:
        self.where = where

    def create_accumulator(self) -> int:
        return 1 // (self.where != "create") and 0

    def add(self, value: tuple[str, int], accumulator: int) -> int:
        return super().add(value, accumulator) // (self.where != "add")

    def get_result(self, accumulator: int) -> int:
        return accumulator // (self.where != "result")


@pytest.mark.parametrize("where", ["create", "add"])
def test_an_aggregate_that_fails_names_operator_subtask_and_record(where: str) -> None:
    bench = Bench(Failing(where))
    with pytest.raises(UserCodeError, match=r"delays, subtask 1, raised ZeroDivisionError.*\('a', 5\)") as caught:
        bench.add("a", 5, 1)
    assert caught.value.record == ("a", 5)


def test_a_result_that_fails_names_the_key_and_the_window() -> None:
    bench = Bench(Failing("result"))
    bench.add("a", 5, 1)
    with pytest.raises(UserCodeError, match="delays, subtask 1, raised ZeroDivisionError") as caught:
        bench.advance(9)
    assert caught.value.record == ("a", TimeWindow(0, 10))


def test_a_key_that_cannot_be_looked_up_names_the_record() -> None:
    bench = Bench()
    with pytest.raises(UserCodeError, match=r"delays, subtask 1, raised TypeError: unhashable.*\(\[1\], 5\)"):
        bench.add([1], 5, 1)
