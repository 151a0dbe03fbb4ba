"""Who gets which state at another parallelism."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.errors import CorruptFileError, RestoreRefusedError
from refimpl.producer.key_groups import key_group_range
from refimpl.records.types import LONG, STRING
from refimpl.state import (
    KeyedStateBackend,
    MemoryStore,
    OperatorPlan,
    OperatorRecord,
    OperatorStates,
    Section,
    SectionKind,
    SubtaskState,
    assign,
    read_share,
)
from refimpl.task import TimerQueue

MAX = 8


def written(store: MemoryStore, lists: Sequence[dict[str, list[int]]], extra: Sequence[Section] = ()) -> OperatorRecord:
    """An operator with a subtask for each dict of split lists; `union` and `broadcast` are called so."""
    files, states = [], {}
    for subtask, named in enumerate(lists):
        held = OperatorStates(KeyedStateBackend(), {"event": (TimerQueue(), STRING)})
        for name, elements in named.items():
            if name == "union":
                held.by_no_key.union_list_state(name, LONG).update(elements)
            elif name == "broadcast":
                for element in elements:
                    held.by_no_key.broadcast_state(name, LONG, LONG).put(element, element * 2)
            else:
                held.by_no_key.list_state(name, LONG).update(elements)
        own = key_group_range(subtask, MAX, len(lists))
        state = SubtaskState.of(f"chk-1/v-{subtask}-0.state", [*held.snapshot("o", own, MAX), *extra])
        store.put(state.file.key, state.parts)
        files.append(state.file)
        states |= dict.fromkeys(state.states.get("o", ()))
    return OperatorRecord("o", "Operator", MAX, len(files), tuple(states), tuple(files))


def restored(store: MemoryStore, operator: OperatorRecord, parallelism: int) -> list[OperatorStates]:
    several = []
    for share in assign([operator], [OperatorPlan("o", MAX, parallelism)])["o"]:
        held = OperatorStates(KeyedStateBackend(), {"event": (TimerQueue(), STRING)})
        held.restore(read_share(store, "o", share))
        several.append(held)
    return several


def lists(store: MemoryStore, operator: OperatorRecord, parallelism: int, name: str) -> list[list[object]]:
    return [[*held.by_no_key.list_state(name, LONG).get()] for held in restored(store, operator, parallelism)]


def test_split_lists_are_dealt_out_and_the_next_starts_where_the_odd_one_ended() -> None:
    """Flink: RoundRobinOperatorStateRepartitioner."""
    store = MemoryStore()
    operator = written(store, [{"a": [1, 2], "b": [10]}, {"a": [3, 4], "b": [11, 12, 13]}])
    assert lists(store, operator, 3, "a") == [[1, 2], [3], [4]]
    assert lists(store, operator, 3, "b") == [[13], [10, 11], [12]]
    assert lists(store, operator, 1, "a") == [[1, 2, 3, 4]]
    assert lists(store, operator, 5, "a") == [[1], [2], [3], [4], []]
    assert lists(store, operator, 5, "b") == [[11], [12], [13], [], [10]]


def test_with_the_same_parallelism_each_keeps_its_own() -> None:
    store = MemoryStore()
    operator = written(store, [{"a": [1, 2, 3]}, {"a": []}, {"a": [4]}])
    assert lists(store, operator, 3, "a") == [[1, 2, 3], [], [4]]
    assert lists(store, operator, 2, "a") == [[1, 2], [3, 4]]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_unions_go_to_all_and_maps_are_copied(parallelism: int) -> None:
    store = MemoryStore()
    operator = written(store, [{"union": [1], "broadcast": [7, 8]}, {"union": [2, 3], "broadcast": [7, 8]}])
    for held in restored(store, operator, parallelism):
        assert held.by_no_key.union_list_state("union", LONG).get() == (1, 2, 3)
        assert held.by_no_key.broadcast_state("broadcast", LONG, LONG).items() == [(7, 14), (8, 16)]


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 99), max_size=6)), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_every_element_is_with_one_subtask_and_none_has_two_more(
    before: list[dict[str, list[int]]], parallelism: int
) -> None:
    store = MemoryStore()
    operator = written(store, before)
    everything = [0] * parallelism
    for name in "abc":
        dealt = lists(store, operator, parallelism, name)
        wanted = [element for named in before for element in named.get(name, [])]
        assert sorted(element for each in dealt for element in each) == sorted(wanted)
        if parallelism != len(before):
            sizes = [len(each) for each in dealt]
            assert max(sizes) - min(sizes) <= 1
            everything = [total + size for total, size in zip(everything, sizes, strict=True)]
    assert parallelism == len(before) or max(everything) - min(everything) <= 1, "the odd ones pile up"


def test_timers_go_with_their_key_groups() -> None:
    store = MemoryStore()
    held = OperatorStates(KeyedStateBackend(), {"event": (TimerQueue(), STRING)})
    for key in range(40):
        held.timers["event"][0].register(key, key, "w")
    state = SubtaskState.of("f", held.snapshot("o", range(MAX), MAX))
    store.put("f", state.parts)
    operator = OperatorRecord("o", "Operator", MAX, 1, state.states["o"], (state.file,))
    found = [[*each.timers["event"][0].items()] for each in restored(store, operator, 3)]
    assert all(found)
    assert sorted(key for several in found for _, key, _ in several) == [*range(40)]


def test_another_max_parallelism_is_refused() -> None:
    operator = written(MemoryStore(), [{"a": [1]}])
    with pytest.raises(RestoreRefusedError, match="'o' has a max parallelism of 16, and its state was written with 8"):
        assign([operator], [OperatorPlan("o", 16, 1)])


def test_state_of_an_operator_that_is_gone_is_lost_only_by_those_who_say_so() -> None:
    store = MemoryStore()
    operator = written(store, [{"a": [1]}])
    with pytest.raises(RestoreRefusedError, match=r"state of the operator 'o', which the job does not have.*'new'"):
        assign([operator], [OperatorPlan("new", MAX, 1)])
    assert assign([operator], [OperatorPlan("new", MAX, 1)], allow_non_restored=True) == {}
    assert assign([written(MemoryStore(), [{}])], []) == {}, "it had none"


@pytest.mark.parametrize("kind", [SectionKind.SOURCE_POSITION, SectionKind.INPUT_IN_FLIGHT])
def test_positions_and_what_was_in_flight_need_the_parallelism_they_were_written_at(kind: SectionKind) -> None:
    store = MemoryStore()
    operator = written(store, [{}, {}], [Section("o", "x", kind, b"position")])
    for share in assign([operator], [OperatorPlan("o", MAX, 2)])["o"]:
        (other,) = read_share(store, "o", share).others
        assert (other.kind, other.raw) == (kind, b"position")
    with pytest.raises(RestoreRefusedError, match=f"state of the kind {kind.name.lower()}, which only 2 subtasks can"):
        assign([operator], [OperatorPlan("o", MAX, 3)])


def test_damage_is_named_when_a_share_is_read() -> None:
    store = MemoryStore()
    operator = written(store, [{"a": [1]}], [Section("o", "x", SectionKind.SOURCE_POSITION, b"\xaa" * 1000)])
    (share,) = assign([operator], [OperatorPlan("o", MAX, 1)])["o"]
    raw = bytearray(store.files["chk-1/v-0-0.state"])
    raw[raw.index(b"\xaa" * 1000)] ^= 1
    store.files["chk-1/v-0-0.state"] = bytes(raw)
    with pytest.raises(CorruptFileError, match=r"^chk-1/v-0-0\.state: section 'x' of operator 'o': checksum"):
        read_share(store, "o", share)
    (share,) = assign([written(MemoryStore(), [{"a": [1]}])], [OperatorPlan("o", MAX, 1)])["o"]
    with pytest.raises(CorruptFileError, match=r"^chk-1/v-0-0\.state: has \d+ bytes, and the manifest speaks of \d+"):
        read_share(store, "o", share)
