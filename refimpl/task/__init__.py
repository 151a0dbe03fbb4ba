"""Records are processed: operators, where their results go, and the task that drives them."""

from refimpl.task.chain import ChainEdge, ChainNode, OperatorChain
from refimpl.task.checkpoints import Cut, SubtaskCheckpoints
from refimpl.task.collectors import (
    BroadcastingOutputCollector,
    CopyingBroadcastingOutputCollector,
    CopyingDirectedOutput,
    DirectedOutput,
)
from refimpl.task.operators import (
    FilterOperator,
    FlatMapOperator,
    FunctionOperator,
    MapOperator,
    Operator,
    OperatorContext,
    SinkOperator,
    WatermarkOperator,
)
from refimpl.task.outputs import (
    ChainingOutput,
    CopyingChainingOutput,
    CountingOutput,
    Output,
    OutputTag,
    Receiver,
    RecordWriterOutput,
    WatermarkGauge,
    WatermarkGaugeExposingOutput,
)
from refimpl.task.snapshot import Progress, TaskSnapshot
from refimpl.task.source import IterableReader, ReaderFactory, SourceInput, SourceReader
from refimpl.task.state import EventTimeTimers, KeyedState
from refimpl.task.task import Task, TaskInput
from refimpl.task.windows import (
    LATE,
    AggregateFunction,
    TimeWindow,
    TumblingWindows,
    WindowOperator,
)

__all__ = [
    "LATE",
    "AggregateFunction",
    "BroadcastingOutputCollector",
    "ChainEdge",
    "ChainNode",
    "ChainingOutput",
    "CopyingBroadcastingOutputCollector",
    "CopyingChainingOutput",
    "CopyingDirectedOutput",
    "CountingOutput",
    "Cut",
    "DirectedOutput",
    "EventTimeTimers",
    "FilterOperator",
    "FlatMapOperator",
    "FunctionOperator",
    "IterableReader",
    "KeyedState",
    "MapOperator",
    "Operator",
    "OperatorChain",
    "OperatorContext",
    "Output",
    "OutputTag",
    "Progress",
    "ReaderFactory",
    "Receiver",
    "RecordWriterOutput",
    "SinkOperator",
    "SourceInput",
    "SourceReader",
    "SubtaskCheckpoints",
    "Task",
    "TaskInput",
    "TaskSnapshot",
    "TimeWindow",
    "TumblingWindows",
    "WatermarkGauge",
    "WatermarkGaugeExposingOutput",
    "WatermarkOperator",
    "WindowOperator",
]
