"""Which windows a record belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.task import SessionWindows, SlidingWindows, TimeWindow, TumblingWindows

TIMES = st.integers(-(2**62), 2**62)


@pytest.mark.parametrize(
    ("size", "offset", "timestamp", "start"),
    [(10, 0, 0, 0), (10, 0, 9, 0), (10, 0, 10, 10), (10, 0, -1, -10), (10, 0, -10, -10), (10, 0, -11, -20),
     (10, 3, 3, 3), (10, 3, 2, -7), (10, 3, 12, 3), (10, 3, 13, 13), (1, 0, 7, 7),
     (10, -3, 6, -3), (10, -3, 7, 7), (10, -3, -4, -13), (86_400_000, -28_800_000, 0, -28_800_000)],
)  # fmt: skip
def test_a_time_falls_into_the_window_that_starts_at_or_before_it(
    size: int, offset: int, timestamp: int, start: int
) -> None:
    assert TumblingWindows(size, offset).assign(timestamp) == (TimeWindow(start, start + size),)


@given(TIMES, st.integers(1, 10**9), st.data())
def test_tumbling_windows_lie_side_by_side(timestamp: int, size: int, data: st.DataObject) -> None:
    windows = TumblingWindows(size, data.draw(st.integers(1 - size, size - 1)))
    (window,) = windows.assign(timestamp)
    assert window.start_ms <= timestamp <= window.max_timestamp == window.end_ms - 1
    assert (window.start_ms - windows.offset_ms) % size == 0
    assert windows.assign(window.start_ms - 1)[0].end_ms == window.start_ms
    assert windows.assign(window.end_ms)[0].start_ms == window.end_ms


@pytest.mark.parametrize(
    ("size", "slide", "offset", "timestamp", "starts"),
    [
        (10, 5, 0, 0, [0, -5]), (10, 5, 0, 4, [0, -5]), (10, 5, 0, 5, [5, 0]), (10, 5, 0, -1, [-5, -10]),
        (10, 4, 0, 9, [8, 4, 0]), (10, 4, 0, 10, [8, 4]), (10, 4, 1, 9, [9, 5, 1]), (10, 4, -1, 9, [7, 3]),
        (10, 10, 0, 9, [0]), (3, 10, 0, 2, [0]), (3, 10, 0, 3, []), (3, 10, 0, 9, []), (3, 10, 2, 4, [2]),
    ],
)  # fmt: skip
def test_sliding_windows_that_hold_a_time_the_last_first(
    size: int, slide: int, offset: int, timestamp: int, starts: list[int]
) -> None:
    windows = SlidingWindows(size, slide, offset).assign(timestamp)
    assert windows == [TimeWindow(start, start + size) for start in starts]


@given(TIMES, st.integers(1, 50), st.integers(1, 50), st.data())
def test_a_time_is_in_every_sliding_window_that_holds_it(
    timestamp: int, size: int, slide: int, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(1 - slide, slide - 1))
    found = {window.start_ms for window in SlidingWindows(size, slide, offset).assign(timestamp)}
    near = range(timestamp - size - slide, timestamp + slide)
    assert found == {start for start in near if (start - offset) % slide == 0 and start <= timestamp < start + size}


@given(TIMES, st.integers(1, 10**9))
def test_windows_that_slide_by_their_size_tumble(timestamp: int, size: int) -> None:
    assert tuple(SlidingWindows(size, size).assign(timestamp)) == TumblingWindows(size).assign(timestamp)


def test_a_session_lasts_from_its_record_until_the_gap_has_passed() -> None:
    assert SessionWindows(7).assign(100) == (TimeWindow(100, 107),)
    assert SessionWindows(len).assign(100, "abc") == (TimeWindow(100, 103),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TumblingWindows(0), lambda: TumblingWindows(-5), lambda: TumblingWindows(10, -10),
        lambda: TumblingWindows(10, 10), lambda: TumblingWindows(10, 25), lambda: SlidingWindows(0, 5),
        lambda: SlidingWindows(10, 0), lambda: SlidingWindows(10, 5, 5), lambda: SlidingWindows(10, 5, -5),
        lambda: SessionWindows(0), lambda: SessionWindows(-1), lambda: SessionWindows(True),
        lambda: SessionWindows(1.5), lambda: SessionWindows(len).assign(0, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_a_window_is_refused(make: object) -> None:
    with pytest.raises(LocalUsageError, match=r"a window of|windows of|a session gap of"):
        make()


def test_windows_touch_where_one_ends_and_the_other_begins() -> None:
    window = TimeWindow(10, 20)
    assert all(window.touches(other) for other in [(TimeWindow(20, 30)), TimeWindow(0, 10), TimeWindow(12, 13), window])
    assert not any(window.touches(other) for other in [TimeWindow(21, 30), TimeWindow(0, 9)])
    assert window.cover(TimeWindow(0, 10)) == TimeWindow(0, 20)
