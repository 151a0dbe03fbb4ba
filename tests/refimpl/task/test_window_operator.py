"""Windows in event time: where a record falls, when a window fires, and what is late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError, UserCodeError
from refimpl.records import MAX_WATERMARK, LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.task import (
    LATE,
    EventTimeTrigger,
    OperatorContext,
    OutputTag,
    SessionWindows,
    SlidingWindows,
    TimeWindow,
    Trigger,
    TriggerContext,
    TumblingProcessingTimeWindows,
    TumblingWindows,
    WindowAssigner,
    WindowOperator,
)


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

    def __init__(
        self,
        aggregate: object | None = None,
        windows: WindowAssigner | None = None,
        trigger: Trigger | None = None,
        lateness: int = 0,
    ) -> None:
        windows = windows or TumblingWindows(10)
        self.operator = WindowOperator(lambda value: value[0], windows, aggregate or Total(), trigger, lateness)
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


# -- windows that overlap --------------------------------------------------------------------------


def test_a_record_is_in_each_window_that_holds_it() -> None:
    bench = Bench(windows=SlidingWindows(10, 4))
    bench.add("a", 1, 5)
    bench.add("a", 2, 9)
    assert bench.operator.num_open_windows == 4
    assert [each.value for each in bench.advance(99)[:-1]] == [
        ("a", -4, 6, 1),
        ("a", 0, 10, 3),
        ("a", 4, 14, 3),
        ("a", 8, 18, 2),
    ]


def test_a_record_is_late_only_if_all_its_windows_are_over() -> None:
    bench = Bench(windows=SlidingWindows(10, 5))
    bench.advance(9)
    bench.add("a", 1, 7)  # 0 to 10 is over, 5 to 15 is not
    assert (bench.operator.num_late, bench.late) == (0, [])
    assert [each.value for each in bench.advance(14)[:-1]] == [("a", 5, 15, 1)]
    bench.add("a", 2, 7)
    assert (bench.operator.num_late, [each.value for each in bench.late]) == (1, [("a", 2)])


def test_a_record_between_two_windows_is_in_none_and_late_only_if_it_is() -> None:
    bench = Bench(windows=SlidingWindows(3, 10))
    bench.add("a", 1, 7)
    assert (bench.operator.num_late, bench.operator.num_open_windows) == (0, 0)
    bench.advance(7)
    bench.add("a", 1, 7)
    assert bench.operator.num_late == 1


# -- lateness --------------------------------------------------------------------------------------


def test_a_window_stays_for_its_lateness_and_gives_a_new_result_for_each_record() -> None:
    bench = Bench(lateness=5)
    bench.add("a", 1, 3)
    assert bench.advance(9)[0] == StreamRecord(("a", 0, 10, 1), 9)
    bench.sent.clear()
    bench.add("a", 2, 4)
    bench.add("a", 4, 4)
    assert bench.sent == [StreamRecord(("a", 0, 10, 3), 9), StreamRecord(("a", 0, 10, 7), 9)]
    assert bench.advance(13) == [Watermark(13)]
    assert bench.operator.num_open_windows == 1
    assert bench.advance(14) == [Watermark(14)]
    assert (bench.operator.num_open_windows, len(bench.operator.timers)) == (0, 0)
    bench.add("a", 8, 4)
    assert (bench.operator.num_late, bench.operator.num_open_windows) == (1, 0)


def test_a_first_record_that_is_late_but_allowed_fires_at_once() -> None:
    bench = Bench(lateness=5)
    bench.advance(12)
    bench.add("a", 1, 3)
    assert bench.sent[-1] == StreamRecord(("a", 0, 10, 1), 9)
    assert (bench.operator.num_late, bench.operator.num_open_windows) == (0, 1)


def test_a_lateness_beyond_the_end_of_time_is_for_ever() -> None:
    bench = Bench(lateness=2**63 - 1)
    bench.add("a", 1, 3)
    bench.advance(2**62)
    bench.sent.clear()
    bench.add("a", 2, 3)
    assert bench.sent == [StreamRecord(("a", 0, 10, 3), 9)]
    bench.advance(MAX_WATERMARK.timestamp)
    assert bench.operator.num_open_windows == 0


def test_a_lateness_that_is_none_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="a lateness of -1 ms"):
        Bench(lateness=-1)


# -- sessions --------------------------------------------------------------------------------------


class Values:
    """All values of a window, in the order in which they came together."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: tuple[str, int], accumulator: list[int]) -> list[int]:
        return [*accumulator, value[1]]

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        return [*one, *other]


def test_a_session_ends_when_nothing_has_come_for_its_gap() -> None:
    bench = Bench(Values(), SessionWindows(10))
    for number, timestamp in enumerate([0, 7, 30, 17, 40]):  # 7 + 10 is 17: it still joins
        bench.add("a", number, timestamp)
    bench.add("b", 9, 12)
    assert bench.operator.num_open_windows == 3
    assert [(each.value, each.timestamp) for each in bench.advance(49)[:-1]] == [
        (("b", 12, 22, [9]), 21),
        (("a", 0, 27, [0, 1, 3]), 26),
        (("a", 30, 50, [2, 4]), 49),
    ]
    assert (bench.operator.num_open_windows, len(bench.operator.timers)) == (0, 0)


def test_a_record_that_joins_two_sessions_makes_one_of_what_they_hold() -> None:
    bench = Bench(Values(), SessionWindows(5))
    for number, timestamp in enumerate([0, 10, 20, 5, 15]):
        bench.add("a", number, timestamp)
    assert bench.operator.num_open_windows == 1
    ((key, start, end, values),) = [each.value for each in bench.advance(99)[:-1]]
    assert (key, start, end, sorted(values)) == ("a", 0, 25, [0, 1, 2, 3, 4])


def test_a_late_record_opens_no_session_and_may_still_join_one() -> None:
    bench = Bench(Values(), SessionWindows(10))
    bench.add("a", 0, 0)
    bench.advance(8)
    bench.add("a", 1, -4)  # alone it would be over at 5; it joins the one that lasts until 9
    assert (bench.operator.num_late, bench.sent[1:]) == (0, [])
    bench.add("b", 2, -4)
    assert (bench.operator.num_late, bench.operator.num_open_windows) == (1, 1)
    assert bench.advance(9)[0].value == ("a", -4, 10, [0, 1])
    bench.add("b", 3, 50)
    assert bench.advance(59)[0].value == ("b", 50, 60, [3])


def test_the_gap_may_depend_on_the_record() -> None:
    bench = Bench(Values(), SessionWindows(lambda value: value[1]))
    bench.add("a", 3, 0)
    bench.add("a", 20, 4)
    assert [each.value for each in bench.advance(99)[:-1]] == [("a", 0, 3, [3]), ("a", 4, 24, [20])]
    with pytest.raises(UserCodeError, match="a session gap of 0 ms"):
        bench.add("a", 0, 200)


def test_sessions_of_an_aggregate_that_cannot_merge_are_refused() -> None:
    with pytest.raises(LocalUsageError, match=r"Total needs merge\(accumulator, other\)"):
        Bench(windows=SessionWindows(5))


def test_a_trigger_with_a_timer_of_a_window_that_is_gone_does_no_harm() -> None:
    class Forgetful(EventTimeTrigger):
        def clear(self, context: TriggerContext) -> None: ...

    bench = Bench(Values(), SessionWindows(10), trigger=Forgetful())
    bench.add("a", 1, 0)
    bench.add("a", 2, 5)  # the timer of 0 to 10 is left
    assert [each.value for each in bench.advance(99)[:-1]] == [("a", 0, 15, [1, 2])]


@pytest.mark.parametrize("lateness", [0, 3, 1000])
@pytest.mark.parametrize(
    "windows", [TumblingWindows(7, 2), SlidingWindows(9, 4), SlidingWindows(2, 5, -3), SessionWindows(4)], ids=repr
)
@given(st.lists(st.one_of(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), st.integers(0, 45)), max_size=40))
def test_the_last_results_hold_each_record_that_was_not_late(windows: object, lateness: int, story: object) -> None:
    """A text is a record of that key and a time, a number a watermark."""
    bench = Bench(Values(), windows, lateness=lateness)
    results: dict[tuple[str, int, int], list[int]] = {}
    in_time: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    times: list[int] = []
    bench.collect = lambda record: results.update({record.value[:3]: record.value[3]})
    for step in [*story, MAX_WATERMARK.timestamp]:
        if isinstance(step, int):
            if step >= bench.operator.current_watermark:
                bench.advance(step)
            continue
        key, time = step
        num_late = bench.operator.num_late
        bench.add(key, len(times), time)
        if bench.operator.num_late == num_late:
            in_time[key].append((time, len(times)))
        times.append(time)
    assert (bench.operator.num_open_windows, len(bench.operator.timers)) == (0, 0)
    for (key, start, end), values in results.items():
        assert values, (key, start, end)
        assert all((times[n], n) in in_time[key] for n in values)
        assert all(start <= times[n] < end for n in values)
    if windows.is_merging:
        held = sorted(n for (key, *_), values in results.items() if key == "a" for n in values)
        assert set(held) == {n for _, n in in_time["a"]}
    elif lateness == 1000:
        for key, records in in_time.items():
            expected: dict[tuple[str, int, int], list[int]] = {}
            for time, number in sorted(records, key=lambda record: record[1]):
                for window in windows.assign(time):
                    expected.setdefault((key, *window), []).append(number)
            assert {where: values for where, values in results.items() if where[0] == key} == expected


def test_windows_of_processing_time_need_no_event_time_and_refuse_a_lateness() -> None:
    bench = Bench(windows=TumblingProcessingTimeWindows(10))
    time = bench.operator.context.time
    time.advance(14)
    bench.operator.process(StreamRecord(("JFK", 3)))
    assert (time.next_deadline, bench.operator.num_open_windows) == (19, 1)
    time.advance(19)
    time.fire_due()
    assert (bench.operator.num_open_windows, len(bench.operator.processing_timers.queue)) == (0, 0)
    with pytest.raises(LocalUsageError, match="no late records"):
        WindowOperator(len, TumblingProcessingTimeWindows(10), Total(), allowed_lateness_ms=1)


def test_an_assigner_that_does_not_say_is_one_of_event_time() -> None:
    class Everything:
        is_merging = False

        def assign(self, timestamp: int, value: object = None) -> list[TimeWindow]:
            return [TimeWindow(0, 100)]

    assert WindowOperator(len, Everything(), Total()).is_event_time
