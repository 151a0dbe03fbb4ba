"""State by key and namespace."""

from __future__ import annotations

import math

from refimpl.task import KeyedState


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


def test_keys_are_equal_where_java_says_so() -> None:
    """`Double.equals`: NaN equals NaN, and 0.0 is not -0.0. A Long equals no Double and no Boolean."""
    state: KeyedState[object] = KeyedState()
    keys = [1, 1.0, True, 0, 0.0, -0.0, False, math.nan, (1,), (1.0,), ((math.nan,),), None, "", b""]
    for number, key in enumerate(keys):
        state.put(key, None, number)
    assert [state.get(key) for key in keys] == list(range(len(keys)))
    for key in (float("nan"), -math.nan, ((float("nan"),),)):
        assert state.get(key) == 7 if not isinstance(key, tuple) else 10
    assert [state.remove(key) for key in keys] == list(range(len(keys)))
