"""Windows that fold a batch at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from refimpl.records import Field, RecordBatch
from refimpl.shortcuts.windows import WindowForm
from refimpl.task import OperatorContext, TumblingWindows, WindowOperator
from tests.refimpl.task.test_window_operator import Bench, Total


class Totals(Total):
    """The same for many at once."""

    def accumulate_groups(self, batch: RecordBatch, starts: np.ndarray) -> list[int]:
        return np.add.reduceat(batch[1], starts).tolist()

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other


KEYS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "user-00001",
        "user-10001",
        "user-00012",
        "other-0001",
        "ab",
        "ba",
        "\u20ac",
        "\u20ad",
        "longer" * 9,
        "longer" * 8 + "other!",
    ]
)


@given(st.lists(st.tuples(KEYS, st.integers(0, 9), st.integers(-15, 15)), min_size=1))
def test_a_batch_opens_the_windows_of_its_records_one_by_one(rows: list[tuple[str, int, int]]) -> None:
    """Whatever its texts have in common, or not."""
    one_by_one, at_once = Bench(Totals()), Bench(Totals())
    at_once.operator = WindowOperator(Field(0), TumblingWindows(10), Totals())
    at_once.operator.setup(OperatorContext("delays", 1, 2, 128), at_once)
    for row in rows:
        one_by_one.add(*row)
    keys, amounts, times = map(np.array, zip(*rows, strict=True))
    WindowForm(at_once.operator, at_once).process_batch(RecordBatch([keys, amounts], times))
    assert at_once.operator.num_open_windows == one_by_one.operator.num_open_windows
    assert at_once.advance(99) == one_by_one.advance(99)
