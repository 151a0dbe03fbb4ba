"""A trace as Parquet files: written while the job runs, in bounded memory, and read by Spark, pandas or pyarrow.

    column        type    meaning
    time_us       int64   microseconds since 1970, in UTC; in the simulation since the start, in virtual time
    number        int64   counts the rows of one TaskManager's trace from 0: the order in which things happened there
    task_manager  int32   whose trace it is; a run in one process has one trace, that of number 0
    kind          string  what happened, one of the kinds that `refimpl.trace` lists
    subject       string  whose: a partition such as `map-0 → sink`, a pool, or for progress a task such as `map-0`
    target        int32   subpartition
    peer          string  the task at the other end: who reads (kinds `local channel`, `remote channel`) or who
                          writes (kind `output`); else empty
    segment       int32   memory segment of the pool
    sequence      int32   sequence number of a buffer within its channel, from 0
    bytes         int32   size of a buffer
    credit        int32   credit of the channel (kinds `grant` and `wait`)

-1 stands for none. A row of kind `lost` says in `bytes` how many rows found no room before it; there is none as long as
the disk keeps up.

Files are `trace-<TaskManager>-<number>.parquet`. Each is written under another name, which begins with a dot, and gets
its own when it is whole. So a run that is killed leaves the files it had finished, which lack the last seconds.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from refimpl.column_trace import ColumnTrace, Place, TraceRows
from refimpl.errors import SluiceError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["COLUMNS", "FileTrace", "TraceFileError", "check_folder", "table_of", "write_trace"]

COLUMNS = (
    "time_us", "number", "task_manager", "kind", "subject", "target", "peer", "segment", "sequence", "bytes", "credit",
)  # fmt: skip

_CREDIT_KINDS = ("grant", "wait")
_SECONDS_BETWEEN_LOOKS = 0.05
_ROWS_OF_GROUP = 64_000
_PARQUET = {
    "compression": "zstd",
    "use_dictionary": ["task_manager", "kind", "subject", "target", "peer", "bytes", "credit"],
    "column_encoding": {
        "time_us": "DELTA_BINARY_PACKED", "number": "DELTA_BINARY_PACKED",
        "segment": "PLAIN", "sequence": "DELTA_BINARY_PACKED",
    },
    "write_statistics": ["time_us", "number"],
}  # fmt: skip


class TraceFileError(SluiceError):
    """The trace cannot be written; the text says why, and what there is of it."""


class FileTrace(ColumnTrace):
    """A trace of TaskManager `task_manager` that goes to Parquet files in `folder`, made if need be.

    A thread of its own writes: a file is finished after `seconds_per_file`, or `rows_per_file`. `close`, or the end of
    a `with` block, finishes the last one. `num_written` rows are in finished files, `files` lists these.

    Raises (constructor):
        TraceFileError: the folder cannot be made, or has a trace of that TaskManager already.
    Raises (close):
        TraceFileError: the disk is full, say. The job has not been disturbed; finished files stay.
    """

    def __init__(
        self,
        folder: str | Path,
        task_manager: int = 0,
        seconds_per_file: float = 5.0,
        rows_per_file: int = 2_000_000,
        most_rows: int = 1_000_000,
    ) -> None:
        super().__init__(most_rows)
        self.folder = Path(folder)
        self.task_manager = task_manager
        self.files: list[Path] = []
        self.num_written = 0
        self._seconds_per_file = seconds_per_file
        self._rows_per_file = rows_per_file
        self._open: _OpenFile | None = None
        self._num_told_lost = 0
        self._gathered: list[TraceRows] = []
        self._num_gathered = 0
        self._error: Exception | None = None
        self._is_closed = False
        check_folder(self.folder, str(task_manager))
        for left in self.folder.glob(f".trace-{task_manager}-*.part"):  # of a run that was killed
            left.unlink(missing_ok=True)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"trace of tm-{task_manager}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except TraceFileError:
            if error is None:  # else what failed first is to be told
                raise

    def close(self) -> None:
        """Write what is left; safe to repeat."""
        if not self._is_closed:
            self._is_closed = True
            self._ending.set()
            self._thread.join()
        if self._error is not None:
            raise TraceFileError(
                f"the trace in {self.folder} ends early, after {len(self.files)} files: {self._error}"
            ) from self._error

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
                self._look()
                if self._num_gathered >= _ROWS_OF_GROUP or (self._open is not None and self._open.is_old):
                    self._write()
            self._look()
            self._write()
            self._finish()
        except Exception as error:  # noqa: BLE001 - raised by `close`; meanwhile the rows are thrown away
            self._error = error
            if self._open is not None:
                self._open.give_up()
            while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
                self.drain()

    def _look(self) -> None:
        """Gather what there is: soon, since the memory of few rows is used again and is still at hand."""
        drained = self.drain()
        if len(drained.rows):
            self._open = self._open or self._next_file()
            self._gathered.append(drained)
            self._num_gathered += len(drained.rows)

    def _write(self) -> None:
        """Write what was gathered, and finish the file if it is time."""
        if self._gathered and self._open is not None:
            gathered = TraceRows.joined(self._gathered)
            self._open.write(table_of(gathered, self.task_manager, self._num_told_lost))
            self._gathered, self._num_gathered, self._num_told_lost = [], 0, gathered.num_lost
        if self._open is not None and (self._open.is_old or self._open.num_rows >= self._rows_per_file):
            self._finish()

    def _next_file(self) -> _OpenFile:
        name = f"trace-{self.task_manager}-{len(self.files):05}.parquet"
        return _OpenFile(self.folder / name, time.monotonic() + self._seconds_per_file)

    def _finish(self) -> None:
        if self._open is not None and self._open.num_rows:
            self._open.finish()
            self.files.append(self._open.path)
            self.num_written += self._open.num_rows
        self._open = None


def check_folder(folder: Path, task_manager: str = "*") -> None:
    """Make the folder of a trace, if need be.

    Raises:
        TraceFileError: it cannot be made, or has a trace already; of that TaskManager, if one is named.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceFileError(f"no trace can be written to {folder}: {error.strerror or error}") from error
    if found := sorted(folder.glob(f"trace-{task_manager}-*.parquet")):
        raise TraceFileError(f"{folder} has a trace already, {found[0].name}; name an empty folder")


def write_trace(folder: Path, tables: Iterable[pa.Table], rows_per_file: int = 2_000_000) -> None:
    """Write a trace that came as tables, such as that of a job on Spark; those of each TaskManager are in order.

    Raises:
        TraceFileError: as in `check_folder`, or the disk is full, say. Finished files stay.
    """
    check_folder(folder)
    files: dict[int, _OpenFile] = {}
    num_files: Counter[int] = Counter()
    try:
        for table in tables:
            number = table["task_manager"][0].as_py()
            if number not in files:
                files[number] = _OpenFile(folder / f"trace-{number}-{num_files[number]:05}.parquet", math.inf)
                num_files[number] += 1
            files[number].write(table)
            if files[number].num_rows >= rows_per_file:
                files.pop(number).finish()
        while files:
            files.popitem()[1].finish()
    except OSError as error:
        raise TraceFileError(f"the trace in {folder} ends early: {error}") from error
    finally:
        for file in files.values():
            file.give_up()


class _OpenFile:
    """A file that is being written; it gets its name when it is whole."""

    def __init__(self, path: Path, finish_s: float) -> None:
        self.path = path
        self.num_rows = 0
        self._finish_s = finish_s
        # Absolute: what has a colon before its first slash would be the name of a place on a network.
        self._part = path.absolute().with_name(f".{path.stem}.part")
        self._writer: pq.ParquetWriter | None = None

    @property
    def is_old(self) -> bool:
        return time.monotonic() >= self._finish_s

    def write(self, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._part, table.schema, **_PARQUET)
        self._writer.write_table(table, row_group_size=len(table))
        self.num_rows += len(table)

    def finish(self) -> None:
        assert self._writer is not None, "a file is begun with its first table"
        self._writer.close()
        with self._part.open("rb") as file:
            os.fsync(file.fileno())
        self._part.rename(self.path)

    def give_up(self) -> None:
        """Leave nothing half-written."""
        with contextlib.suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)


# -- rows as a table ---------------------------------------------------------------------------------


def table_of(drained: TraceRows, task_manager: int = 0, num_told_lost: int = 0) -> pa.Table:
    """The rows of one `drain` as an Arrow table with the columns above."""
    import pyarrow as pa

    places, rows = drained.places, drained.rows
    num_lost = drained.num_lost - num_told_lost
    if num_lost:
        places = (*places, Place("lost", "trace", -1, ""))
        last = rows[-1:].copy()
        last["place"], last["segment"], last["sequence"], last["amount"] = len(places) - 1, -1, -1, num_lost
        rows = np.concatenate([rows, last])
    place, amount = rows["place"], rows["amount"]
    is_credit = np.array([each.kind in _CREDIT_KINDS for each in places])[place]
    number = drained.first_number + np.arange(len(rows), dtype=np.int64)
    return pa.table(
        {
            "time_us": (rows["time_ns"] + drained.epoch_ns) // 1000,
            "number": number,
            "task_manager": np.full(len(rows), task_manager, np.int32),
            "kind": _words([each.kind for each in places], place),
            "subject": _words([each.subject for each in places], place),
            "target": np.array([each.target for each in places], np.int32)[place],
            "peer": _words([each.peer for each in places], place),
            "segment": np.ascontiguousarray(rows["segment"]),
            "sequence": np.ascontiguousarray(rows["sequence"]),
            "bytes": np.where(is_credit, np.int32(-1), amount),
            "credit": np.where(is_credit, amount, np.int32(-1)),
        }
    )


def _words(word_of_place: Sequence[str], place: np.ndarray) -> pa.DictionaryArray:
    """A column of words, each kept once."""
    import pyarrow as pa

    words, index_of_place = np.unique(np.array(word_of_place, dtype=object).astype(str), return_inverse=True)
    indices = index_of_place.astype(np.int32)[place]
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(words.tolist(), pa.string()))
