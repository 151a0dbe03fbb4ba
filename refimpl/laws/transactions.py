"""Transactions: each is open, pending, committed or aborted; and committed are those of complete checkpoints."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from functools import partial

from refimpl.errors import CorruptFileError
from refimpl.laws.store import StoreLaw
from refimpl.records.types import STRING
from refimpl.state.manifest import Manifest
from refimpl.state.sections import read_sections, read_table
from refimpl.task.sink_operators import TransactionalSink
from refimpl.task.two_phase_sink import Transactions

__all__ = ["TransactionsLaw"]


class _Place(Enum):
    OPEN = "open"
    PENDING = "pending"
    COMMITTED = "committed"
    ABORTED = "aborted"


_MOVES = {  # from where a transaction may come, by where it goes
    _Place.OPEN: (None,),
    _Place.PENDING: (_Place.OPEN,),
    _Place.COMMITTED: (_Place.PENDING, _Place.COMMITTED),
    _Place.ABORTED: (_Place.OPEN, _Place.PENDING, _Place.ABORTED),  # pending for a checkpoint that nobody completed
}


class TransactionsLaw:
    """The transactions of a job's sinks, over all attempts and leaders; `sink` is one whose calls are seen.

    `check` comes after each step, with the store in which the checkpoints are. What dead attempts had opened stays
    open for ever.
    """

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._complete: dict[str, frozenset[str]] = {}  # what is pending in each manifest that was seen to count

    def sink(self, sink: TransactionalSink) -> TransactionalSink:
        """The same one, watched."""
        return _WatchedSink(self, sink)

    def moves(self, transaction: str, to: _Place) -> None:
        """Somebody lets it go there.

        Raises:
            AssertionError: it cannot, from where it is.
        """
        place = self._places.get(transaction)
        assert place in _MOVES[to], (
            f"transaction {transaction} is {'new' if place is None else place.value}, and is to be {to.value}"
        )
        self._places[transaction] = to

    def check(self, store: StoreLaw) -> None:
        """See which checkpoints are complete, and what was committed.

        Raises:
            AssertionError: something was that is in none of them.
        """
        known = self.check_new(store)
        committed = {name for name, place in self._places.items() if place is _Place.COMMITTED}
        early = sorted(committed - known)
        assert not early, f"{', '.join(early)}: committed, and pending in no complete checkpoint"

    def check_end(self, store: StoreLaw) -> None:
        """After the job has FINISHED, before its checkpoints are deleted or after: all that counted is committed.

        Raises:
            AssertionError: something is not.
        """
        known = self.check_new(store)
        lost = sorted(name for name in known if self._places[name] is not _Place.COMMITTED)
        assert not lost, f"{', '.join(lost)}: pending in a complete checkpoint, and never committed"

    def check_new(self, store: StoreLaw) -> frozenset[str]:
        """What is pending in complete checkpoints, of those too that were deleted since they were."""
        for key, manifest in store.manifests().items():
            if key not in self._complete:
                self._complete[key] = self._pending_in(store, manifest)
        return frozenset[str]().union(*self._complete.values())

    def _pending_in(self, store: StoreLaw, manifest: Manifest) -> frozenset[str]:
        raw = b""
        for key in manifest.files():
            with suppress(CorruptFileError):  # somebody has damaged it
                read, size = partial(store.read, key), len(store.read(key))
                sections = read_sections(read, read_table(read, size, key), key)
                raw += b"".join(each.raw for each in sections if each.name == "pending")
        waiting = (_Place.PENDING, _Place.COMMITTED)
        return frozenset(name for name, place in self._places.items() if place in waiting and _written(name) in raw)


def _written(name: str) -> bytes:
    """A name as a state has it, with its length: one may begin as another does."""
    target = bytearray()
    STRING.serialize(name, target)
    return bytes(target)


class _WatchedSink:
    def __init__(self, law: TransactionsLaw, sink: TransactionalSink) -> None:
        self._law = law
        self._sink = sink

    def transactions(self, subtask: int, attempt: int) -> Transactions:
        return _Watched(self._law, self._sink.transactions(subtask, attempt))

    def job_finished(self) -> None:
        self._sink.job_finished()


class _Watched:
    def __init__(self, law: TransactionsLaw, transactions: Transactions) -> None:
        self._law = law
        self._transactions = transactions

    def begin(self) -> str:
        transaction = self._transactions.begin()
        self._law.moves(transaction, _Place.OPEN)
        return transaction

    def write(self, transaction: str, value: object) -> None:
        self._transactions.write(transaction, value)

    def pre_commit(self, transaction: str) -> None:
        self._transactions.pre_commit(transaction)
        self._law.moves(transaction, _Place.PENDING)

    def commit(self, transaction: str) -> None:
        self._transactions.commit(transaction)
        self._law.moves(transaction, _Place.COMMITTED)

    def abort(self, transaction: str) -> None:
        self._transactions.abort(transaction)
        self._law.moves(transaction, _Place.ABORTED)
