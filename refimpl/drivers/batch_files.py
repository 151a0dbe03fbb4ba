"""The files of a job with blocking exchanges, on a local disk: one for each subtask of a sink, there when it is whole.

Such a job has no checkpoints that could say what counts. What counts is what the last attempt of a subtask has written
from its first record to its last.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path

from refimpl.drivers.file_transactions import line
from refimpl.task.operators import OperatorContext, SinkOperator
from refimpl.task.outputs import Output

__all__ = ["BatchFileOperator", "remove_partial_files"]

_PARTIAL = ".partial-"


class BatchFileOperator(SinkOperator):
    """Writes into a file that gets its name, `part-` and the subtask's number, with the end of the stream.

    An attempt that begins again replaces what an earlier one has left, so each value counts once. Whoever reads in
    `folder` leaves out names with a dot in front. A folder is of one sink of one job.

    Raises (process, finish):
        UserCodeError, OSError: the disk is full, or cannot be written.

    Flink:   FileSystemOutputFormat, FinalizeOnMaster (table.filesystem, api.common.io), 1.11.4
    Differs: there the master gives the files their names, all at the end of the job; here each attempt its own.
    """

    def __init__(self, folder: Path, to_bytes: Callable[[object], bytes] = line) -> None:
        super().__init__(self._write)
        self._folder = folder
        self._to_bytes = to_bytes
        self._file: BufferedWriter | None = None
        self._partial = self._final = folder

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._final = self._folder / f"part-{context.subtask}"
        self._partial = self._folder / f"{_PARTIAL}{context.subtask}-{secrets.token_hex(8)}"
        self._file = self._partial.open("xb")

    def finish(self) -> None:
        super().finish()
        assert self._file is not None, "it was set up"
        with self._file as file:
            file.flush()
            os.fsync(file.fileno())
        self._file = None
        self._partial.replace(self._final)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._partial.unlink(missing_ok=True)
        super().close()

    def _write(self, value: object) -> None:
        assert self._file is not None, "it was set up"
        self._file.write(self._to_bytes(value))


def remove_partial_files(folder: Path) -> None:
    """Remove what attempts that were killed have left in `folder`, when the whole job has finished."""
    for path in folder.glob(f"{_PARTIAL}*"):
        path.unlink(missing_ok=True)
