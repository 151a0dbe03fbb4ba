"""Arrow's columns become the engine's without a change of value, whatever they hold."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.data.columns import column_of, record_batch_of
from course.data.flights_job import DelayTotals, departure, flights_job
from refimpl.drivers import Simulation
from refimpl.records import RecordBatch

VALUES = [
    (pa.int8(), [1, -128, None]), (pa.int32(), [1, 2]), (pa.int64(), [-(2**63), None, 2**63 - 1]),
    (pa.uint64(), [2**64 - 1, 0]), (pa.float32(), [0.5, None]), (pa.float64(), [1e300, -0.0]),
    (pa.bool_(), [True, False]), (pa.bool_(), [True, None, False]), (pa.string(), ["EWR", "JFK"]),
    (pa.string(), ["a", "bb", ""]), (pa.string(), ["ab", None]), (pa.string(), ["aé", "bc"]), (pa.string(), ["", ""]),
    (pa.string(), ["a\0", "bb"]), (pa.large_string(), ["EWR", "LGA"]), (pa.binary(), [b"a", None]),
    (pa.list_(pa.int32()), [[1], [1, 2]]), (pa.decimal128(5, 2), [decimal.Decimal("1.25")]),
    (pa.date32(), [datetime.date(2013, 1, 1)]), (pa.dictionary(pa.int8(), pa.string()), ["EWR", "EWR"]),
    (pa.null(), [None, None]), (pa.string(), []), (pa.int64(), []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=repr)
def test_a_column_has_the_values_arrow_has(kind: pa.DataType, values: list[object]) -> None:
    array = pa.array(values, kind)
    assert column_of(array).tolist() == array.to_pylist() == values


@pytest.mark.slow
@given(st.sampled_from(VALUES), st.integers(0, 3), st.integers(0, 5), st.integers(1, 4))
def test_a_part_of_a_column_has_its_own_values(
    column: tuple[pa.DataType, list[object]], start: int, length: int, copies: int
) -> None:
    """A slice of an Arrow array looks into the memory of the whole."""
    kind, values = column
    part = pa.array(values * copies, kind).slice(start, length)
    assert column_of(part).tolist() == part.to_pylist()


def test_a_batch_of_arrow_has_the_same_rows() -> None:
    arrow = pa.record_batch({"origin": ["EWR", "JFK"], "delay": pa.array([3, -4], pa.int32())})
    assert list(record_batch_of(arrow).values()) == arrow.to_pylist()


def test_numbers_are_not_copied() -> None:
    array = pa.array([1, 2, 3])
    assert column_of(array).ctypes.data == array.buffers()[1].address


# -- the flights job ---------------------------------------------------------------------------------

FLIGHTS = [
    {
        "event_time_ms": hour * 3_600_000 + minute,
        "origin": origin,
        "carrier": "AA",
        "dest": "BOS",
        "dep_delay_minutes": delay,
    }
    for hour in range(5)
    for minute, (origin, delay) in enumerate([("EWR", 4), ("JFK", -2), ("LGA", None), ("EWR", 60), ("JFK", None)] * 4)
]


class Reader:
    """One batch of flights, then the end."""

    def __init__(self, in_batches: bool) -> None:
        self._left = [record_batch_of(pa.RecordBatch.from_pylist(FLIGHTS))]
        if not in_batches:
            self._left = [list(self._left[0].records())]

    def read(self, _max_records: int) -> object:
        return self._left.pop() if self._left else None

    def close(self) -> None: ...


@pytest.mark.parametrize("is_ours", [True, False])
def test_the_flights_job_gives_one_answer_for_batches_and_for_single_flights(is_ours: bool) -> None:
    """Ours does many flights at once; a learner's function gets each by itself."""
    function = departure if is_ours else (lambda flight: (flight["origin"], flight["dep_delay_minutes"]))
    answers = []
    for in_batches in (True, False):
        results: list[object] = []
        job = flights_job(lambda *_, b=in_batches: Reader(b), results.append, parallelism=1, function=function)
        Simulation(job).run()
        answers.append(sorted(results))
    assert answers[0] == answers[1]
    assert answers[0][0] == ("EWR", 0, 3_600_000, (8, 256))
    assert len(answers[0]) == 10  # nobody has flown from LGA


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-99, 99)), min_size=1, max_size=9), st.integers(0, 8))
def test_the_totals_of_a_group_are_those_of_its_values(values: list[tuple[str, int]], cut: int) -> None:
    totals, starts = DelayTotals(), sorted({0, min(cut, len(values) - 1)})
    batch = RecordBatch([np.array(column) for column in zip(*values, strict=True)])
    groups = totals.accumulate_groups(batch, np.array(starts))
    expected = []
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        accumulator = totals.create_accumulator()
        for value in values[start:end]:
            accumulator = totals.add(value, accumulator)
        expected.append(accumulator)
    assert groups == expected
    assert totals.merge(groups[0], groups[-1]) == (groups[0][0] + groups[-1][0], groups[0][1] + groups[-1][1])
