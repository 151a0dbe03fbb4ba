"""Maps that only what is broadcast may write."""

from __future__ import annotations

import pytest

from refimpl.errors import LocalUsageError
from refimpl.state import OperatorStateBackend
from refimpl.task import BroadcastStates, MapStateDescriptor

RULES, OTHER = MapStateDescriptor("rules"), MapStateDescriptor("other")


def test_a_map_keeps_its_order_and_tells_keys_apart_as_java_does() -> None:
    states = BroadcastStates([RULES], OperatorStateBackend())
    states.may_write = True
    rules = states.get(MapStateDescriptor("rules"))
    for key, value in ((1, "long"), (True, "boolean"), (1.0, "double"), (1, "again"), ("x", "gone")):
        rules.put(key, value)
    rules.remove("x")
    rules.remove("never there")
    assert [(type(key), value) for key, value in rules.items()] == [
        (int, "again"),
        (bool, "boolean"),
        (float, "double"),
    ]
    assert (len(rules), 1 in rules, 2 in rules, rules.get(True), rules.get(2)) == (3, True, False, "boolean", None)


def test_it_is_written_only_while_a_broadcast_value_is_in_hand() -> None:
    states = BroadcastStates([RULES], OperatorStateBackend())
    rules = states.get(RULES)
    with pytest.raises(LocalUsageError, match="only this subtask would see it; write in process_broadcast_element"):
        rules.put("a", 1)
    states.may_write = True
    rules.put("a", 1)
    states.may_write = False
    with pytest.raises(LocalUsageError, match=r"remove\('a'\) on broadcast state 'rules'"):
        rules.remove("a")
    assert rules.items() == [("a", 1)]


def test_a_map_that_was_not_named_is_not_there() -> None:
    with pytest.raises(LocalUsageError, match="no broadcast state 'other' here, only 'rules'"):
        BroadcastStates([RULES], OperatorStateBackend()).get(OTHER)
