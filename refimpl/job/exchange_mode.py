"""Which edges of a job are pipelined and which block, by one word for the job."""

from __future__ import annotations

from enum import Enum

from refimpl.producer.partition_type import ResultPartitionType

__all__ = ["EdgeKind", "ExchangeMode", "ExecutionMode", "partition_type_of"]


class EdgeKind(Enum):
    """What an edge does: from one subtask to one, to others, or to where the user has said that the job is to break."""

    FORWARD = "forward"
    SHUFFLE = "shuffle"
    BREAKING = "breaking"


class ExecutionMode(Enum):
    """How a bounded job is to run; the `FORCED` ones heed no edge that breaks, or break at all.

    Flink:   ExecutionMode (api.common), DataExchangeMode (runtime.io.network), 1.11.4
    """

    PIPELINED = "pipelined"
    PIPELINED_FORCED = "pipelined, also where the job breaks"
    BATCH = "batch"
    BATCH_FORCED = "batch, also within one subtask's line"


class ExchangeMode(Enum):
    """Which edges of a streaming program are pipelined.

    Flink:   GlobalDataExchangeMode (streaming.api.graph), 1.11.4
    """

    ALL_BLOCKING = "none"
    FORWARD_PIPELINED = "those from one subtask to one"
    POINTWISE_PIPELINED = "those from one subtask to some"
    ALL_PIPELINED = "all"


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
