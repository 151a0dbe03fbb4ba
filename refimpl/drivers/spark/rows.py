"""Rows on their way out of a barrier task: values of sinks, rows of the trace, and the end.

result   operator, and values of its subtasks, packed several to a row, in order
trace    some rows of the trace, as a table in Arrow's stream format
counts   how many rows of these two there are, and what went through here, for the law of records
error    what failed of its own fault; there is nothing to be tried again
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from refimpl.drivers.processes.messages import pack

if TYPE_CHECKING:
    import pyarrow as pa

    from refimpl.column_trace import TraceRows

__all__ = ["COUNTS", "ERROR", "RESULT", "ROW_SCHEMA", "TRACE", "TaskRows", "TraceSender", "TraceTable"]

COUNTS, ERROR, RESULT, TRACE = "counts", "error", "result", "trace"
ROW_SCHEMA = "kind string, attempt string, task_manager int, number bigint, operator int, value binary"
"""`attempt` names a try of the stage, `number` counts rows of a kind from 1, `operator` is a result's, else -1."""

TraceTable = Callable[["TraceRows", int, int], "pa.Table"]
"""Makes a table of rows of TaskManager i's trace, `table(rows, i, lost)`, when `lost` rows have been told before."""

_MOST_VALUES_IN_A_ROW = 1024
_MOST_BYTES_IN_A_ROW = 1024 * 1024  # and one value more
_MOST_ROWS_WAITING = 4
_ROWS_OF_TABLE = 16_384
_SECONDS_BETWEEN_LOOKS = 0.05


@dataclass(slots=True)
class _Filling:
    """The row that values of one sink go into now."""

    values: list[tuple[int, bytes]] = field(default_factory=list)
    num_bytes: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.values) >= _MOST_VALUES_IN_A_ROW or self.num_bytes >= _MOST_BYTES_IN_A_ROW


class TaskRows:
    """Rows that wait: tasks put values in, the thread of Spark's task takes full rows.

    `put` waits when too many rows wait: Spark takes them slowly, and the task is as slow.
    No row is read before all tasks have ended, so a row that is not full may wait until then.
    """

    def __init__(self, task_manager: int) -> None:
        self.attempt = ""
        self._task_manager = task_manager
        self._changed = threading.Condition()
        self._filling: dict[int, _Filling] = {}
        self._full: deque[tuple[str, int, _Filling | bytes]] = deque()
        self._num_rows: Counter[str] = Counter()
        self._is_closed = False

    def put(self, node_id: int, subtask: int, value: bytes) -> None:
        """One value of a sink; dropped after `close`."""
        with self._changed:
            self._wait_for_room()
            filling = self._filling.setdefault(node_id, _Filling())
            filling.values.append((subtask, value))
            filling.num_bytes += len(value)
            if filling.is_full:
                self._full.append((RESULT, node_id, self._filling.pop(node_id)))
                self._changed.notify_all()

    def put_trace(self, table: bytes) -> None:
        """Some rows of the trace; also after `close`, for another iteration."""
        with self._changed:
            self._wait_for_room()
            self._full.append((TRACE, -1, table))
            self._changed.notify_all()

    def close(self) -> None:
        """No more results will come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows as they become full, until `close`; then the others."""
        while (taken := self._take()) is not None:
            kind, operator, value = taken
            yield self.row(kind, value if isinstance(value, bytes) else pack(value.values), operator)

    def row(self, kind: str, value: bytes, operator: int = -1) -> pa.RecordBatch:
        """The next row of that kind."""
        import pyarrow as pa

        self._num_rows[kind] += 1
        names = ["kind", "attempt", "task_manager", "number", "operator", "value"]
        types = [pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int32(), pa.binary()]
        parts = [kind, self.attempt, self._task_manager, self._num_rows[kind], operator, value]
        return pa.record_batch([pa.array([part], type_) for part, type_ in zip(parts, types, strict=True)], names)

    def num(self, kind: str) -> int:
        """How many rows of a kind were made."""
        return self._num_rows[kind]

    def _wait_for_room(self) -> None:
        while len(self._full) >= _MOST_ROWS_WAITING and not self._is_closed:
            self._changed.wait()

    def _take(self) -> tuple[str, int, _Filling | bytes] | None:
        with self._changed:
            while not self._full and not self._is_closed:
                self._changed.wait()
            self._changed.notify_all()
            if self._full:
                return self._full.popleft()
            return (RESULT, *self._filling.popitem()) if self._filling else None


class TraceSender:
    """Puts the trace of a TaskManager into `rows`, some thousands of events at a time, from a thread of its own.

    If they are not taken from there, the trace loses some and counts them: the job does not wait for its trace.
    If no table can be made of them, `error` says why, and no more are put in.
    """

    def __init__(self, make_table: TraceTable, task_manager: int, rows: TaskRows) -> None:
        from refimpl.column_trace import ColumnTrace  # it needs numpy, which a job without Spark need not have

        self.trace = ColumnTrace()
        self.error: Exception | None = None
        self._make_table = make_table
        self._task_manager = task_manager
        self._rows = rows
        self._gathered: list[TraceRows] = []
        self._num_told_lost = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="trace", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Put in the rest; safe to repeat."""
        self._ending.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
                self._look()
                if sum(len(each.rows) for each in self._gathered) >= _ROWS_OF_TABLE:
                    self._send()
            self._look()
            self._send()
        except Exception as error:  # noqa: BLE001 - reported at the end of the job, which goes on
            self.error = error

    def _look(self) -> None:
        drained = self.trace.drain()
        if len(drained.rows):
            self._gathered.append(drained)

    def _send(self) -> None:
        if not self._gathered:
            return
        from refimpl.column_trace import TraceRows

        gathered, self._gathered = TraceRows.joined(self._gathered), []
        for part in gathered.split(_ROWS_OF_TABLE):
            self._rows.put_trace(_as_bytes(self._make_table(part, self._task_manager, self._num_told_lost)))
            self._num_told_lost = part.num_lost


def _as_bytes(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
