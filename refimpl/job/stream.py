"""The few words a job is written in: a small DataStream API.

    env = StreamEnvironment(Config())
    results = []
    (
        env.from_collection(range(10))
        .map(lambda n: n * n, name="square")
        .filter(lambda n: n % 2 == 0, name="even")
        .sink(results.append)
    )
    Simulation(env).run()

Every word adds an operator and returns the stream of its results; nothing runs until a driver does.
`type` names how values cross the network; without one, they say themselves what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job.job_graph import JobGraph
from refimpl.job.parts import Parts
from refimpl.job.stream_graph import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    ChainingStrategy,
    Partitioner,
    StreamEdge,
    StreamGraph,
    StreamNode,
)
from refimpl.producer.selector import KeyGroupSelector
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.records.vectorized import Field
from refimpl.task.operators import (
    FilterOperator,
    FlatMapOperator,
    MapOperator,
    Operator,
    SinkOperator,
    WatermarkOperator,
)
from refimpl.task.outputs import OutputTag
from refimpl.task.source import IterableReader, ReaderFactory
from refimpl.task.triggers import Trigger
from refimpl.task.window_assigners import WindowAssigner
from refimpl.task.window_operator import AggregateFunction, WindowOperator

__all__ = ["DataStream", "KeyedStream", "SplitStream", "StreamEnvironment", "WindowedStream"]


class StreamEnvironment:
    """A job being written: its options, its parts and its graph.

    Flink:   StreamExecutionEnvironment (streaming.api.environment), 1.11.4
    """

    def __init__(self, config: Config | None = None, parallelism: int = 1) -> None:
        self.config = config or Config()
        self.parallelism = _positive(parallelism)
        self.parts = Parts()
        self.graph = StreamGraph()

    def use(self, **parts: object) -> StreamEnvironment:
        """Build the job with other parts: `use(SpanningRecordSerializer=Mine)`."""
        self.parts = self.parts.using(**parts)
        return self

    def source(
        self,
        make_reader: ReaderFactory,
        name: str = "source",
        type: TypeSerializer = ANY,
        parallelism: int | None = None,
    ) -> DataStream:
        """A stream read by `make_reader(subtask, parallelism)` in every subtask."""
        node = StreamNode(
            self._next_id(),
            name,
            _positive(self.parallelism if parallelism is None else parallelism),
            Operator,
            type,
            ChainingStrategy.HEAD,
            make_reader=make_reader,
        )
        self.graph.add_node(node)
        return DataStream(self, node)

    def from_collection(self, values: Iterable[object], name: str = "source", type: TypeSerializer = ANY) -> DataStream:
        """A stream of these values, read by one subtask."""
        kept: Sequence[object] = list(values)
        return self.source(lambda *_: IterableReader(kept), name, type, parallelism=1)

    def explain(self) -> str:
        """The tasks this job becomes, and for every edge why it was or was not chained."""
        return JobGraph(self.graph, self.config, self.parts).explain()

    def _next_id(self) -> int:
        return len(self.graph.nodes)


@dataclass(frozen=True, repr=False, eq=False)
class DataStream:
    """The results of one operator, and how they leave it; `_others` are united with it.

    Flink:   DataStream, SingleOutputStreamOperator (streaming.api.datastream), 1.11.4
    """

    environment: StreamEnvironment
    node: StreamNode
    _partitioner: Partitioner | None = None
    _tag: OutputTag | None = None
    _names: tuple[str, ...] = ()
    _others: tuple[DataStream, ...] = ()

    def __repr__(self) -> str:
        return f"DataStream({self.node.name})"

    @property
    def value_type(self) -> TypeSerializer:
        """How the values of this stream are written."""
        return self.node.value_type if self._tag is None else self._tag.value_type

    # -- operators ---------------------------------------------------------------------------------

    def map(self, function: Callable[[Any], object], name: str = "map", type: TypeSerializer = ANY) -> DataStream:
        """One result for each value."""
        return self.transform(name, lambda: MapOperator(function), type)

    def filter(self, function: Callable[[Any], object], name: str = "filter") -> DataStream:
        """The values for which `function` is true."""
        return self.transform(name, lambda: FilterOperator(function), self.value_type)

    def flat_map(
        self, function: Callable[[Any], object], name: str = "flat_map", type: TypeSerializer = ANY
    ) -> DataStream:
        """Any number of results for each value: `function` returns an iterable."""
        return self.transform(name, lambda: FlatMapOperator(function), type)

    def assign_timestamps(
        self,
        timestamp_of: Callable[[Any], int],
        max_out_of_orderness_ms: int,
        name: str = "timestamps",
        every: int = 64,
    ) -> DataStream:
        """Event time for each value, and a watermark after each `every` of them."""
        return self.transform(
            name,
            lambda: WatermarkOperator(timestamp_of, max_out_of_orderness_ms, every),
            self.value_type,
        )

    def sink(self, function: Callable[[Any], object], name: str = "sink") -> DataStream:
        """Call `function` with every value, in the process that runs the job."""
        stream = self.transform(name, lambda: SinkOperator(function), ANY)
        stream.node.sink = function
        return stream

    def transform(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer = ANY) -> DataStream:
        """Any operator; each subtask gets its own from `make_operator`."""
        environment = self.environment
        node = StreamNode(environment._next_id(), name, environment.parallelism, make_operator, type)
        environment.graph.add_node(node)
        for stream in (self, *self._others):
            stream._connect(node)
        return DataStream(environment, node)

    # -- which way records leave ---------------------------------------------------------------------

    def key_by(
        self, key_of: Callable[[Any], Hashable] | int | str, key_type: TypeSerializer | None = None
    ) -> KeyedStream:
        """All records of one key to one subtask; `key_of` takes the key out of a value, or names its field."""
        return KeyedStream(self, key_of if callable(key_of) else Field(key_of), key_type)

    def forward(self) -> DataStream:
        """To the subtask with the same index."""
        return self._by(FORWARD)

    def rebalance(self) -> DataStream:
        """To all subtasks in turn."""
        return self._by(REBALANCE)

    def rescale(self) -> DataStream:
        """To some nearby subtasks in turn."""
        return self._by(RESCALE)

    def shuffle(self) -> DataStream:
        """To a subtask at random."""
        return self._by(SHUFFLE)

    def broadcast(self) -> DataStream:
        """To all subtasks, each record."""
        return self._by(BROADCAST)

    def to_first(self) -> DataStream:
        """To the first subtask (Flink's `global`)."""
        return self._by(GLOBAL)

    def union(self, *others: DataStream) -> DataStream:
        """The records of several streams of one type.

        Raises:
            LocalUsageError: a stream of another job, or of another type.
        """
        for other in others:
            if other.environment is not self.environment:
                raise LocalUsageError(f"{other} belongs to another environment")
            if other.value_type.name != self.value_type.name:
                raise LocalUsageError(
                    f"{other} has values of type {other.value_type.name}, {self} of "
                    f"{self.value_type.name}; give both the same type"
                )
        return replace(self, _others=(*self._others, *others))

    def side_output(self, tag: OutputTag) -> DataStream:
        """The records the operator sent to `tag`."""
        return DataStream(self.environment, self._operator(), None, tag)

    def split(self, select: Callable[[Any], Iterable[str]]) -> SplitStream:
        """Let `select` name, for each value, the branches it goes to.

        Raises:
            LocalUsageError: the stream is a side output, or has been split before.
        """
        streams = (self, *self._others)
        for stream in streams:
            if stream._tag is not None or stream._names or stream.node.select is not None:
                raise LocalUsageError(f"{stream} is split already, or a side output; split a map of it")
        for stream in streams:
            stream.node.select = select
        return SplitStream(self)

    # -- settings of the operator --------------------------------------------------------------------

    def set_parallelism(self, parallelism: int) -> DataStream:
        """How many subtasks the operator has."""
        self._operator().parallelism = _positive(parallelism)
        return self

    def start_new_chain(self) -> DataStream:
        """Do not share a task with the operator before."""
        self._operator().chaining = ChainingStrategy.HEAD
        return self

    def disable_chaining(self) -> DataStream:
        """Do not share a task with any operator."""
        self._operator().chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, name: str) -> DataStream:
        """Share slots only with operators of this group."""
        self._operator().slot_sharing_group = name
        return self

    def _operator(self) -> StreamNode:
        """The one operator whose results these are."""
        if self._others:
            raise LocalUsageError(f"a union of {self} has no operator of its own to set or ask")
        return self.node

    def _by(self, partitioner: Partitioner) -> DataStream:
        others = tuple(other._by(partitioner) for other in self._others)
        return replace(self, _partitioner=partitioner, _others=others)

    def _connect(self, target: StreamNode) -> None:
        self.environment.graph.add_edge(StreamEdge(self.node.id, target.id, self._partitioner, self._tag, self._names))


class SplitStream:
    """A stream whose records go to branches by name.

    Flink:   SplitStream (streaming.api.datastream), 1.11.4; removed in 1.12
    """

    def __init__(self, stream: DataStream) -> None:
        self._stream = stream

    def select(self, *names: str) -> DataStream:
        """The records sent to any of these branches."""
        if not names:
            raise LocalUsageError("select needs the name of at least one branch")
        first, *others = (
            DataStream(stream.environment, stream.node, None, None, names)
            for stream in (self._stream, *self._stream._others)
        )
        return first.union(*others)


class KeyedStream:
    """A stream whose records of one key meet in one subtask.

    Flink:   KeyedStream (streaming.api.datastream), 1.11.4
    """

    def __init__(
        self,
        stream: DataStream,
        key_of: Callable[[Any], Hashable],
        key_type: TypeSerializer | None,
    ) -> None:
        self.key_of = key_of
        self._stream = stream._by(Partitioner("hash", lambda _seed, groups: KeyGroupSelector(key_of, groups, key_type)))

    def window(self, windows: WindowAssigner) -> WindowedStream:
        """Put the records of each key into windows of event time."""
        return WindowedStream(self._stream, self.key_of, windows)

    def transform(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer = ANY) -> DataStream:
        """Any operator, behind the exchange by key."""
        return self._stream.transform(name, make_operator, type)

    def sink(self, function: Callable[[Any], object], name: str = "sink") -> DataStream:
        return self._stream.sink(function, name)


class WindowedStream:
    """Records by key and window, waiting to be aggregated.

    Flink:   WindowedStream (streaming.api.datastream), 1.11.4
    """

    def __init__(self, stream: DataStream, key_of: Callable[[Any], Hashable], windows: WindowAssigner) -> None:
        self._stream = stream
        self._key_of = key_of
        self._windows = windows
        self._trigger: Trigger | None = None
        self._lateness_ms = 0

    def trigger(self, trigger: Trigger) -> WindowedStream:
        """Let `trigger` say when a window gives its result; without one it does at its end."""
        self._trigger = trigger
        return self

    def allowed_lateness(self, lateness_ms: int) -> WindowedStream:
        """Keep windows for so long behind their end: what comes meanwhile makes them give a new result."""
        self._lateness_ms = lateness_ms
        return self

    def aggregate(
        self, function: AggregateFunction[Any], name: str = "window", type: TypeSerializer = ANY
    ) -> DataStream:
        """`(key, start_ms, end_ms, result)` for each window when it fires, by default when it is complete.

        Raises:
            LocalUsageError: a lateness that is none, or session windows and a function without `merge`.
        """
        # The parts and not `self`, which would take the job along, sinks and all.
        make = partial(WindowOperator, self._key_of, self._windows, function, self._trigger, self._lateness_ms)
        make()  # what cannot be is refused now
        return self._stream.transform(name, make, type)


def _positive(parallelism: int) -> int:
    is_number = isinstance(parallelism, int) and not isinstance(parallelism, bool)
    if not is_number or parallelism < 1:
        raise LocalUsageError(f"a parallelism of {parallelism!r} is no parallelism; use 1 or more")
    return parallelism
