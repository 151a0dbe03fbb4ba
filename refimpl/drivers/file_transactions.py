"""The files of a two-phase sink, on a local disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path

from refimpl.errors import LocalUsageError, TransactionLostError
from refimpl.task.file_transactions import (
    CommitStep,
    commit_step,
    file_transaction,
    is_leftover,
    open_name,
    pending_name,
)

__all__ = ["FileSink", "FileTransactions", "line", "remove_leftovers"]


def line(value: object) -> bytes:
    """A value as a line of text, in UTF-8."""
    return f"{value}\n".encode()


class FileSink:
    """Files in `folder` with every value once, for `stream.sink_to`; `to_bytes` makes bytes of a value.

    Whoever reads there leaves out names with a dot in front: those files do not count yet. What is left of them when
    the job has finished is removed. A folder is of one sink of one job.

    Flink:   StreamingFileSink.forRowFormat (streaming.api.functions.sink.filesystem), 1.11.4
    Differs: a new file for each checkpoint and subtask, in one folder.
    """

    def __init__(self, folder: Path | str, to_bytes: Callable[[object], bytes] = line) -> None:
        self.folder = Path(folder)
        self._to_bytes = to_bytes

    def transactions(self, subtask: int, attempt: int) -> FileTransactions:
        """Those of one attempt of one subtask."""
        return FileTransactions(self.folder, subtask, str(attempt), self._to_bytes)

    def job_finished(self) -> None:
        """Remove what dead attempts have left."""
        remove_leftovers(self.folder)


class FileTransactions:
    """The transactions of one attempt of one subtask in `folder`; `to_bytes` makes bytes of a value.

    `attempt` is part of the names, and must be one that no other attempt in this folder has had.

    Raises:
        OSError: the disk is full, or cannot be written.
    """

    def __init__(self, folder: Path, subtask: int, attempt: str, to_bytes: Callable[[object], bytes]) -> None:
        self._folder = folder
        self._subtask = subtask
        self._attempt = attempt
        self._to_bytes = to_bytes
        self._number = 0
        self._files: dict[str, BufferedWriter] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self) -> str:
        """A new file.

        Raises:
            LocalUsageError: a file of that name is there: the attempt is not the first of its name.
        """
        transaction = file_transaction(self._subtask, self._attempt, self._number)
        self._number += 1
        for name in (open_name(transaction), pending_name(transaction), transaction):
            if (self._folder / name).exists():
                raise LocalUsageError(
                    f"{self._folder / name} is there already: attempt {self._attempt} is not new; give this run "
                    f"the store that goes with the folder, or an empty folder"
                )
        self._files[transaction] = (self._folder / open_name(transaction)).open("xb")
        return transaction

    def write(self, transaction: str, value: object) -> None:
        self._files[transaction].write(self._to_bytes(value))

    def pre_commit(self, transaction: str) -> None:
        file = self._files.pop(transaction)
        with file:
            file.flush()
            os.fsync(file.fileno())
        self._rename(open_name(transaction), pending_name(transaction))

    def commit(self, transaction: str) -> None:
        """Give the file its name, if that has not been done.

        Raises:
            TransactionLostError: it is under neither name, or there is another file of that name.
        """
        pending, final = self._folder / pending_name(transaction), self._folder / transaction
        step = commit_step(pending.exists(), final.exists())
        match step:
            case CommitStep.RENAME:
                self._rename(pending.name, final.name)
            case CommitStep.NOTHING:
                _fsync_folder(self._folder)  # whoever renamed it may have died before this
            case CommitStep.LOST | CommitStep.CLASH:
                raise TransactionLostError(str(pending), str(final), step.value)

    def abort(self, transaction: str) -> None:
        if (file := self._files.pop(transaction, None)) is not None:
            file.close()
        (self._folder / open_name(transaction)).unlink(missing_ok=True)

    def _rename(self, name: str, to: str) -> None:
        (self._folder / name).rename(self._folder / to)
        _fsync_folder(self._folder)


def remove_leftovers(folder: Path) -> list[str]:
    """Remove what dead attempts have left in `folder`, once the whole job has FINISHED; the names."""
    names = sorted(path.name for path in folder.iterdir() if is_leftover(path.name))
    for name in names:
        (folder / name).unlink(missing_ok=True)
    return names


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
