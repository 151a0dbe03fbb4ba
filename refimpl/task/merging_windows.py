"""The windows of one key that grow together.

What has been put together stays where it is when windows become one: each window has a **state window**, the one of
the windows it was made of under which its accumulator lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from refimpl.task.window_assigners import TimeWindow

__all__ = ["Merge", "MergingWindows"]


class Merge(NamedTuple):
    """Several windows that have become one.

    `state_window` holds the accumulator of the result, `other_states` have some that join it.
    """

    result: TimeWindow
    merged: Sequence[TimeWindow]
    state_window: TimeWindow
    other_states: Sequence[TimeWindow]


class MergingWindows:
    """The open windows of one key; no two of them touch.

    Flink:   MergingWindowSet, TimeWindow.mergeWindows (streaming.runtime.operators.windowing), 1.11.4
    """

    def __init__(self) -> None:
        self._state_windows: dict[TimeWindow, TimeWindow] = {}

    def __len__(self) -> int:
        return len(self._state_windows)

    def state_window(self, window: TimeWindow) -> TimeWindow | None:
        """The window under which the accumulator of `window` lies; `None` if that is not open."""
        return self._state_windows.get(window)

    def add(self, window: TimeWindow) -> tuple[TimeWindow, Merge | None]:
        """The window that `window` has become part of, and what was merged for that, if anything was."""
        # Those that are open do not touch each other: what touches the new one becomes one window with it.
        merged = sorted(each for each in self._state_windows if each.touches(window))
        result = window
        for each in merged:
            result = result.cover(each)
        if not merged:
            self._state_windows[window] = window
            return window, None
        state_window, *other_states = [self._state_windows.pop(each) for each in merged]
        self._state_windows[result] = state_window
        if merged == [result]:
            return result, None  # it is inside of one that is open
        return result, Merge(result, merged, state_window, other_states)

    def retire(self, window: TimeWindow) -> None:
        """Forget a window that is over."""
        del self._state_windows[window]
