"""A batch as one record: its columns come back as they were, and nothing else passes for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError, RemoteProtocolError
from refimpl.job import StreamEnvironment
from refimpl.records import BOOLEAN, DOUBLE, INT, LONG, STRING, RecordBatch
from refimpl.shortcuts.columnar_type import ColumnarType
from refimpl.task import IterableReader

KIND = ColumnarType(LONG, BOOLEAN, DOUBLE, INT)


def batch_of(rows: list[tuple[int, bool, float, int]]) -> RecordBatch:
    kinds = (np.int64, bool, np.float64, np.int32)
    columns = zip(*rows, strict=True) if rows else [()] * 4
    return RecordBatch([np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)])


def written(batch: RecordBatch, before: bytes = b"") -> bytes:
    target = bytearray(before)
    KIND.serialize(batch, target)
    return bytes(target)


ROWS = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False), st.integers(-9, 9))
)


@given(ROWS, st.integers(0, 3))
def test_columns_come_back_as_they_were(rows: list[tuple[int, bool, float, int]], start: int) -> None:
    data = written(batch_of(rows), b"x" * start) + b"rest"
    batch, end = KIND.deserialize(memoryview(data), start)
    assert (list(batch.values()), end) == (rows, len(data) - 4)
    assert [column.dtype for column in batch.columns] == [np.int64, bool, np.float64, np.int32]


def test_the_bytes_are_a_count_and_the_columns() -> None:
    assert written(batch_of([(1, True, 0.5, -1), (2, False, 0.0, 7)])) == bytes.fromhex(
        "00000002010000000000000002000000000000000100000000000000e03f0000000000000000ffffffff07000000"
    )


def test_what_was_read_does_not_look_into_the_record_any_more() -> None:
    source = bytearray(written(batch_of([(1, True, 0.5, -1)])))
    batch, _ = KIND.deserialize(memoryview(source), 0)
    source[:] = bytes(len(source))
    assert list(batch.values()) == [(1, True, 0.5, -1)]


def test_a_column_with_gaps_or_of_a_narrower_kind_is_written_as_it_counts() -> None:
    target = bytearray()
    ColumnarType(LONG).serialize(RecordBatch([np.arange(10, dtype=np.int32)[::3]]), target)
    batch, _ = ColumnarType(LONG).deserialize(memoryview(target), 0)
    assert batch[0].tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize(
    "value",
    [(1, 2), RecordBatch([np.arange(2)] * 2), RecordBatch([np.array([0.5])]), RecordBatch([np.array(["a"])]),
     RecordBatch([np.ma.array([1, 2], mask=[True, False])]), RecordBatch([np.array([2**64 - 1], np.uint64)]),
     RecordBatch([np.zeros((2, 2), np.int64)])],
    ids=repr,
)  # fmt: skip
def test_what_would_lose_something_is_refused_and_nothing_is_written(value: object) -> None:
    target = bytearray(b"before")
    with pytest.raises(LocalUsageError, match=r"is no batch of columns|does not fit int64"):
        ColumnarType(LONG).serialize(value, target)
    assert target == b"before"


def test_a_number_of_one_byte_is_no_boolean() -> None:
    target = bytearray()
    with pytest.raises(LocalUsageError, match="a column of uint8 does not fit bool"):
        ColumnarType(BOOLEAN).serialize(RecordBatch([np.array([0, 7], np.uint8)]), target)
    assert target == b""


@pytest.mark.parametrize("num_bytes", [0, 3, 4, 20, 45])
def test_a_record_that_ends_early_is_refused(num_bytes: int) -> None:
    data = written(batch_of([(1, True, 0.5, -1), (2, False, 0.0, 7)]))
    assert len(data) == 46
    with pytest.raises(RemoteProtocolError, match="but the record ends at byte"):
        KIND.deserialize(memoryview(data[:num_bytes]), 0)


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="with -1 rows"):
        KIND.deserialize(memoryview(b"\xff\xff\xff\xff" + bytes(99)), 0)


def test_fields_that_differ_in_length_have_no_columns() -> None:
    with pytest.raises(LocalUsageError, match="a column of string differs in length"):
        ColumnarType(LONG, STRING)
    with pytest.raises(LocalUsageError, match="at least one field"):
        ColumnarType()


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_a_job_may_send_batches_as_records(num_task_managers: int) -> None:
    environment = StreamEnvironment(Config(segment_size_bytes=512, num_buffers=40))
    batches = [RecordBatch([np.arange(start, start + 300)]) for start in range(0, 3_000, 300)]
    kind, sums = ColumnarType(LONG), []
    source = environment.source(lambda *_: IterableReader(batches), type=kind).slot_sharing_group("sources")
    source.rebalance().map(lambda batch: int(batch[0].sum())).sink(sums.append).slot_sharing_group("sinks")
    Simulation(environment, num_task_managers=num_task_managers).run()
    assert sums == [int(batch[0].sum()) for batch in batches]
