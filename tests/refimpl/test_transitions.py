"""The tables of the state machines: total, reachable, drawn; and a step that is in none is refused."""

from __future__ import annotations

from enum import Enum

import pytest

from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state
from tests.support.state_diagrams import FILE, MACHINES, Machine, document

EACH = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.file)


def events_of(machine: Machine) -> list[Enum]:
    kind = type(next(event for row in machine.table.values() for event in row))
    return list(kind)


@EACH
def test_every_state_has_a_row_and_every_event_an_arrow(machine: Machine) -> None:
    assert list(machine.table) == list(type(next(iter(machine.table))))
    assert {event for row in machine.table.values() for event in row} == set(events_of(machine))


@EACH
def test_every_state_can_be_reached_from_the_first(machine: Machine) -> None:
    reached = [next(iter(machine.table))]
    for state in reached:
        reached += [each for each in machine.table[state].values() if each not in reached]
    assert set(reached) == set(machine.table)


@EACH
def test_a_step_goes_where_the_table_says_or_is_refused_by_name(machine: Machine) -> None:
    for state, row in machine.table.items():
        for event in events_of(machine):
            if event in row:
                assert next_state(machine.table, state, event, "it") is row[event]
                continue
            with pytest.raises(LocalUsageError) as refused:
                next_state(machine.table, state, event, "the thing")
            assert f"the thing is {state.value}: it can" in str(refused.value)
            assert f"not {event.value}" in str(refused.value)


def test_the_drawings_are_those_of_the_tables() -> None:
    """`python -m tests.support.state_diagrams` draws them anew."""
    assert FILE.read_text(encoding="utf-8") == document()
