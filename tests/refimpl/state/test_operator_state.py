"""Lists and maps of a subtask that belong to no key."""

from __future__ import annotations

import math

import pytest

from refimpl.errors import LocalUsageError, RestoreRefusedError
from refimpl.records.types import LONG, STRING
from refimpl.state import PICKLE, ElementBytes, OperatorStateBackend, SectionKind


def test_lists_and_maps_come_back_as_they_were() -> None:
    backend, restored = OperatorStateBackend(), OperatorStateBackend()
    backend.list_state("offsets", LONG).update([3, 1, 2])
    backend.union_list_state("offsets", STRING).add("all")
    rules = backend.broadcast_state("rules")
    for key in (1, 1.0, math.nan, True):
        rules.put(key, repr(key))
    rules.put("gone", 1)
    rules.remove("gone")
    restored.restore(
        {named: ElementBytes.from_bytes(state.to_bytes(), "f") for named, state in backend.snapshot().items()}
    )
    assert restored.list_state("offsets", LONG).get() == (3, 1, 2)
    assert restored.union_list_state("offsets", STRING).get() == ("all",)
    assert repr(restored.broadcast_state("rules").items()) == repr(rules.items())
    assert (len(rules), rules.get(float("nan")), 1 in rules, "gone" in rules) == (4, "nan", True, False)


def test_each_element_is_bytes_of_its_own() -> None:
    backend = OperatorStateBackend()
    backend.list_state("offsets", STRING).update(["", "é", "abc"])
    (state,) = backend.snapshot().values()
    assert state == ElementBytes("string", (b"\x01", b"\x02\xe9\x01", b"\x04abc"))


def test_the_bytes_are_those_of_the_moment_of_the_snapshot() -> None:
    backend, restored = OperatorStateBackend(), OperatorStateBackend()
    several = backend.list_state("l")
    several.add([1])
    taken = backend.snapshot()
    several.get()[0].append(2)
    restored.restore(taken)
    assert restored.list_state("l").get() == ([1],)


def test_what_was_not_asked_for_is_in_the_next_snapshot() -> None:
    backend = OperatorStateBackend()
    states = {(SectionKind.SPLIT, "seldom"): ElementBytes("long", (b"\x00" * 8,))}
    backend.restore(states)
    assert backend.snapshot() == states


def test_types_must_be_those_that_were_written() -> None:
    backend = OperatorStateBackend()
    backend.restore({(SectionKind.SPLIT, "l"): ElementBytes("long", (b"\x00" * 8,))})
    with pytest.raises(RestoreRefusedError, match="'l' was written as long, and is to be read as string"):
        backend.list_state("l", STRING)
    assert backend.list_state("l", LONG).get() == (0,)
    with pytest.raises(LocalUsageError, match="'l' is of long; it cannot be of string too"):
        backend.list_state("l", STRING)
    backend.list_state("l", LONG).add("text")
    with pytest.raises(LocalUsageError, match="the state 'l' cannot be written: 'text' is not a long"):
        backend.snapshot()


def test_pickled_elements_are_opened_only_by_those_who_trust_them() -> None:
    backend, refusing = OperatorStateBackend(), OperatorStateBackend()
    backend.list_state("l", PICKLE).add({1, 2})
    refusing.restore(backend.snapshot(), trust_pickle=False)
    with pytest.raises(RestoreRefusedError, match="say trust_pickle=True"):
        refusing.list_state("l", PICKLE)
    trusting = OperatorStateBackend()
    trusting.restore(backend.snapshot(), trust_pickle=True)
    assert trusting.list_state("l", PICKLE).get() == ({1, 2},)


@pytest.mark.parametrize("raw", [b"\x00" * 7, b"\x00" * 9])
def test_bytes_that_fit_no_type_are_a_matter_of_format(raw: bytes) -> None:
    backend = OperatorStateBackend()
    backend.restore({(SectionKind.SPLIT, "l"): ElementBytes("long", (raw,))})
    with pytest.raises(RestoreRefusedError, match="the state 'l' cannot be read"):
        backend.list_state("l", LONG)
