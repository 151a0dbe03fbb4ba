"""The queues and gates of one TaskManager: what its tasks write into and read from.

Every output of a subtask here is a result partition, readable by tasks here and, over connections,
by tasks elsewhere. Every input is a gate for each edge, with a channel for each producer: a local channel reads the
producer's queue, a remote one has buffers of its own and waits for a driver to connect it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from refimpl.config import Config
from refimpl.consumer.channel import InputChannel
from refimpl.consumer.connected_channel import ConnectedChannel
from refimpl.consumer.input_gate import InputGate
from refimpl.consumer.two_inputs import FIRST, SECOND
from refimpl.consumer.union_gate import UnionInputGate
from refimpl.errors import BuffersStillOutError, LocalUsageError, PartitionNotFoundError
from refimpl.exchange.consumer_connection import ConsumerConnection
from refimpl.exchange.messages import ResultPartitionId
from refimpl.exchange.producer_connection import ProducerConnection
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.execution_graph import ChannelPlan, ExecutionGraph, ExecutionVertex
from refimpl.job.makers import Makers
from refimpl.memory.local_pool import LocalBufferPool
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.memory.segment import MemorySegment
from refimpl.producer.blocking_partition import BlockingResultPartition
from refimpl.producer.blocking_subpartition import BoundedBlockingView
from refimpl.producer.buffer_writing import BufferWritingResultPartition, max_buffers, required_buffers
from refimpl.producer.subpartition import PipelinedSubpartition
from refimpl.producer.subpartition_queue import SubpartitionQueue
from refimpl.producer.subpartition_view import PipelinedSubpartitionView
from refimpl.trace import Trace, noting

__all__ = ["ConnectionId", "RemoteRead", "ShuffleEnvironment", "pool_of"]


@dataclass(frozen=True, slots=True)
class ConnectionId:
    """Names one of the connections of a TaskManager: whom it reads from, and there which exchange only.

    And for which run and which generation of its graph: deployments share no connection, since one that
    ends takes its connections along.

    Flink:   ConnectionID (runtime.io.network), 1.11.4; there `connectionIndex`
    Differs: there all jobs share a connection, which ends when its last channel has.
    """

    task_manager: int
    exchange: int | None = None
    run_id: bytes = bytes(8)
    generation: int = 0

    def __str__(self) -> str:
        where = f"tm-{self.task_manager}"
        return where if self.exchange is None else f"exchange {self.exchange} of {where}"


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """A channel here, and the subpartition elsewhere that a driver is to connect it to."""

    channel: ConnectedChannel
    partition_id: ResultPartitionId
    subpartition: int


class ShuffleEnvironment:
    """The network memory of one TaskManager, and all that one execution graph makes of it.

    `pool` is handed in by whoever has several graphs on one TaskManager, and is not closed with this one; so are
    `results`, the blocking ones, which outlive whatever has written them.

    `remote_reads` lists, by connection, what is to be read through it. With credits one connection joins
    two TaskManagers. Without, each exchange has its own, lest one wait behind the data of another, which
    waits for the first.

    Flink:   NettyShuffleEnvironment (runtime.io.network), 1.11.4
    Differs: a gate has a pool only if it has remote channels, for these alone; Flink's always has one,
             of at least 1 buffer. 1.11.4 has a connection for each result, with credits or without; here
             it is one for all with credits, as in 2.x, and one for each exchange without. Nobody sends
             events upstream.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None = None,
        makers: Makers | None = None,
        pool: NetworkBufferPool | None = None,
        results: BlockingResults | None = None,
    ) -> None:
        self.graph = graph
        self.makers = makers or Makers()
        self.trace = trace
        self.pool = pool_of(self.config, trace) if pool is None else pool
        self._owns_pool = pool is None
        _check_pool(self.pool, self.config)
        self.results = BlockingResults(self.config) if results is None else results
        self.partitions: dict[tuple[int, int], BufferWritingResultPartition] = {}
        self.gates: list[InputGate] = []
        self.gate_pools: list[LocalBufferPool] = []
        self.remote_reads: defaultdict[ConnectionId, list[RemoteRead]] = defaultdict(list)
        self.consumer_connections: list[ConsumerConnection] = []
        self.producer_connections: list[ProducerConnection] = []
        self._partition_by_id: dict[ResultPartitionId, BufferWritingResultPartition] = {}

    @property
    def config(self) -> Config:
        return self.graph.job.config

    @property
    def remote_channels(self) -> list[ConnectedChannel]:
        """The channels that read from other TaskManagers."""
        return [read.channel for reads in self.remote_reads.values() for read in reads]

    def create_partition(
        self, edge: int, producer: ExecutionVertex, rules: type[SubpartitionQueue] = PipelinedSubpartition
    ) -> BufferWritingResultPartition:
        """The output of one subtask for one edge of the job, with subpartitions of class `rules` where it is pipelined.

        Raises:
            InsufficientBuffersError: the pool cannot promise what the output requires.
            SluiceError: there is no place to keep a blocking one.
        """
        num_channels = len(self.graph.targets(edge, producer.subtask))
        name = self.graph.partition_name(edge, producer.subtask)
        required, most = required_buffers(num_channels), max_buffers(num_channels, self.config)
        pool = self.makers.output_pool(self.pool, required, most, name, num_channels, self.config)
        partition_id = self.graph.partition_id(edge, producer)
        partition: BufferWritingResultPartition
        if self.graph.job.edges[edge].is_blocking:
            partition = self._begin_result(partition_id, name, num_channels, pool)
        else:
            partition = self.makers.partition(name, num_channels, pool, self.config, self.trace)
        assert (edge, producer.subtask) not in self.partitions, f"{name} has been made before"
        self.partitions[edge, producer.subtask] = partition  # from here on it is closed with the rest
        partition.use(rules)
        self._partition_by_id[partition_id] = partition
        if self.trace is not None:
            self.trace.note("output", name, peer=producer.name)()
        return partition

    def create_input(self, consumer: ExecutionVertex) -> InputGate | UnionInputGate:
        """What one subtask reads: the gate of the edge to it, or all of them; the partitions read here must be made.

        Of a task with two inputs it is a union of two: whatever the first reads, and whatever the second.

        Raises:
            InsufficientBuffersError: the pool cannot promise what its remote channels require.
            BuffersStillOutError: it can, but others still have what they are to give up for them.
        """
        inputs = self.graph.inputs(consumer)
        if len(inputs) == 1:
            return self._create_gate(consumer.name, consumer, inputs[0])
        names = [f"{consumer.name} #{number}" for number in range(1, len(inputs) + 1)]
        gates = [self._create_gate(name, consumer, plans) for name, plans in zip(names, inputs, strict=True)]
        edges = self.graph.job.in_edges(consumer.vertex.id)
        of_sides = [
            [gate for gate, edge in zip(gates, edges, strict=True) if edge.edge.side == side]
            for side in (FIRST, SECOND)
        ]
        if all(of_sides):
            return self._united(consumer, [self._united(consumer, of_side) for of_side in of_sides])
        return self._united(consumer, gates)

    def _united(
        self, consumer: ExecutionVertex, gates: Sequence[InputGate | UnionInputGate]
    ) -> InputGate | UnionInputGate:
        return gates[0] if len(gates) == 1 else self.makers.union_gate(consumer.name, gates)

    def _create_gate(self, name: str, consumer: ExecutionVertex, plans: Sequence[ChannelPlan]) -> InputGate:
        num_remote = sum(plan.is_remote for plan in plans)
        pool = self._gate_pool(name, num_remote) if num_remote else None
        channels: list[InputChannel] = []
        for index, plan in enumerate(plans):
            if self.trace is not None:
                kind = "remote channel" if plan.is_remote else "local channel"
                read = self.graph.partition_name(plan.edge, plan.producer.subtask)
                self.trace.note(kind, read, plan.subpartition, consumer.name)()
            if pool is not None and plan.is_remote:
                channels.append(self._remote_channel(index, plan, pool))
            else:
                partition = self._local(plan)
                channels.append(self.makers.local_channel(index, partition.create_view(plan.subpartition)))
        codec, most_bytes = self.results.codec, self.config.segment_size_bytes
        gate = self.makers.gate(consumer.name, channels, self.config.flink_version, None, codec, most_bytes)
        self.gates.append(gate)
        return gate

    def _gate_pool(self, name: str, num_remote: int) -> LocalBufferPool:
        """The buffers that the remote channels of one gate share: with credits the floating ones.

        Flink:   SingleInputGateFactory.createBufferPoolFactory, 1.11.4; without credits
                 NetworkEnvironment.setupInputGate, 1.5
        """
        required, most, kind = num_remote, max_buffers(num_remote, self.config), "input"
        if self.config.credit_based:
            most, kind = self.config.floating_buffers_per_gate, "floating"
            required = min(1, most)
        pool = LocalBufferPool(self.pool, required, most, f"{name} ({kind})")
        self.gate_pools.append(pool)
        return pool

    # -- connections -------------------------------------------------------------------------------

    def connect(self, connection_id: ConnectionId, name: str) -> ConsumerConnection:
        """Our end of that connection, with everything that is read through it asked for."""
        connection = self.makers.consumer_connection(self.config, name)
        for read in self.remote_reads[connection_id]:
            connection.request(read.channel, read.partition_id, read.subpartition)
        self.consumer_connections.append(connection)
        return connection

    def accept(self, name: str) -> ProducerConnection:
        """Our end of a connection through which another TaskManager reads here."""
        connection = self.makers.producer_connection(self, self.config, name, self.trace)
        self.producer_connections.append(connection)
        return connection

    def find(
        self, partition: ResultPartitionId, subpartition: int
    ) -> PipelinedSubpartitionView | BoundedBlockingView | None:
        """For the connections of other TaskManagers: what they may read here.

        Raises:
            IndexError: the partition has no such subpartition.
            LocalUsageError: it is a blocking one, and not complete.
        """
        found = self._partition_by_id.get(partition) or self.results.find(partition)
        if found is None:
            return None
        if not 0 <= subpartition < len(found.subpartitions):
            raise IndexError(subpartition)
        is_released = found.subpartitions[subpartition].is_released
        return None if is_released else found.create_view(subpartition)

    def forget(self, connection: ProducerConnection) -> None:
        """The transport of `connection` is gone: its readers leave and its buffers come home."""
        connection.connection_lost()
        self.producer_connections.remove(connection)

    def close(self) -> None:
        """Give everything back: what channels and queues hold, then the pools.

        No transport may be reading lent memory any more.
        """
        with ExitStack() as last_first:  # one that cannot be closed does not keep the others open
            if self._owns_pool:
                last_first.callback(self.pool.destroy)
            for pool in self.gate_pools:
                last_first.callback(pool.destroy)
            for partition_id, partition in self._partition_by_id.items():
                last_first.callback(self._leave, partition_id, partition)
            for channel in self.remote_channels:  # those of a gate that could not be made
                last_first.callback(channel.release)
            for gate in self.gates:
                last_first.callback(gate.release)
            for connection in self.producer_connections:
                last_first.callback(connection.connection_lost)

    def _begin_result(
        self, partition_id: ResultPartitionId, name: str, num_channels: int, pool: LocalBufferPool
    ) -> BlockingResultPartition:
        try:
            return self.results.create(partition_id, name, num_channels, pool)
        except BaseException:
            pool.destroy()
            raise

    def _leave(self, partition_id: ResultPartitionId, partition: BufferWritingResultPartition) -> None:
        """The writer of an output is gone: what is complete, and is read later, stays; all else goes."""
        if isinstance(partition, BlockingResultPartition) and partition.is_finished:
            partition.pool.destroy()
        else:
            self.results.release(partition_id)
            partition.release()

    def _local(self, plan: ChannelPlan) -> BufferWritingResultPartition:
        """The partition of this TaskManager that a channel reads.

        Raises:
            PartitionNotFoundError: it is a blocking one, and is not here any more.
        """
        found = self.partitions.get((plan.edge, plan.producer.subtask)) or self.results.find(plan.partition_id)
        if found is None:
            raise PartitionNotFoundError(self.graph.partition_name(plan.edge, plan.producer.subtask), 1)
        return found

    def _remote_channel(self, index: int, plan: ChannelPlan, pool: LocalBufferPool) -> ConnectedChannel:
        name = self.graph.partition_name(plan.edge, plan.producer.subtask)
        exclusive: Sequence[MemorySegment] = ()
        if self.config.credit_based:
            taken = self.pool.request_unpooled(self.config.buffers_per_channel, plan.consumer.name)
            if taken is None:
                raise BuffersStillOutError(plan.consumer.name, self.config.buffers_per_channel, self.pool.num_free)
            exclusive = taken
        channel = self.makers.remote_channel(
            index,
            plan.receiver,
            f"{name}[{plan.subpartition}]",
            exclusive,
            self.pool,
            pool,
            self.config,
            noting(self.trace, "receive", name, plan.subpartition),
            noting(self.trace, "take", name, plan.subpartition),
        )
        read = RemoteRead(channel, plan.partition_id, plan.subpartition)
        exchange = None if self.config.credit_based else plan.edge
        connection_id = ConnectionId(plan.producer.task_manager, exchange, self.graph.run_id, self.graph.generation)
        self.remote_reads[connection_id].append(read)
        return channel


def pool_of(config: Config, trace: Trace | None) -> NetworkBufferPool:
    """The network memory of a TaskManager, as `config` wants it."""
    return NetworkBufferPool(config.num_buffers, config.segment_size_bytes, config.flink_version, trace)


def _check_pool(pool: NetworkBufferPool, config: Config) -> None:
    found, wanted = (pool.segment_size_bytes, pool.version), (config.segment_size_bytes, config.flink_version)
    if found != wanted:
        raise LocalUsageError(
            f"the pool of the TaskManager has segments of {found[0]} B and the rules of Flink {found[1].value}; "
            f"the job wants {wanted[0]} B and {wanted[1].value}"
        )
