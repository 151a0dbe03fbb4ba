"""Transactions as files on a real disk: their names from begin to commit, and what a crash between two steps leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from refimpl.drivers.file_transactions import FileTransactions, remove_leftovers
from refimpl.errors import LocalUsageError, TransactionLostError
from refimpl.task import TwoPhaseCommitSink


def lines(value: object) -> bytes:
    return f"{value}\n".encode()


def attempt(folder: Path, name: str = "1") -> FileTransactions:
    return FileTransactions(folder, 0, name, lines)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def committed(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.glob("part-*")))


def test_a_file_goes_from_name_to_name(tmp_path: Path) -> None:
    files = attempt(tmp_path / "out")
    transaction = files.begin()
    files.write(transaction, "a")
    assert names(tmp_path / "out") == [".part-0-1-0.open"]
    files.pre_commit(transaction)
    assert names(tmp_path / "out") == [".part-0-1-0.pending"]
    files.commit(transaction)
    assert names(tmp_path / "out") == ["part-0-1-0"]
    assert committed(tmp_path / "out") == "a\n"


def test_what_is_pre_committed_is_whole_on_the_disk(tmp_path: Path) -> None:
    files = attempt(tmp_path)
    transaction = files.begin()
    for number in range(10_000):
        files.write(transaction, number)
    files.pre_commit(transaction)
    assert (tmp_path / ".part-0-1-0.pending").read_bytes() == b"".join(map(lines, range(10_000)))


def test_a_commit_and_an_abort_may_come_twice(tmp_path: Path) -> None:
    files = attempt(tmp_path)
    first, second = files.begin(), files.begin()
    files.pre_commit(first)
    for _ in range(2):
        files.commit(first)
        files.abort(second)
    assert names(tmp_path) == ["part-0-1-0"]


def test_another_attempt_commits_and_aborts_what_the_first_has_left(tmp_path: Path) -> None:
    dead = attempt(tmp_path)
    first, second = dead.begin(), dead.begin()
    dead.write(first, "a")
    dead.pre_commit(first)
    again = attempt(tmp_path, "2")
    again.commit(first)
    again.abort(second)
    assert names(tmp_path) == ["part-0-1-0"]


def test_a_transaction_under_no_name_is_data_loss_and_says_both(tmp_path: Path) -> None:
    with pytest.raises(TransactionLostError) as lost:
        attempt(tmp_path).commit("part-0-1-7")
    assert lost.value.pending == str(tmp_path / ".part-0-1-7.pending")
    assert lost.value.final == str(tmp_path / "part-0-1-7")
    assert all(name in str(lost.value) for name in (lost.value.pending, lost.value.final))


def test_a_file_of_another_is_not_overwritten(tmp_path: Path) -> None:
    files = attempt(tmp_path)
    transaction = files.begin()
    files.pre_commit(transaction)
    (tmp_path / transaction).write_text("somebody's")
    with pytest.raises(TransactionLostError, match="both are there"):
        files.commit(transaction)
    assert (tmp_path / transaction).read_text() == "somebody's"


@pytest.mark.parametrize("name", [".part-0-1-0.open", ".part-0-1-0.pending", "part-0-1-0"])
def test_an_attempt_that_is_not_the_first_of_its_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(LocalUsageError, match="attempt 1 is not new"):
        attempt(tmp_path).begin()


def test_what_is_left_over_goes_when_the_job_has_finished_and_nothing_else_does(tmp_path: Path) -> None:
    files = attempt(tmp_path)
    for step in (files.commit, None):
        transaction = files.begin()
        files.pre_commit(transaction)
        if step is not None:
            step(transaction)
    files.begin()
    (tmp_path / ".hidden").touch()
    assert remove_leftovers(tmp_path) == [".part-0-1-1.pending", ".part-0-1-2.open"]
    assert names(tmp_path) == [".hidden", "part-0-1-0"]


@pytest.mark.parametrize("was_told", [True, False])
def test_a_sink_that_dies_after_its_checkpoint_counts_shows_each_record_once(tmp_path: Path, was_told: bool) -> None:
    sink = TwoPhaseCommitSink(attempt(tmp_path))
    sink.restore()
    sink.invoke("a")
    state = sink.snapshot(1)
    sink.invoke("b, lost")
    if was_told:
        sink.complete(1)
    again = TwoPhaseCommitSink(attempt(tmp_path, "2"))
    again.restore([state])
    again.invoke("b")
    again.end_of_input()
    again.complete(2)
    assert committed(tmp_path) == "a\nb\n"
    assert names(tmp_path) == ["part-0-1-0", "part-0-2-0"]


def test_a_sink_that_dies_before_its_checkpoint_counts_leaves_what_nobody_sees(tmp_path: Path) -> None:
    sink = TwoPhaseCommitSink(attempt(tmp_path))
    sink.restore()
    sink.invoke("a, lost")
    sink.snapshot(1)
    again = TwoPhaseCommitSink(attempt(tmp_path, "2"))
    again.restore()
    again.invoke("a")
    again.end_of_input()
    again.complete(1)
    assert committed(tmp_path) == "a\n"
    assert remove_leftovers(tmp_path) == [".part-0-1-0.pending", ".part-0-1-1.open"]
