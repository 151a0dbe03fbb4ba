"""Transactions that are files of one folder: what they are called, and what a commit does with what it finds.

    .part-<subtask>-<attempt>-<n>.open       being written
    .part-<subtask>-<attempt>-<n>.pending    durable, its checkpoint does not count yet
    part-<subtask>-<attempt>-<n>             committed: what readers see

A file goes from name to name and is never copied. Each change of name is followed by an fsync of the folder, the first
one preceded by an fsync of the file. What a dead attempt has left keeps its dotted name until the whole job has
finished: after rescaling, the file of one subtask may be in the state of another, so no subtask removes what it did not
begin or was not given.
"""

from __future__ import annotations

import re
from enum import Enum

__all__ = ["CommitStep", "commit_step", "file_transaction", "is_leftover", "open_name", "pending_name"]

_LEFTOVER = re.compile(r"\.part-\d+-[^/]+-\d+\.(open|pending)")


class CommitStep(Enum):
    """What a commit does."""

    RENAME = "give it its name"
    NOTHING = "it has been committed before"
    LOST = "neither is there"
    CLASH = "both are there"


def file_transaction(subtask: int, attempt: str, number: int) -> str:
    """The transaction, and the name of its file when it is committed; `attempt` is one that no other run has had."""
    return f"part-{subtask}-{attempt}-{number}"


def open_name(transaction: str) -> str:
    """What its file is called while it is written."""
    return f".{transaction}.open"


def pending_name(transaction: str) -> str:
    """What its file is called from pre-commit to commit."""
    return f".{transaction}.pending"


def commit_step(has_pending: bool, has_final: bool) -> CommitStep:
    """What to do, by which of its two names are there.

    LOST is data loss: a checkpoint says it is there. CLASH is another's file of the same name, which stays as it is.
    """
    if has_pending:
        return CommitStep.CLASH if has_final else CommitStep.RENAME
    return CommitStep.NOTHING if has_final else CommitStep.LOST


def is_leftover(name: str) -> bool:
    """Whether a file may be removed once the job has finished: whatever counts has its final name by then."""
    return _LEFTOVER.fullmatch(name) is not None
