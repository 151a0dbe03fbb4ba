"""Results that leave the job exactly once: written into a transaction, and committed when their checkpoint counts.

    record          into the open transaction
    snapshot(n)     the open one is flushed and pre-committed, and waits as pending for n; another is begun
    complete(n)     what waits for n or an older one is committed: the news of an older one may have got lost
    restore         what the state says was pending is committed (it may have been already), what was open is aborted

Between pre-commit and commit a crash loses nothing: pending transactions are in the state. Before it everything is
written once more. So commit and abort may come twice, and the second time must be a success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from refimpl.transitions import next_state

__all__ = [
    "SINK_TRANSITIONS",
    "SinkEvent",
    "SinkPhase",
    "SinkState",
    "Transactions",
    "TwoPhaseCommitSink",
]

_FINAL_ID = 2**63 - 1
"""What is pending at the end of the input waits for the final checkpoint, whose id is not known then."""


class Transactions(Protocol):
    """What a sink writes to; a transaction is known by a string that survives a restart."""

    def begin(self) -> str: ...

    def write(self, transaction: str, value: object) -> None: ...

    def pre_commit(self, transaction: str) -> None:
        """Make durable what has been written, so that `commit` can no longer fail for want of it."""

    def commit(self, transaction: str) -> None:
        """Let everybody see it; again is fine."""

    def abort(self, transaction: str) -> None:
        """Nobody will ever see it; again is fine."""


@dataclass(frozen=True, slots=True)
class SinkState:
    """What one subtask of a sink remembers: its open transaction, and those that wait, with their checkpoints."""

    open: str | None
    pending: tuple[tuple[int, str], ...]


class SinkPhase(Enum):
    """What may still come to a sink."""

    CREATED = "created"
    OPEN = "open"
    ENDED = "ended"
    CLOSED = "closed"


class SinkEvent(Enum):
    """What can happen to a sink."""

    RESTORE = "restore"
    RECORD = "take a record"
    SNAPSHOT = "snapshot"
    COMPLETE = "hear of a completion"
    ABORTED = "hear of an abortion"
    END = "end"
    CLOSE = "close"


SINK_TRANSITIONS: dict[SinkPhase, dict[SinkEvent, SinkPhase]] = {
    SinkPhase.CREATED: {SinkEvent.RESTORE: SinkPhase.OPEN, SinkEvent.CLOSE: SinkPhase.CLOSED},
    SinkPhase.OPEN: {
        SinkEvent.RECORD: SinkPhase.OPEN,
        SinkEvent.SNAPSHOT: SinkPhase.OPEN,
        SinkEvent.COMPLETE: SinkPhase.OPEN,
        SinkEvent.ABORTED: SinkPhase.OPEN,
        SinkEvent.END: SinkPhase.ENDED,
        SinkEvent.CLOSE: SinkPhase.CLOSED,
    },
    SinkPhase.ENDED: {
        SinkEvent.SNAPSHOT: SinkPhase.ENDED,
        SinkEvent.COMPLETE: SinkPhase.ENDED,
        SinkEvent.ABORTED: SinkPhase.ENDED,
        SinkEvent.CLOSE: SinkPhase.CLOSED,
    },
    SinkPhase.CLOSED: {SinkEvent.CLOSE: SinkPhase.CLOSED},
}


class TwoPhaseCommitSink:
    """One subtask of a sink over `transactions`.

    Raises (all methods):
        LocalUsageError: it is not the time for that.

    Flink:   TwoPhaseCommitSinkFunction (streaming.api.functions.sink), 1.11.4
    Differs: what could not be committed stays pending; 1.11 leaves what was written last in a bounded job uncommitted.
    """

    def __init__(self, transactions: Transactions) -> None:
        self.phase = SinkPhase.CREATED
        self._transactions = transactions
        self._open: str | None = None
        self._pending: dict[int, str] = {}
        self._last_snapshot_id = 0

    @property
    def state(self) -> SinkState:
        """What a snapshot holds now: the open transaction, and all that wait."""
        return SinkState(self._open, tuple(self._pending.items()))

    def restore(self, states: Sequence[SinkState] = ()) -> None:
        """Begin, after what the last checkpoint says of any subtasks before; nothing if there was none.

        Raises:
            Exception: the first error of a commit or an abort, after all have been tried.
        """
        self._go_on(SinkEvent.RESTORE)
        waiting = sorted((pair for state in states for pair in state.pending), key=lambda pair: pair[0])
        errors = [*_failed(self._transactions.commit, (each for _, each in waiting)).values()]
        opened = (state.open for state in states if state.open is not None)
        errors += _failed(self._transactions.abort, opened).values()
        if errors:
            raise errors[0]
        self._open = self._transactions.begin()

    def invoke(self, value: object) -> None:
        """Write a record into the open transaction."""
        if self.phase is not SinkPhase.OPEN:  # where a record changes nothing, the table is not asked for each
            self._go_on(SinkEvent.RECORD)
        assert self._open is not None, "an open sink has an open transaction"
        self._transactions.write(self._open, value)

    def snapshot(self, checkpoint_id: int) -> SinkState:
        """The cut: what has been written until here waits for this checkpoint. After the end only the state is told."""
        self._go_on(SinkEvent.SNAPSHOT)
        if self.phase is SinkPhase.OPEN:
            self._last_snapshot_id = checkpoint_id
            self._pre_commit(checkpoint_id)
            self._open = self._transactions.begin()
        return self.state

    def complete(self, checkpoint_id: int) -> None:
        """Commit all that wait for this checkpoint or an older one, oldest first.

        After the end a checkpoint that this sink has not seen is the final one.

        Raises:
            Exception: the first error of a commit, after all have been tried; what failed is still pending.
        """
        self._go_on(SinkEvent.COMPLETE)
        is_final = self.phase is SinkPhase.ENDED and checkpoint_id > self._last_snapshot_id
        due = {number: each for number, each in sorted(self._pending.items()) if number <= checkpoint_id or is_final}
        failed = _failed(self._transactions.commit, due.values())
        self._pending = {number: each for number, each in self._pending.items() if number not in due or each in failed}
        if failed:
            raise next(iter(failed.values()))

    def aborted(self, checkpoint_id: int) -> None:
        """Nothing: what waits for this checkpoint is committed with the next."""
        self._go_on(SinkEvent.ABORTED)

    def end_of_input(self) -> None:
        """Pre-commit what was written last, and begin no more."""
        self._go_on(SinkEvent.END)
        self._pre_commit(_FINAL_ID)

    def close(self) -> None:
        """Abort what is open, and never what is pending: a checkpoint may hold it."""
        self._go_on(SinkEvent.CLOSE)
        if self._open is not None:
            transaction, self._open = self._open, None
            self._transactions.abort(transaction)

    # -- helpers -----------------------------------------------------------------------------------

    def _pre_commit(self, checkpoint_id: int) -> None:
        assert self._open is not None, "an open sink has an open transaction"
        self._transactions.pre_commit(self._open)
        self._pending[checkpoint_id] = self._open
        self._open = None

    def _go_on(self, event: SinkEvent) -> None:
        self.phase = next_state(SINK_TRANSITIONS, self.phase, event, "the sink")


def _failed(action: Callable[[str], None], transactions: Iterable[str]) -> dict[str, Exception]:
    """Do it with each transaction, whatever becomes of the others; those with which it failed."""
    failed: dict[str, Exception] = {}
    for transaction in transactions:
        try:
            action(transaction)
        except Exception as error:  # noqa: BLE001 - all are tried, then the first is raised
            failed[transaction] = error
    return failed
