"""What the files of a transaction are called, and what a commit does with what it finds."""

from __future__ import annotations

import pytest

from refimpl.task import CommitStep, commit_step, file_transaction, is_leftover, open_name, pending_name


@pytest.mark.parametrize(
    ("has_pending", "has_final", "step"),
    [
        (True, False, CommitStep.RENAME),
        (False, True, CommitStep.NOTHING),
        (False, False, CommitStep.LOST),
        (True, True, CommitStep.CLASH),
    ],
)
def test_what_a_commit_does_with_what_it_finds(has_pending: bool, has_final: bool, step: CommitStep) -> None:
    assert commit_step(has_pending, has_final) is step


def test_names_tell_subtask_attempt_and_number_and_hide_until_the_commit() -> None:
    transaction = file_transaction(2, "a7.1", 3)
    assert transaction == "part-2-a7.1-3"
    assert open_name(transaction) == ".part-2-a7.1-3.open"
    assert pending_name(transaction) == ".part-2-a7.1-3.pending"


def test_only_dotted_names_of_ours_are_leftovers() -> None:
    transaction = file_transaction(0, "run-1", 0)
    assert is_leftover(open_name(transaction))
    assert is_leftover(pending_name(transaction))
    for other in (transaction, ".hidden", ".part-0.open", "part-0-a-1.pending", ".part-0-a-1.open.bak"):
        assert not is_leftover(other)
