"""State machines as tables: every state has a row, and an event that its row does not name is a mistake.

`tests/support/state_diagrams.py` draws the tables of the engine into `refimpl/STATES.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from refimpl.errors import LocalUsageError

__all__ = ["next_state"]

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


def next_state(table: Mapping[S, Mapping[E, S]], state: S, event: E, subject: object) -> S:
    """The state of `subject` after `event`; the values of states and events are words for a reader.

    Raises:
        LocalUsageError: the row of `state` does not have this event.
    """
    row = table[state]
    if event not in row:
        possible = " or ".join(str(each.value) for each in row) or "nothing more"
        raise LocalUsageError(f"{subject} is {state.value}: it can {possible}, not {event.value}")
    return row[event]
