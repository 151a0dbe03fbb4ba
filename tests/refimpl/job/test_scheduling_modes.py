"""What goes with what: every cell of the table, and the kind of result of every edge."""

from __future__ import annotations

from itertools import product

import pytest

from refimpl.errors import LocalUsageError
from refimpl.job import (
    Boundedness,
    ConsumerStart,
    EdgeKind,
    ExchangeMode,
    ExecutionMode,
    check_combination,
    partition_type_of,
)
from refimpl.producer import ResultPartitionType

_T, _B, _C = ResultPartitionType, Boundedness, ConsumerStart

ALLOWED = {
    *product((_T.PIPELINED, _T.PIPELINED_BOUNDED), (_B.UNBOUNDED, _B.BOUNDED), (_C.AT_ONCE, _C.WITH_FIRST_OUTPUT)),
    *product((_T.BLOCKING, _T.BLOCKING_PERSISTENT), (_B.BOUNDED,), (_C.AFTER_LAST_OUTPUT,)),
}


@pytest.mark.parametrize("cell", list(product(_T, _B, _C)), ids=lambda cell: " ".join(each.name for each in cell))
def test_a_cell_of_the_table(cell: tuple[ResultPartitionType, Boundedness, ConsumerStart]) -> None:
    if cell in ALLOWED:
        check_combination(*cell)
        return
    with pytest.raises(LocalUsageError) as refused:
        check_combination(*cell)
    result, boundedness, start = cell
    assert all(name in str(refused.value) for name in (result.name, boundedness.value, start.value))


P, B = _T.PIPELINED_BOUNDED, _T.BLOCKING


@pytest.mark.parametrize(
    ("mode", "results"),
    [
        (ExecutionMode.PIPELINED, (P, P, B)),
        (ExecutionMode.PIPELINED_FORCED, (P, P, P)),
        (ExecutionMode.BATCH, (P, B, B)),
        (ExecutionMode.BATCH_FORCED, (B, B, B)),
        (ExchangeMode.ALL_PIPELINED, (P, P, P)),
        (ExchangeMode.ALL_BLOCKING, (B, B, B)),
        (ExchangeMode.FORWARD_PIPELINED, (P, B, B)),
    ],
)
def test_the_result_of_a_forward_a_shuffling_and_a_breaking_edge(
    mode: ExecutionMode | ExchangeMode, results: tuple[ResultPartitionType, ...]
) -> None:
    assert tuple(partition_type_of(mode, edge) for edge in EdgeKind) == results


def test_with_pointwise_pipelined_it_is_the_channels_that_count() -> None:
    assert partition_type_of(ExchangeMode.POINTWISE_PIPELINED, EdgeKind.SHUFFLE, is_pointwise=True) is P
    assert partition_type_of(ExchangeMode.POINTWISE_PIPELINED, EdgeKind.SHUFFLE) is B
