"""Timers: they fire once, in order, and not after they were deleted."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from refimpl.task import TimerQueue


def test_timers_fire_at_their_moment_and_not_before() -> None:
    timers = TimerQueue()
    timers.register(10, "a", 1)
    assert list(timers.advance(9)) == []
    assert list(timers.advance(10)) == [(10, "a", 1)]
    assert list(timers.advance(10)) == []


def test_equal_timers_are_kept_once_until_they_have_fired() -> None:
    timers = TimerQueue()
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
    timers = TimerQueue()
    keys = ["b", 3, ("x",), None, "a"]
    for key in keys:
        timers.register(7, key, "window")
    assert [key for _, key, _ in timers.advance(7)] == keys


def test_a_timer_registered_while_others_fire_is_heard_in_the_same_round() -> None:
    timers = TimerQueue()
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
    timers = TimerQueue()
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


def test_a_timer_of_a_key_that_is_no_number_may_be_set_again_once_it_fired() -> None:
    timers = TimerQueue()
    for _ in range(2):
        timers.register(0, math.nan, None)
        timers.register(0, float("nan"), None)
        assert len(list(timers.advance(0))) == 1


def test_timers_are_of_one_key_where_java_says_so() -> None:
    """`Double.equals`: NaN equals NaN, and 0.0 is not -0.0. A Long equals no Double and no Boolean."""
    timers = TimerQueue()
    keys = [1, 1.0, True, 0, 0.0, -0.0, False, math.nan, (1,), (1.0,), ((math.nan,),), None, "", b""]
    for key in [*keys, float("nan"), -math.nan, ((float("nan"),),)]:
        timers.register(0, key, None)
    assert len(timers) == len(list(timers.advance(0))) == len(keys)


def test_a_deleted_timer_does_not_fire_and_its_equals_in_time_do() -> None:
    timers = TimerQueue()
    for key in "abc":
        timers.register(5, key, None)
    timers.delete(5, "b", None)
    timers.delete(5, "b", None)
    timers.delete(6, "a", None)
    timers.delete(5, "a", "another window")
    assert (len(timers), timers.items()) == (2, [(5, "a", None), (5, "c", None)])
    assert list(timers.advance(5)) == [(5, "a", None), (5, "c", None)]


def test_a_timer_that_is_deleted_while_others_fire_does_not_fire() -> None:
    timers = TimerQueue()
    for key in "abc":
        timers.register(5, key, None)
    fired = []
    for _, key, _ in timers.advance(5):
        fired.append(key)
        timers.delete(5, "b", None)
    assert fired == ["a", "c"]


def test_a_timer_that_is_deleted_and_registered_again_has_the_later_place() -> None:
    timers = TimerQueue()
    timers.register(5, "a", None)
    timers.register(5, "b", None)
    timers.delete(5, "a", None)
    timers.register(5, "a", None)
    assert [key for _, key, _ in timers.advance(5)] == ["b", "a"]


def test_the_head_is_the_earliest_that_is_still_there() -> None:
    timers = TimerQueue()
    assert timers.head is None
    timers.register(9, "a", None)
    timers.register(3, "a", None)
    assert timers.head == 3
    timers.delete(3, "a", None)
    assert timers.head == 9
    timers.delete(9, "a", None)
    assert timers.head is None


def test_a_queue_that_gets_the_items_of_another_fires_as_that_would() -> None:
    for seed in range(20):
        random_ = random.Random(seed)
        one, other = TimerQueue(), TimerQueue()
        for _ in range(40):
            timer = random_.randrange(6), random_.choice("abc"), random_.choice([None, 1])
            (one.delete if random_.random() < 0.4 else one.register)(*timer)
        for item in one.items():
            other.register(*item)
        assert list(one.advance(9)) == list(other.advance(9)), f"seed {seed}"


def test_timers_that_are_put_off_again_and_again_take_no_room() -> None:
    """A session does so: each record deletes the timer of its end and registers a later one."""
    timers = TimerQueue()
    timers.register(0, "first", None)
    timers.register(1, "second", None)
    fired = []
    for _, key, _ in timers.advance(1):
        fired.append(key)
        for moment in range(2, 5_000):
            timers.register(moment, "a", None)
            timers.delete(moment - 1, "a", None)
        timers.delete(moment, "a", None)
        assert len(timers._heap) < 200
    assert (fired, timers.items()) == (["first", "second"], [])
