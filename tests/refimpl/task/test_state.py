"""State by key and namespace, and timers in event time."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from refimpl.task import EventTimeTimers, KeyedState


def test_a_value_belongs_to_its_key_and_its_namespace() -> None:
    state: KeyedState[str] = KeyedState()
    state.put("JFK", None, "no window")
    state.put("JFK", 1, "first")
    state.put("LGA", 1, "other key")
    assert (state.get("JFK"), state.get("JFK", 1), state.get("LGA", 1)) == ("no window", "first", "other key")
    assert (state.get("LGA"), state.get("JFK", 2)) == (None, None)
    assert len(state) == 3


def test_a_value_is_replaced_and_removed_once() -> None:
    state: KeyedState[int] = KeyedState()
    state.put("a", 1, 10)
    state.put("a", 1, 20)
    assert (len(state), state.remove("a", 1), state.remove("a", 1), len(state)) == (1, 20, None, 0)
    state.put("a", None, 0)
    assert (state.remove("a"), len(state)) == (0, 0)


def test_timers_fire_at_their_moment_and_not_before() -> None:
    timers = EventTimeTimers()
    timers.register(10, "a", 1)
    assert list(timers.advance(9)) == []
    assert list(timers.advance(10)) == [(10, "a", 1)]
    assert list(timers.advance(10)) == []


def test_equal_timers_are_kept_once_until_they_have_fired() -> None:
    timers = EventTimeTimers()
    for _ in range(3):
        timers.register(10, "a", 1)
    timers.register(10, "a", 2)
    timers.register(10, "b", 1)
    assert len(timers) == 3
    assert list(timers.advance(10)) == [(10, "a", 1), (10, "a", 2), (10, "b", 1)]
    timers.register(10, "a", 1)
    assert list(timers.advance(99)) == [(10, "a", 1)]


def test_timers_of_one_moment_fire_in_the_order_they_were_registered() -> None:
    """Also when their keys cannot be compared with one another."""
    timers = EventTimeTimers()
    keys = ["b", 3, ("x",), None, "a"]
    for key in keys:
        timers.register(7, key, "window")
    assert [key for _, key, _ in timers.advance(7)] == keys


def test_a_timer_registered_while_others_fire_is_heard_in_the_same_round() -> None:
    timers = EventTimeTimers()
    timers.register(1, "a", None)
    fired = []
    for timestamp, key, _ in timers.advance(5):
        fired.append((timestamp, key))
        if timestamp < 6:
            timers.register(timestamp + 2, key, None)
    assert fired == [(1, "a"), (3, "a"), (5, "a")]
    assert len(timers) == 1


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-6, 6)))
def test_every_timer_fires_once_in_order_of_time(moments: list[int], watermarks: list[int]) -> None:
    timers = EventTimeTimers()
    for number, moment in enumerate(moments):
        timers.register(moment, number, None)
    fired = []
    reached = -99
    for watermark in sorted(watermarks):
        due = list(timers.advance(watermark))
        assert [moment for moment, _, _ in due] == sorted(m for m in moments if reached < m <= watermark)
        fired += due
        reached = watermark
    assert len(fired) + len(timers) == len(moments)


def test_keys_are_equal_where_java_says_so() -> None:
    """`Double.equals`: NaN equals NaN, and 0.0 is not -0.0. A Long equals no Double and no Boolean."""
    state: KeyedState[object] = KeyedState()
    timers = EventTimeTimers()
    keys = [1, 1.0, True, 0, 0.0, -0.0, False, math.nan, (1,), (1.0,), ((math.nan,),), None, "", b""]
    for number, key in enumerate(keys):
        state.put(key, None, number)
        timers.register(0, key, None)
    assert [state.get(key) for key in keys] == list(range(len(keys)))
    for key in (float("nan"), -math.nan, ((float("nan"),),)):
        assert state.get(key) == 7 if not isinstance(key, tuple) else 10
        timers.register(0, key, None)
    assert len(timers) == len(list(timers.advance(0))) == len(keys)
    assert [state.remove(key) for key in keys] == list(range(len(keys)))


def test_a_timer_of_a_key_that_is_no_number_may_be_set_again_once_it_fired() -> None:
    timers = EventTimeTimers()
    for _ in range(2):
        timers.register(0, math.nan, None)
        timers.register(0, float("nan"), None)
        assert len(list(timers.advance(0))) == 1
