"""Savepoints that users have asked for, until they are there or will not be."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.decisions import CheckpointAborted, CheckpointCompleted, RequestRefused

__all__ = ["SavepointAnswer", "SavepointsAsked"]

SavepointAnswer = Callable[[str], None]
"""Hears why there is no savepoint; nothing if it is there."""


class SavepointsAsked:
    """Who waits for which savepoint."""

    def __init__(self) -> None:
        self._asked: dict[CheckpointRequest, SavepointAnswer] = {}

    def add(self, request: CheckpointRequest, answer: SavepointAnswer) -> None:
        """Somebody waits for what becomes of `request`."""
        self._asked[request] = answer

    def look(self, history: Iterable[CheckpointCompleted | CheckpointAborted | RequestRefused]) -> None:
        """Answer those of whose requests something has become."""
        if not self._asked:
            return
        for outcome in history:
            answer = self._asked.pop(outcome.request, None)
            if answer is not None:
                answer(_trouble(outcome))

    def give_up(self, why: str) -> None:
        """Nothing will become of any."""
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            answer(why)


def _trouble(outcome: CheckpointCompleted | CheckpointAborted | RequestRefused) -> str:
    match outcome:
        case CheckpointCompleted():
            return ""
        case RequestRefused(_, reason):
            return f"there is no savepoint: {reason.value}"
        case CheckpointAborted(_, _, reason, detail):
            return f"there is no savepoint: {reason.value}{detail and ': '}{detail}"
