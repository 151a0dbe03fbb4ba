"""What one subtask hands over: sections of its operators, a file, and lines for the manifest."""

from __future__ import annotations

from hashlib import sha256

import pytest

from refimpl.errors import RestoreRefusedError
from refimpl.records.any_type import ANY
from refimpl.records.types import LONG, STRING
from refimpl.state import (
    PICKLE,
    ElementBytes,
    KeyedStateBackend,
    KeyGroupedBytes,
    OperatorStates,
    RestoredStates,
    Section,
    SectionKind,
    StateRecord,
    SubtaskState,
)
from refimpl.task import TimerQueue

ALL = range(128)


def made() -> OperatorStates:
    return OperatorStates(KeyedStateBackend(), {"event": (TimerQueue(), STRING)})


def filled() -> OperatorStates:
    states = made()
    states.keyed.table("count", LONG, STRING).put("JFK", "w", 3)
    states.keyed.table("empty", LONG, STRING)
    for moment, key in ((5, "b"), (5, "a"), (1, "JFK")):
        states.timers["event"][0].register(moment, key, "w")
    states.by_no_key.list_state("offsets", LONG).update([1, 2])
    states.by_no_key.list_state("none", LONG)
    return states


def restored_of(sections: list[Section], trust_pickle: bool = False) -> RestoredStates:
    def by_key(kind: SectionKind) -> dict[str, list[KeyGroupedBytes]]:
        return {s.name: [KeyGroupedBytes.from_bytes(s.raw, "f")] for s in sections if s.kind is kind}

    lists = {(s.kind, s.name): ElementBytes.from_bytes(s.raw, "f") for s in sections if s.kind is SectionKind.SPLIT}
    return RestoredStates(by_key(SectionKind.KEYED), by_key(SectionKind.TIMERS), lists, (), trust_pickle)


def test_only_what_holds_something_is_written() -> None:
    sections = filled().snapshot("uid", ALL, len(ALL))
    assert [(section.kind, section.name) for section in sections] == [
        (SectionKind.KEYED, "count"), (SectionKind.TIMERS, "event"), (SectionKind.SPLIT, "offsets"),
    ]  # fmt: skip
    assert made().snapshot("uid", ALL, len(ALL)) == []


def test_all_of_it_comes_back() -> None:
    states = made()
    states.restore(restored_of(filled().snapshot("uid", ALL, len(ALL))))
    assert list(states.keyed.table("count", LONG, STRING).items()) == [("JFK", "w", 3)]
    assert sorted(states.timers["event"][0].items()) == [(1, "JFK", "w"), (5, "a", "w"), (5, "b", "w")]
    assert states.by_no_key.list_state("offsets", LONG).get() == (1, 2)


def test_timers_of_one_key_group_keep_their_order() -> None:
    before, after = made(), made()
    for number in (3, 1, 2):
        before.timers["event"][0].register(5, "key", str(number))
    after.restore(restored_of(before.snapshot("uid", ALL, len(ALL))))
    assert [namespace for _, _, namespace in after.timers["event"][0].items()] == ["3", "1", "2"]


def test_the_manifest_is_told_of_types_sizes_and_elements() -> None:
    state = SubtaskState.of("chk-1/v-0-0.state", filled().snapshot("a/b", ALL, len(ALL)))
    raw = b"".join(state.parts)
    assert (state.file.key, state.file.size, state.file.sha256) == (
        "chk-1/v-0-0.state", len(raw), sha256(raw).hexdigest(),
    )  # fmt: skip
    assert state.file.elements == {"split/a%2Fb/offsets": 2}
    assert state.states == {
        "a/b": (
            StateRecord("count", "keyed", "any, string, long"),
            StateRecord("event", "timers", "long, any, string"),
            StateRecord("offsets", "split", "long"),
        )
    }


class Fare:
    """A serializer whose bytes have changed once."""

    name = "fare"
    version = 2
    struct_format = None

    serialize, deserialize, copy = staticmethod(LONG.serialize), staticmethod(LONG.deserialize), staticmethod(LONG.copy)


def test_version_and_pickle_are_marked() -> None:
    states = made()
    states.keyed.value_state("fare", Fare()).update(3)
    states.keyed.value_state("object", PICKLE).update({1})
    sections = states.snapshot("uid", ALL, len(ALL))
    assert SubtaskState.of("k", sections).states["uid"] == (
        StateRecord("fare", "keyed", "any, void, fare/2", version=2),
        StateRecord("object", "keyed", "any, void, pickle", pickled=True),
    )


def test_another_version_of_a_serializer_is_refused() -> None:
    before, after = made(), made()
    before.keyed.value_state("fare", Fare()).update(3)
    after.restore(restored_of(before.snapshot("uid", ALL, len(ALL))))
    older = Fare()
    older.version = 1
    with pytest.raises(RestoreRefusedError, match="of any, void, fare/2, and is to be read as any, void, fare"):
        after.keyed.value_state("fare", older)


def test_timers_of_a_kind_or_type_that_is_not_there_are_refused() -> None:
    restored = restored_of(filled().snapshot("uid", ALL, len(ALL)))
    with pytest.raises(RestoreRefusedError, match="has event timers, and this operator has none"):
        OperatorStates(KeyedStateBackend(), {}).restore(restored)
    with pytest.raises(RestoreRefusedError, match="event timers were written as"):
        OperatorStates(KeyedStateBackend(), {"event": (TimerQueue(), ANY)}).restore(restored)
