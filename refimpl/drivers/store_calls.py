"""The calls of a store that are to be made: a driver makes them, one after the other, and says what came of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from refimpl.errors import SluiceError
from refimpl.state.store import SnapshotStore

__all__ = ["StoreCalls", "StoreWork"]


@dataclass(frozen=True, slots=True)
class StoreWork:
    """A call of the store that is to be made: `do` makes it, `then` hears what it raised, if anything, and when."""

    what: str
    do: Callable[[], object]
    then: Callable[[SluiceError | None, float], None]

    def call(self) -> SluiceError | None:
        """Make the call; what it raised, for `then`."""
        try:
            self.do()
        except SluiceError as error:
            return error
        return None


class StoreCalls:
    """The calls of a store that wait for a driver, in order.

    What could not be deleted is deleted with the next ones, and before them: a manifest always goes before its files.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self.waiting: deque[StoreWork] = deque()
        self._store = store
        self._doomed: list[str] = []

    def delete(self, keys: Iterable[str]) -> None:
        """Delete these files, in this order."""
        self._doomed += keys
        self.waiting.append(StoreWork("delete what no checkpoint names", self._delete, _ignore))

    def _delete(self) -> None:
        doomed = list(self._doomed)
        self._store.delete(doomed)
        del self._doomed[: len(doomed)]


def _ignore(error: SluiceError | None, now_ms: float) -> None:
    """What could not be deleted is deleted with the next ones."""
