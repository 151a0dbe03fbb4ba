"""Rows of a barrier task, without Spark: results and traces go out whole, and nobody waits for who is not there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from course.data.trace_files import table_of
from refimpl.column_trace import TraceRows
from refimpl.drivers.processes import unpack
from refimpl.drivers.spark import RESULT, TRACE, TaskRows, TraceSender

NUM_NOTES = 40_000


def tables(rows: TaskRows) -> list[pa.Table]:
    found = [row.to_pylist()[0] for row in rows]
    assert {row["kind"] for row in found} == {TRACE}
    assert [row["number"] for row in found] == [*range(1, len(found) + 1)]
    return [pa.ipc.open_stream(row["value"]).read_all() for row in found]


def test_everything_noted_goes_out_in_order_in_tables_of_some_thousand_rows() -> None:
    rows = TaskRows(3)
    sender = TraceSender(table_of, 3, rows)
    note = sender.trace.note("deliver", "map-0 → sink", 1)
    for number in range(NUM_NOTES):
        note(7, number, 100)
    rows.close()
    sender.close()
    sender.close()
    parts = tables(rows)
    assert all(1 <= len(part) <= 16_384 for part in parts)
    table = pa.concat_tables(parts, promote_options="permissive")
    assert table["number"].to_pylist() == table["sequence"].to_pylist() == [*range(NUM_NOTES)]
    assert set(table["task_manager"].to_pylist()) == {3}
    assert set(table["kind"].to_pylist()) == {"deliver"}


def test_where_nobody_takes_rows_the_job_goes_on_and_what_was_lost_is_a_row() -> None:
    rows = TaskRows(0)
    sender = TraceSender(table_of, 0, rows)
    note = sender.trace.note("queue", "map-0 → sink", 0)
    num_notes = 0
    while not sender.trace.num_lost:
        note()
        num_notes += 1
    rows.close()
    sender.close()
    found = pa.concat_tables(tables(rows), promote_options="permissive")
    lost = found.filter(pc.equal(found["kind"], "lost"))["bytes"].to_pylist()
    assert 0 < sender.trace.num_lost == sum(lost)
    assert len(found) - len(lost) + sum(lost) == num_notes


def test_a_trace_of_which_no_table_can_be_made_says_why() -> None:
    def table(_rows: TraceRows, _task_manager: int, _num_told_lost: int) -> pa.Table:
        raise ValueError("these rows are odd")

    rows = TaskRows(0)
    sender = TraceSender(table, 0, rows)
    sender.trace.note("queue", "map-0 → sink", 0)()
    rows.close()
    sender.close()
    assert str(sender.error) == "these rows are odd"
    assert [*rows] == []


def test_results_fill_rows_and_those_that_are_not_full_come_at_the_end() -> None:
    rows = TaskRows(1)
    for number in range(1030):
        rows.put(5, number % 2, b"%d" % number)
    rows.put(6, 0, b"other")
    rows.close()
    found = [row.to_pylist()[0] for row in rows]
    assert [(row["kind"], row["number"]) for row in found] == [(RESULT, 1), (RESULT, 2), (RESULT, 3)]
    values = {operator: [] for operator in (5, 6)}
    for row in found:
        values[row["operator"]] += unpack(row["value"])
    assert values == {5: [(number % 2, b"%d" % number) for number in range(1030)], 6: [(0, b"other")]}
    assert (rows.num(RESULT), rows.num(TRACE)) == (3, 0)
