"""Windows of one key that grow together, and where what they hold lies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refimpl.task import MergingWindows, TimeWindow


def test_a_window_that_touches_none_holds_its_own() -> None:
    windows = MergingWindows()
    assert windows.add(TimeWindow(0, 3)) == (TimeWindow(0, 3), None)
    assert windows.add(TimeWindow(5, 8)) == (TimeWindow(5, 8), None)
    assert windows.state_window(TimeWindow(5, 8)) == TimeWindow(5, 8)
    assert len(windows) == 2


def test_a_window_that_grows_keeps_its_state_where_it_was() -> None:
    """Flink: `MergingWindowSetTest#testIncrementalMerging`."""
    windows = MergingWindows()
    windows.add(TimeWindow(0, 4))
    result, merge = windows.add(TimeWindow(4, 8))
    assert result == TimeWindow(0, 8)
    assert merge == (TimeWindow(0, 8), [TimeWindow(0, 4)], TimeWindow(0, 4), [])
    assert windows.state_window(result) == TimeWindow(0, 4)
    assert windows.state_window(TimeWindow(0, 4)) is None


def test_a_window_inside_of_another_changes_nothing() -> None:
    """Flink: `MergingWindowSetTest#testAddingIdenticalWindows`, `#testMergeLateWindowCoveredByExisting…`."""
    windows = MergingWindows()
    windows.add(TimeWindow(0, 9))
    assert windows.add(TimeWindow(0, 9)) == (TimeWindow(0, 9), None)
    assert windows.add(TimeWindow(3, 5)) == (TimeWindow(0, 9), None)
    assert windows.state_window(TimeWindow(0, 9)) == TimeWindow(0, 9)


def test_one_that_lies_between_joins_two() -> None:
    windows = MergingWindows()
    windows.add(TimeWindow(8, 11))
    windows.add(TimeWindow(0, 3))
    result, merge = windows.add(TimeWindow(3, 8))
    assert merge is not None
    assert (result, merge.merged) == (TimeWindow(0, 11), [TimeWindow(0, 3), TimeWindow(8, 11)])
    assert (merge.state_window, list(merge.other_states)) == (TimeWindow(0, 3), [TimeWindow(8, 11)])
    assert len(windows) == 1


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=30))
def test_the_windows_are_those_that_cover_all_and_touch_none(spans: list[tuple[int, int]]) -> None:
    windows = MergingWindows()
    states: dict[TimeWindow, set[int]] = {}  # state window -> the records that lie under it
    for number, (start, length) in enumerate(spans):
        assigned = TimeWindow(start, start + length)
        result, merge = windows.add(assigned)
        if merge is not None:
            for other in merge.other_states:
                states[merge.state_window] |= states.pop(other)
        states.setdefault(windows.state_window(result), set()).add(number)
    left = [TimeWindow(start, start + length) for start, length in spans]
    expected: list[TimeWindow] = []
    for window in sorted(left):
        if expected and expected[-1].touches(window):
            expected[-1] = expected[-1].cover(window)
        else:
            expected.append(window)
    held = {
        window: {n for n, (start, length) in enumerate(spans) if window.touches(TimeWindow(start, start + length))}
        for window in expected
    }
    assert {window: states[windows.state_window(window)] for window in expected} == held
    assert len(windows) == len(expected)
    for window in expected:
        windows.retire(window)
    assert len(windows) == 0
