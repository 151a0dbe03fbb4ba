"""The windows of one key that grow together.

What has been put together stays where it is when windows become one: each window has a **state window**, the one of
the windows it was made of under which its accumulator lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from refimpl.records.types import TupleType
from refimpl.state.state_types import ListType
from refimpl.task.window_assigners import TIME_WINDOW, TimeWindow

__all__ = ["MERGING_WINDOWS", "Merge", "MergingWindows"]


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

    def __init__(self, windows: Iterable[tuple[TimeWindow, TimeWindow]] = ()) -> None:
        self._state_windows: dict[TimeWindow, TimeWindow] = dict(windows)

    def __len__(self) -> int:
        return len(self._state_windows)

    def items(self) -> list[tuple[TimeWindow, TimeWindow]]:
        """Each open window with the one under which its accumulator lies."""
        return [*self._state_windows.items()]

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


class MergingWindowsType(ListType):
    """The open windows of a key, each with its state window.

    Flink:   the list state `merging-window-set` of WindowOperator, 1.11.4
    """

    def __init__(self) -> None:
        super().__init__(TupleType(TIME_WINDOW, TIME_WINDOW))
        self.name = "merging windows"

    def serialize(self, value: Any, target: bytearray) -> None:
        super().serialize(value.items(), target)

    def deserialize(self, source: memoryview, position: int) -> tuple[object, int]:
        windows: Any
        windows, position = super().deserialize(source, position)
        return MergingWindows(windows), position

    def copy(self, value: Any) -> object:
        return MergingWindows(value.items())


MERGING_WINDOWS = MergingWindowsType()
