"""When windows give their results."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from refimpl.task import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    PurgingTrigger,
    SessionWindows,
    TumblingWindows,
)
from tests.refimpl.task.test_window_operator import Bench, Total


class Mergeable(Total):
    def merge(self, one: int, other: int) -> int:
        return one + other


def results(sent: list[object]) -> list[object]:
    """The sums among what was sent."""
    return [each.value[3] for each in sent if hasattr(each, "value")]


def test_a_count_fires_after_so_many_and_goes_on_counting() -> None:
    bench = Bench(trigger=CountTrigger(3))
    for number in range(1, 8):
        bench.add("a", number, number)
    assert results(bench.sent) == [6, 21]
    assert results(bench.advance(99)) == []
    assert bench.operator.num_open_windows == 0


def test_a_count_is_of_one_key_and_one_window() -> None:
    bench = Bench(trigger=CountTrigger(2))
    for key, timestamp in (("a", 1), ("b", 1), ("a", 11), ("a", 2), ("b", 12)):
        bench.add(key, 1, timestamp)
    assert [each.value for each in bench.sent] == [("a", 0, 10, 2)]


def test_a_purging_trigger_begins_anew() -> None:
    bench = Bench(trigger=PurgingTrigger(CountTrigger(2)))
    for number in (1, 2, 4, 8, 16):
        bench.add("a", number, 5)
    assert results(bench.sent) == [3, 12]
    bench = Bench(trigger=PurgingTrigger(EventTimeTrigger()), lateness=20)
    bench.add("a", 1, 5)
    assert results(bench.advance(9)) == [1]
    bench.sent.clear()
    bench.add("a", 2, 5)
    assert results(bench.sent) == [2]
    assert bench.operator.num_open_windows == 0


def test_nothing_is_emitted_where_nothing_came_since_it_began_anew() -> None:
    bench = Bench(trigger=PurgingTrigger(ContinuousEventTimeTrigger(4)))
    bench.add("a", 1, 1)
    assert results(bench.advance(4)) == [1]
    assert results(bench.advance(8)) == []
    assert results(bench.advance(9)) == []


def test_a_continuous_trigger_fires_at_each_multiple_and_at_the_end() -> None:
    bench = Bench(windows=TumblingWindows(20), trigger=ContinuousEventTimeTrigger(6))
    bench.add("a", 1, 7)
    assert results(bench.advance(11)) == []
    assert results(bench.advance(12)) == [1]
    bench.add("a", 2, 13)
    assert results(bench.advance(17)) == []
    assert results(bench.advance(18)) == [3]
    assert results(bench.advance(19)) == [3]
    assert results(bench.advance(99)) == []
    assert len(bench.operator.timers) == 0


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), ContinuousEventTimeTrigger(4), CountTrigger(3)])
def test_triggers_go_along_when_windows_grow_together(trigger: object) -> None:
    bench = Bench(Mergeable(), SessionWindows(10), trigger=trigger)
    bench.add("a", 1, 0)
    bench.add("a", 2, 15)
    bench.sent.clear()
    bench.add("a", 4, 8)  # joins the two: 0 to 25
    counted = isinstance(trigger, CountTrigger)
    assert results(bench.sent) == ([7] if counted else [])
    assert set(results(bench.advance(24))) == (set() if counted else {7})
    assert (bench.operator.num_open_windows, len(bench.operator.timers)) == (0, 0)


@pytest.mark.parametrize("make", [lambda: CountTrigger(0), lambda: ContinuousEventTimeTrigger(0)])
def test_a_trigger_that_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(LocalUsageError, match="a trigger"):
        make()
