"""A stream and its words: what is done with each record, and which way records leave."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, overload

from refimpl.consumer.two_inputs import FIRST, SECOND
from refimpl.errors import LocalUsageError
from refimpl.job.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
    check_function,
    needs_keys,
    own_copy,
)
from refimpl.job.keyed_stream import KeyedStream
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
    checked_parallelism,
)
from refimpl.job.watermark_strategy import WatermarkStrategy
from refimpl.producer.selector import KeyGroupSelector
from refimpl.records.any_type import ANY
from refimpl.records.types import TypeSerializer
from refimpl.records.vectorized import Field
from refimpl.task.broadcast_states import MapStateDescriptor
from refimpl.task.co_operators import TwoInputOperator
from refimpl.task.operators import (
    FilterOperator,
    FlatMapOperator,
    MapOperator,
    Operator,
    SinkOperator,
    WatermarkOperator,
)
from refimpl.task.outputs import OutputTag
from refimpl.task.process_function import KeyedProcessFunction, ProcessFunction
from refimpl.task.process_operators import ProcessOperator
from refimpl.task.sink_operators import HeldBack, HeldSinkOperator, TransactionalSink, TwoPhaseSinkOperator
from refimpl.task.watermarks import IngestionTimeOperator, TimestampsAndWatermarksOperator

__all__ = ["DataStream", "SplitStream", "WrittenJob"]


class WrittenJob(Protocol):
    """The job a stream belongs to: its graph, and the parallelism of an operator that names none."""

    @property
    def graph(self) -> StreamGraph: ...

    @property
    def parallelism(self) -> int: ...


@dataclass(frozen=True, repr=False, eq=False)
class DataStream:
    """The results of one operator, and how they leave it; `_others` are united with it.

    Flink:   DataStream, SingleOutputStreamOperator (streaming.api.datastream), 1.11.4
    """

    environment: WrittenJob
    node: StreamNode
    _partitioner: Partitioner | None = None
    _tag: OutputTag | None = None
    _names: tuple[str, ...] = ()
    _others: tuple[DataStream, ...] = ()
    _breaks: bool = False

    def __repr__(self) -> str:
        return f"DataStream({self.node.name})"

    @property
    def value_type(self) -> TypeSerializer:
        """How the values of this stream are written."""
        return self.node.value_type if self._tag is None else self._tag.value_type

    def uid(self, uid: str) -> DataStream:
        """Let checkpoints know this operator by `uid` and not by its name.

        Flink:   SingleOutputStreamOperator.uid (streaming.api.datastream), 1.11.4

        Raises:
            LocalUsageError: it is empty.
        """
        if not uid:
            raise LocalUsageError("a uid has at least one character")
        self.node.given_uid = uid
        return self

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

    def process(self, function: ProcessFunction, name: str = "process", type: TypeSerializer = ANY) -> DataStream:
        """What `function` makes of each value.

        Raises:
            LocalUsageError: it is no such function, or needs keys, which this stream has not.
        """
        check_function(function, ProcessFunction, self)
        if isinstance(function, KeyedProcessFunction):
            raise needs_keys(function, self)
        return self.transform(name, lambda: ProcessOperator(own_copy(function)), type)

    def assign_timestamps(
        self,
        timestamp_of: Callable[[Any], int],
        max_out_of_orderness_ms: int,
        name: str = "timestamps",
        every: int = 64,
    ) -> DataStream:
        """Event time for each value, and a watermark after each `every` of them."""
        return self._timed(name, lambda: WatermarkOperator(timestamp_of, max_out_of_orderness_ms, every), True)

    def assign_timestamps_and_watermarks(self, strategy: WatermarkStrategy, name: str = "timestamps") -> DataStream:
        """Event time for each value, and watermarks, as `strategy` has them."""
        make = partial(TimestampsAndWatermarksOperator, strategy.timestamp_of, strategy.create_generator)
        return self._timed(name, make, is_held_back=strategy.idle_timeout_ms is None)

    def assign_ingestion_time(self, name: str = "ingestion") -> DataStream:
        """The processing time at which a value comes here as its event time; best right behind a source.

        Flink:   TimeCharacteristic.IngestionTime, 1.11.4
        """
        return self._timed(name, IngestionTimeOperator, is_held_back=False)

    def sink(self, function: Callable[[Any], object], name: str = "sink", exactly_once: bool = False) -> DataStream:
        """Call `function` with every value, in the process that runs the job.

        After a restart it is at least once: what came behind the checkpoint comes again. With `exactly_once` values
        are held back until a checkpoint that has them counts; at the end of a bounded job one more does. That needs a
        store, and holds for one run: another one that goes on from the same checkpoint gives what waits in it again.
        """
        if exactly_once:
            held = HeldBack(function, self.value_type)
            stream = self.transform(name, lambda: HeldSinkOperator(held.give, held.value_type), ANY)
            stream.node.held_sink = held
            return stream
        stream = self.transform(name, lambda: SinkOperator(function), ANY)
        stream.node.sink = function
        return stream

    def sink_to(self, sink: TransactionalSink, name: str = "sink") -> DataStream:
        """Write every value into `sink`, such as a `FileSink`, exactly once. That needs a store.

        Flink:   DataStream.addSink of a TwoPhaseCommitSinkFunction, 1.11.4; sinkTo since 1.12
        """
        value_type = self.value_type
        stream = self.transform(name, lambda: TwoPhaseSinkOperator(sink, value_type), ANY)
        stream.node.on_job_finished = sink.job_finished
        return stream

    def transform(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer = ANY) -> DataStream:
        """Any operator; each subtask gets its own from `make_operator`."""
        node = self._add(name, make_operator, type)
        self._enter(node)
        return DataStream(self.environment, node)

    def transform_with(
        self,
        second: DataStream,
        name: str,
        make_operator: Callable[[], TwoInputOperator],
        type: TypeSerializer = ANY,
    ) -> DataStream:
        """Any operator of two inputs, this stream and `second`; each subtask gets its own.

        Raises:
            LocalUsageError: `second` is a stream of another job.
        """
        if second.environment is not self.environment:
            raise LocalUsageError(f"{second} belongs to another environment")
        node = self._add(name, make_operator, type)
        self._enter(node)
        second._enter(node, SECOND)
        return DataStream(self.environment, node)

    # -- which way records leave ---------------------------------------------------------------------

    def key_by(
        self, key_of: Callable[[Any], Hashable] | int | str, key_type: TypeSerializer | None = None
    ) -> KeyedStream[DataStream]:
        """All records of one key to one subtask; `key_of` takes the key out of a value, or names its field."""
        key = key_of if callable(key_of) else Field(key_of)
        by_key = Partitioner("hash", lambda _seed, groups: KeyGroupSelector(key, groups, key_type))
        return KeyedStream(self._by(by_key), key, key_type)

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

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(self, *descriptors: MapStateDescriptor) -> BroadcastStream[DataStream]: ...

    def broadcast(self, *descriptors: MapStateDescriptor) -> DataStream | BroadcastStream[DataStream]:
        """To all subtasks, each record; with descriptors for `connect`, where each subtask keeps it in these maps."""
        to_all = self._by(BROADCAST)
        return BroadcastStream(to_all, descriptors) if descriptors else to_all

    def to_first(self) -> DataStream:
        """To the first subtask (Flink's `global`)."""
        return self._by(GLOBAL)

    def break_pipeline(self) -> DataStream:
        """Let these records be read when they are complete, in modes that heed it: the next operator starts then.

        Flink:   PartitionTransformation with ShuffleMode.BATCH (streaming.api.transformations), 1.11.4
        """
        return replace(self, _breaks=True, _others=tuple(replace(other, _breaks=True) for other in self._others))

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

    @overload
    def connect(self, other: DataStream) -> ConnectedStreams[DataStream]: ...

    @overload
    def connect(self, other: BroadcastStream[DataStream]) -> BroadcastConnectedStream[DataStream]: ...

    def connect(
        self, other: DataStream | BroadcastStream[DataStream]
    ) -> ConnectedStreams[DataStream] | BroadcastConnectedStream[DataStream]:
        """This stream and another, of any type, into one operator that treats the values of each in its own way.

        Raises:
            LocalUsageError: the other has a key, while this one has none.
        """
        if isinstance(other, BroadcastStream):
            return BroadcastConnectedStream(self, other)
        if not isinstance(other, DataStream):
            raise LocalUsageError(
                f"{self} has no key and {other} has one: records that belong together would not meet; "
                f"use key_by on both, or on neither"
            )
        return ConnectedStreams(self, other)

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
        self._operator().parallelism = checked_parallelism(parallelism)
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

    def _timed(self, name: str, make_operator: Callable[[], Operator], is_held_back: bool) -> DataStream:
        stream = self.transform(name, make_operator, self.value_type)
        stream.node.is_held_back = is_held_back
        return stream

    def _operator(self) -> StreamNode:
        """The one operator whose results these are."""
        if self._others:
            raise LocalUsageError(f"a union of {self} has no operator of its own to set or ask")
        return self.node

    def _by(self, partitioner: Partitioner) -> DataStream:
        others = tuple(other._by(partitioner) for other in self._others)
        return replace(self, _partitioner=partitioner, _others=others)

    def _add(self, name: str, make_operator: Callable[[], Operator], type: TypeSerializer) -> StreamNode:
        environment = self.environment
        node = StreamNode(environment.graph.next_id, name, environment.parallelism, make_operator, type)
        environment.graph.add_node(node)
        return node

    def _enter(self, target: StreamNode, side: int = FIRST) -> None:
        """Lead all that is united here to an operator, as its only input or one of two."""
        for stream in (self, *self._others):
            chosen = (stream._partitioner, stream._tag, stream._names)
            edge = StreamEdge(stream.node.id, target.id, *chosen, side, stream._breaks)
            self.environment.graph.add_edge(edge)


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
