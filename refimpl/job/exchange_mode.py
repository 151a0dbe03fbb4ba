"""Which edges of a job are pipelined and which block, by one word for the job."""

from __future__ import annotations

from enum import Enum

from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["EdgeKind", "ExchangeMode", "ExecutionMode", "partition_type_of"]


class EdgeKind(Enum):
    """What an edge does: from one subtask to one, to others, or to where the user has said that the job is to break."""

    FORWARD = "forward"
    SHUFFLE = "shuffle"
    BREAKING = "breaking"


_PIPELINED, _BLOCKING = ResultPartitionType.PIPELINED_BOUNDED, ResultPartitionType.BLOCKING

_BY_EXECUTION_MODE = {
    ExecutionMode.PIPELINED: (_PIPELINED, _PIPELINED, _BLOCKING),
    ExecutionMode.PIPELINED_FORCED: (_PIPELINED, _PIPELINED, _PIPELINED),
    ExecutionMode.BATCH: (_PIPELINED, _BLOCKING, _BLOCKING),
    ExecutionMode.BATCH_FORCED: (_BLOCKING, _BLOCKING, _BLOCKING),
}


def partition_type_of(
    mode: ExecutionMode | ExchangeMode, edge: EdgeKind, is_pointwise: bool = False
) -> ResultPartitionType:
    """The kind of result that an edge has; `is_pointwise` for one that leads to some consumers and not to all."""
    if isinstance(mode, ExecutionMode):
        return _BY_EXECUTION_MODE[mode][list(EdgeKind).index(edge)]
    is_pipelined = {
        ExchangeMode.ALL_BLOCKING: False,
        ExchangeMode.FORWARD_PIPELINED: edge is EdgeKind.FORWARD,
        ExchangeMode.POINTWISE_PIPELINED: is_pointwise,
        ExchangeMode.ALL_PIPELINED: True,
    }
    return _PIPELINED if is_pipelined[mode] else _BLOCKING
