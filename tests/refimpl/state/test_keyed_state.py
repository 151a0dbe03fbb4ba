"""State by key and namespace: values, lists, maps, folded values, and their bytes by key group."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError, RestoreRefusedError
from refimpl.producer.key_groups import key_group_of, key_group_range
from refimpl.records.types import INT, LONG, STRING, TupleType
from refimpl.state import PICKLE, KeyedStateBackend, KeyGroupedBytes, ListType, StateTable, is_pickled

ALL = range(128)
KEYS = [1, 1.0, True, 0, 0.0, -0.0, False, math.nan, (1,), (1.0,), ((math.nan,),), None, "", b"", "é", -1]


def held(backend: KeyedStateBackend, name: str) -> list[str]:
    """What a table holds, in an order of its own."""
    return sorted(repr(item) for item in backend.tables[name].items())


def copied(backend: KeyedStateBackend, key_groups: range = ALL) -> dict[str, list[KeyGroupedBytes]]:
    """What a snapshot is after it was bytes."""
    return {
        name: [KeyGroupedBytes.from_bytes(state.to_bytes(), name)]
        for name, state in backend.snapshot(key_groups, len(ALL)).items()
    }


def test_a_value_belongs_to_its_key_and_its_namespace() -> None:
    state: StateTable[str] = StateTable()
    state.put("JFK", None, "no window")
    state.put("JFK", 1, "first")
    state.put("LGA", 1, "other key")
    assert (state.get("JFK"), state.get("JFK", 1), state.get("LGA", 1)) == ("no window", "first", "other key")
    assert (state.get("LGA"), state.get("JFK", 2)) == (None, None)
    assert len(state) == 3


def test_a_value_is_replaced_and_removed_once() -> None:
    state: StateTable[int] = StateTable()
    state.put("a", 1, 10)
    state.put("a", 1, 20)
    assert (len(state), state.remove("a", 1), state.remove("a", 1), len(state)) == (1, 20, None, 0)
    state.put("a", None, 0)
    assert (state.remove("a"), len(state)) == (0, 0)


def test_keys_are_equal_where_java_says_so() -> None:
    """`Double.equals`: NaN equals NaN, and 0.0 is not -0.0. A Long equals no Double and no Boolean."""
    state: StateTable[object] = StateTable()
    for number, key in enumerate(KEYS):
        state.put(key, None, number)
    assert [state.get(key) for key in KEYS] == list(range(len(KEYS)))
    for key in (float("nan"), -math.nan, ((float("nan"),),)):
        assert state.get(key) == 7 if not isinstance(key, tuple) else 10
    assert list(map(repr, (key for key, _, _ in state.items()))) == list(map(repr, KEYS))
    assert [state.remove(key) for key in KEYS] == list(range(len(KEYS)))


def test_each_kind_of_state_is_the_current_keys() -> None:
    backend = KeyedStateBackend()
    value, several = backend.value_state("value"), backend.list_state("several")
    entries, total = backend.map_state("entries"), backend.reducing_state("total", lambda one, other: one + other)
    for key in ("a", "b", "a"):
        backend.current_key = key
        value.update((value.value() or 0) + 1)
        several.add(key)
        several.add_all([1, 2])
        entries.put(1, key)
        entries.put(1.0, "a double")
        total.add(10)
    backend.current_key = "a"
    assert (value.value(), several.get(), total.get()) == (2, ("a", 1, 2, "a", 1, 2), 20)
    assert (entries.items(), entries.get(1), 1 in entries, True in entries, len(entries)) == (
        [(1, "a"), (1.0, "a double")], "a", True, False, 2,
    )  # fmt: skip
    for state in (value, several, entries, total):
        state.clear()
    assert (value.value(), several.get(), entries.items(), total.get()) == (None, (), [], None)
    backend.current_key = "b"
    assert (value.value(), several.get(), entries.get(1), total.get()) == (1, ("b", 1, 2), "b", 10)


def test_what_holds_nothing_is_not_kept() -> None:
    """Or keys that came once would be kept for ever."""
    backend = KeyedStateBackend()
    value, several, entries = backend.value_state("v"), backend.list_state("l"), backend.map_state("m")
    value.update(1)
    value.update(None)
    several.update([1])
    several.update([])
    several.add_all([])
    entries.put("a", 1)
    entries.remove("a")
    entries.remove("a")
    assert [len(table) for table in backend.tables.values()] == [0, 0, 0]


def test_a_namespace_is_whose_the_state_is() -> None:
    backend = KeyedStateBackend()
    state = backend.value_state("count", LONG, STRING)
    for namespace, number in (("w1", 1), ("w2", 2)):
        state.namespace = namespace
        state.update(number)
    state.namespace = "w1"
    assert state.value() == 1
    assert held(backend, "count") == ["(None, 'w1', 1)", "(None, 'w2', 2)"]


def test_what_a_list_gave_does_not_change_with_the_state() -> None:
    backend = KeyedStateBackend()
    several = backend.list_state("several")
    given_values = [1]
    several.update(given_values)
    before = several.get()
    several.add(2)
    assert (before, given_values, several.get()) == ((1,), [1], (1, 2))


def test_one_name_is_one_state() -> None:
    backend = KeyedStateBackend()
    backend.value_state("count", LONG).update(3)
    assert backend.value_state("count", LONG).value() == 3
    with pytest.raises(LocalUsageError, match="'count' is of long by void; it cannot be of string by void too"):
        backend.value_state("count", STRING)


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 3), st.integers()), max_size=40))
def test_bytes_become_what_was_there(entries: list[tuple[Any, int, int]]) -> None:
    backend, restored = KeyedStateBackend(), KeyedStateBackend()
    for key, namespace, value in entries:
        backend.table("any").put(key, namespace, value)
    restored.restore(copied(backend))
    backend.table("any"), restored.table("any")
    assert held(restored, "any") == held(backend, "any")


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 5), (5, 1), (4, 4)])
def test_at_another_parallelism_each_key_is_where_its_records_go(before: int, after: int) -> None:
    everything = []
    pieces = []
    for index in range(before):
        own = key_group_range(index, len(ALL), before)
        backend = KeyedStateBackend()
        state = backend.value_state("v", LONG)
        for key in range(-200, 200):
            if key_group_of(key, len(ALL)) in own:
                backend.current_key = key
                state.update(key * 7)
        pieces += copied(backend, own)["v"]
    for index in range(after):
        own = key_group_range(index, len(ALL), after)
        backend = KeyedStateBackend()
        backend.restore({"v": [piece.within(own) for piece in pieces]})
        backend.value_state("v", LONG)
        found = [(key, value) for key, _, value in backend.tables["v"].items()]
        assert {key_group_of(key, len(ALL)) for key, _ in found} <= set(own)
        everything += found
    assert sorted(everything) == [(key, key * 7) for key in range(-200, 200)]


def test_the_bytes_are_those_of_the_moment_of_the_snapshot() -> None:
    """Bytes made later would be the future."""
    backend = KeyedStateBackend()
    several = backend.list_state("several")
    several.add("before")
    pieces = backend.snapshot(ALL, len(ALL))
    several.add("after")
    restored = KeyedStateBackend()
    restored.restore({name: [state] for name, state in pieces.items()})
    assert restored.list_state("several").get() == ("before",)


def test_a_key_that_belongs_elsewhere_is_named() -> None:
    backend = KeyedStateBackend()
    backend.table("v").put("JFK", None, 1)
    group = key_group_of("JFK", len(ALL))
    assert backend.snapshot(range(group, group + 1), len(ALL))["v"].groups[0]
    with pytest.raises(LocalUsageError, match=f"the key 'JFK' is of key group {group}, which is not in range"):
        backend.snapshot(range(group + 1, 128), len(ALL))


def test_keys_are_hashed_as_their_type_is() -> None:
    """A negative Integer has another hash than the Long of its value."""
    assert key_group_of(-5, 128, INT) != key_group_of(-5, 128, LONG)
    backend = KeyedStateBackend(INT)
    backend.table("v").put(-5, None, 1)
    groups = backend.snapshot(ALL, len(ALL))["v"].groups
    assert [number for number, group in enumerate(groups) if group] == [key_group_of(-5, 128, INT)]


def test_a_value_of_another_type_than_was_declared_is_named() -> None:
    backend = KeyedStateBackend()
    backend.value_state("count", LONG).update("three")
    with pytest.raises(LocalUsageError, match="the state 'count' cannot be written: 'three' is not a long"):
        backend.snapshot(ALL, len(ALL))


def test_other_types_than_those_that_were_written_are_refused() -> None:
    backend = KeyedStateBackend()
    backend.value_state("count", LONG).update(3)
    restored = KeyedStateBackend()
    restored.restore(copied(backend))
    with pytest.raises(
        RestoreRefusedError, match="written as key, namespace, value of any, void, long, and is to be r"
    ):
        restored.value_state("count", STRING)
    assert restored.value_state("count", LONG).value() == 3, "the refusal has lost nothing"


def test_what_was_not_asked_for_is_in_the_next_snapshot_as_it_came() -> None:
    backend = KeyedStateBackend()
    backend.value_state("seldom", LONG).update(3)
    for own in (range(64), range(64, 128)):
        half = KeyedStateBackend()
        half.restore({"seldom": [piece.within(own) for piece in copied(backend)["seldom"]]})
        assert half.snapshot(own, len(ALL))["seldom"].groups == copied(backend)["seldom"][0].within(own).groups


class Opened:
    """What notices that it was made of a pickle."""

    num_opened = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__dict__.update(state)
        Opened.num_opened += 1


def test_pickled_state_is_opened_only_by_those_who_trust_it() -> None:
    backend = KeyedStateBackend()
    backend.value_state("object", PICKLE).update(Opened(3))
    refusing, trusting = KeyedStateBackend(), KeyedStateBackend()
    Opened.num_opened = 0
    refusing.restore(copied(backend), trust_pickle=False)
    with pytest.raises(RestoreRefusedError, match=r"the state 'object' is pickled.*trust_pickle=True"):
        refusing.value_state("object", PICKLE)
    assert Opened.num_opened == 0
    trusting.restore(copied(backend), trust_pickle=True)
    assert (trusting.value_state("object", PICKLE).value().number, Opened.num_opened) == (3, 1)


def test_a_type_with_a_part_that_is_pickled_is_pickled() -> None:
    assert is_pickled(ListType(TupleType(LONG, PICKLE)))
    assert not is_pickled(ListType(TupleType(LONG, STRING)))


def test_bytes_that_fit_no_type_are_a_matter_of_format() -> None:
    restored = KeyedStateBackend()
    restored.restore({"v": [KeyGroupedBytes(("any", "void", "long"), range(1), (b"\x00\x00\x00",))]})
    with pytest.raises(RestoreRefusedError, match="the state 'v' cannot be read: a long starts at byte 1"):
        restored.value_state("v", LONG)
