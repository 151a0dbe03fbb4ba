"""A two-phase sink over transactions in memory: what is committed when, and what a crash at each point leaves."""

from __future__ import annotations

import random

import pytest

from refimpl.errors import LocalUsageError
from refimpl.task import SINK_TRANSITIONS, SinkEvent, SinkPhase, SinkState, TwoPhaseCommitSink


class MemoryTransactions:
    """Transactions that outlive the sinks that use them, and fail when told."""

    def __init__(self) -> None:
        self.values: dict[str, list[object]] = {}
        self.durable: set[str] = set()
        self.committed: list[str] = []
        self.aborted: set[str] = set()
        self.failing: set[str] = set()

    def begin(self) -> str:
        name = f"t{len(self.values)}"
        self.values[name] = []
        return name

    def write(self, transaction: str, value: object) -> None:
        assert transaction not in self.durable
        self.values[transaction].append(value)

    def pre_commit(self, transaction: str) -> None:
        self.durable.add(transaction)

    def commit(self, transaction: str) -> None:
        if transaction in self.failing:
            raise OSError(f"{transaction} cannot be committed")
        assert transaction in self.durable
        assert transaction not in self.aborted
        if transaction not in self.committed:
            self.committed.append(transaction)

    def abort(self, transaction: str) -> None:
        assert transaction not in self.committed
        self.aborted.add(transaction)

    def seen(self) -> list[object]:
        return [value for name in self.committed for value in self.values[name]]


def opened(transactions: MemoryTransactions, *states: SinkState) -> TwoPhaseCommitSink:
    sink = TwoPhaseCommitSink(transactions)
    sink.restore(states)
    return sink


@pytest.mark.parametrize("phase", SinkPhase)
@pytest.mark.parametrize("event", SinkEvent)
def test_a_sink_goes_where_its_table_says_or_nowhere(phase: SinkPhase, event: SinkEvent) -> None:
    sink = TwoPhaseCommitSink(MemoryTransactions())
    sink.phase = phase
    if event in SINK_TRANSITIONS[phase]:
        sink._go_on(event)
        assert sink.phase is SINK_TRANSITIONS[phase][event]
    else:
        with pytest.raises(LocalUsageError):
            sink._go_on(event)
        assert sink.phase is phase


def test_nothing_is_committed_by_a_snapshot() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    assert sink.snapshot(1) == SinkState("t1", ((1, "t0"),))
    assert transactions.committed == []
    sink.complete(1)
    assert transactions.seen() == ["a"]
    assert sink.state == SinkState("t1", ())


def test_the_state_holds_all_that_wait() -> None:
    sink = opened(MemoryTransactions())
    sink.snapshot(1)
    sink.snapshot(2)
    assert sink.snapshot(5) == SinkState("t3", ((1, "t0"), (2, "t1"), (5, "t2")))


def test_a_completion_covers_those_whose_news_got_lost_oldest_first() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    for checkpoint_id in (1, 2, 3):
        sink.snapshot(checkpoint_id)
    sink.complete(2)
    assert transactions.committed == ["t0", "t1"]
    assert sink.state.pending == ((3, "t2"),)


def test_an_older_completion_takes_no_newer_one_with_it() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.snapshot(2)
    sink.complete(1)
    assert transactions.committed == []


def test_what_was_aborted_waits_for_the_next() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.snapshot(1)
    sink.aborted(1)
    sink.snapshot(2)
    sink.complete(2)
    assert transactions.committed == ["t0", "t1"]


def test_all_are_tried_before_the_first_error_is_raised() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    for checkpoint_id in (1, 2, 3):
        sink.snapshot(checkpoint_id)
    transactions.failing = {"t0", "t2"}
    with pytest.raises(OSError, match="t0"):
        sink.complete(3)
    assert transactions.committed == ["t1"]
    assert sink.state.pending == ((1, "t0"), (3, "t2"))
    transactions.failing = set()
    sink.complete(3)
    assert transactions.committed == ["t1", "t0", "t2"]


def test_closed_it_aborts_what_is_open_and_never_what_is_pending() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.snapshot(1)
    sink.close()
    sink.close()
    assert transactions.aborted == {"t1"}
    assert transactions.committed == []


def test_restored_it_commits_what_waited_and_aborts_what_was_open() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    state = sink.snapshot(1)
    sink.invoke("lost, and written again")
    again = opened(transactions, state)
    assert transactions.seen() == ["a"]
    assert transactions.aborted == {"t1"}
    assert again.state == SinkState("t2", ())


def test_restored_twice_it_commits_once() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    state = sink.snapshot(1)
    sink.complete(1)
    opened(transactions, state)
    opened(transactions, state)
    assert transactions.seen() == ["a"]


def test_with_the_states_of_several_the_oldest_go_first_and_all_are_tried() -> None:
    transactions = MemoryTransactions()
    first, second = opened(transactions), opened(transactions)
    first.snapshot(1)
    second.snapshot(1)
    states = [second.snapshot(2), first.snapshot(2)]
    transactions.failing = {"t1"}
    with pytest.raises(OSError, match="t1"):
        opened(transactions, *states)
    assert transactions.committed == ["t0", "t3", "t2"]
    assert transactions.aborted == {"t4", "t5"}


def test_at_the_end_what_was_written_last_waits_for_a_checkpoint_it_has_not_seen() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    sink.snapshot(4)
    sink.invoke("b")
    sink.end_of_input()
    state = sink.snapshot(0)
    assert state.open is None
    assert [each for _, each in state.pending] == ["t0", "t1"]
    sink.complete(4)
    assert transactions.seen() == ["a"]
    sink.complete(5)
    assert transactions.seen() == ["a", "b"]
    assert sink.state == SinkState(None, ())
    with pytest.raises(LocalUsageError):
        sink.invoke("c")
    sink.close()
    assert transactions.aborted == set()


def test_a_batch_job_commits_once_at_its_end() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    sink.end_of_input()
    sink.complete(1)
    assert transactions.seen() == ["a"]


def test_a_restore_from_the_final_checkpoint_commits_what_nobody_was_told() -> None:
    transactions = MemoryTransactions()
    sink = opened(transactions)
    sink.invoke("a")
    sink.end_of_input()
    opened(transactions, sink.snapshot(0))
    assert transactions.seen() == ["a"]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_crashes_each_record_is_seen_once_and_in_order(seed: int) -> None:
    """Records are numbers; a checkpoint holds the next one. News get lost, the sink dies anywhere."""
    print(f"{seed=}")
    draw = random.Random(seed)
    transactions = MemoryTransactions()
    sink, position, next_id = opened(transactions), 0, 1
    taken: dict[int, tuple[SinkState, int]] = {}
    complete: tuple[SinkState, int] | None = None
    for _ in range(200):
        match draw.choice(["record", "record", "record", "snapshot", "complete", "crash"]):
            case "record":
                sink.invoke(position)
                position += 1
            case "snapshot":
                taken[next_id] = sink.snapshot(next_id), position
                next_id += 1
            case "complete" if taken:
                newest = draw.choice(list(taken))
                complete = taken[newest]
                taken = {each: state for each, state in taken.items() if each > newest}
                if draw.random() < 0.5:
                    sink.complete(newest)
            case "crash" if draw.random() < 0.3:
                if draw.random() < 0.5:
                    sink.close()
                taken = {}
                states, position = ([complete[0]], complete[1]) if complete else ([], 0)
                sink = opened(transactions, *states)
        seen = transactions.seen()
        assert seen == list(range(len(seen)))
    sink.end_of_input()
    sink.complete(next_id)
    assert transactions.seen() == list(range(position))
