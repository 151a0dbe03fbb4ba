"""The queues and gates of one TaskManager: what can be found there, who may leave, and that all comes home."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import LocalInputChannel, RemoteInputChannel
from refimpl.errors import InsufficientBuffersError, LocalUsageError
from refimpl.exchange import (
    HEADER_BYTES,
    CloseRequest,
    ErrorResponse,
    FrameDecoder,
    PartitionRequest,
    ProducerConnection,
    ResultPartitionId,
    decode,
)
from refimpl.job import (
    ConnectionId,
    Deployment,
    ExecutionGraph,
    ExecutionVertex,
    ShuffleEnvironment,
    StreamEnvironment,
)
from refimpl.memory import LocalBufferPool
from refimpl.task import IterableReader

CONFIG = Config(segment_size_bytes=16, num_buffers=60, buffers_per_channel=2, floating_buffers_per_gate=3)


def graph_of(config: Config = CONFIG, num_task_managers: int = 2, run_id: bytes = bytes(8)) -> ExecutionGraph:
    """Two sources, each with a channel to two sinks: source-0 and sink-0 on tm-0, source-1 and sink-1 on tm-1."""
    environment = StreamEnvironment(config, parallelism=2)
    environment.source(lambda _i, _n: IterableReader([])).rebalance().sink(print)
    return environment.execution_graph(num_task_managers, run_id)


def subtask(graph: ExecutionGraph, name: str) -> ExecutionVertex:
    return next(execution for execution in graph.vertices if execution.name == name)


def part(number: int, graph: ExecutionGraph | None = None) -> ShuffleEnvironment:
    """Everything of one TaskManager."""
    graph = graph or graph_of()
    shuffle = ShuffleEnvironment(graph)
    for execution in graph.vertices:
        if execution.task_manager == number and execution.vertex.name == "source":
            shuffle.create_partition(0, execution)
    for execution in graph.vertices:
        if execution.task_manager == number and execution.vertex.name == "sink":
            shuffle.create_input(execution)
    return shuffle


def fill(shuffle: ShuffleEnvironment, source: int) -> None:
    """A full buffer for each reader of one source."""
    for channel, subpartition in enumerate(shuffle.partitions[0, source].subpartitions):
        builder = shuffle.partitions[0, source].request_builder(channel)
        assert builder is not None
        subpartition.add(builder.create_consumer())
        builder.append(memoryview(b"sixteen bytes ok"))
        builder.commit()
        builder.finish()
    shuffle.partitions[0, source].flush_all()


def ask(connection: ProducerConnection, consumer: ShuffleEnvironment, task_manager: int) -> None:
    connection.receive_data(consumer.connect(ConnectionId(task_manager), "to the producer").data_to_send())


# -- what is made ----------------------------------------------------------------------------------


def test_a_gate_reads_a_queue_of_its_own_task_manager_directly_and_others_through_buffers_of_its_own() -> None:
    shuffle = part(0)
    local, remote = shuffle.gates[0].channels
    assert isinstance(local, LocalInputChannel)
    assert local.view.subpartition is shuffle.partitions[0, 0].subpartitions[0]
    assert isinstance(remote, RemoteInputChannel)
    assert len(remote.buffers.exclusive_buffers) == remote.initial_credit == 2
    assert shuffle.remote_channels == [remote]
    [read] = shuffle.remote_reads[ConnectionId(1)]
    assert (read.channel, read.subpartition) == (remote, 0)
    assert read.partition_id == shuffle.graph.partition_id(0, subtask(shuffle.graph, "source-1"))
    assert [pool.name for pool in shuffle.gate_pools] == ["sink-0 (floating)"]


def test_a_gate_without_remote_channels_takes_no_buffers() -> None:
    shuffle = part(0, graph_of(num_task_managers=1))
    assert (shuffle.gate_pools, shuffle.remote_channels) == ([], [])
    assert shuffle.pool.num_free == CONFIG.num_buffers


def test_without_credits_the_gate_has_one_pool_and_its_channels_no_buffers() -> None:
    shuffle = part(0, graph_of(replace(CONFIG, credit_based=False)))
    [channel] = shuffle.remote_channels
    assert (channel.initial_credit, channel.buffers.exclusive_buffers) == (0, [])
    [pool] = shuffle.gate_pools
    assert (pool.name, pool.num_required, pool.num_max) == ("sink-0 (input)", 1, 2 + 3)


@pytest.mark.parametrize(("num_buffers", "owner"), [(2, "source-0 → sink"), (5, "sink-0"), (3, "sink-0 (floating)")])
def test_too_few_buffers_name_who_went_without(num_buffers: int, owner: str) -> None:
    """The output needs 3 of them, the gate one that floats, its channel 2."""
    graph = graph_of(replace(CONFIG, num_buffers=num_buffers))
    with pytest.raises(InsufficientBuffersError) as caught:
        part(0, graph)
    assert caught.value.owner == owner


# -- what others may read here ---------------------------------------------------------------------


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_subpartition_is_found_by_the_name_it_has_on_the_wire(version: FlinkVersion) -> None:
    graph = graph_of(replace(CONFIG, flink_version=version))
    here, there = part(0, graph), part(1, graph_of(replace(CONFIG, flink_version=version)))
    for read in there.remote_reads[ConnectionId(0)]:
        assert here.find(read.partition_id, read.subpartition) is here.partitions[0, 0].create_view(1)
        assert there.find(read.partition_id, read.subpartition) is None  # it lives elsewhere


def test_a_partition_of_another_run_is_not_there() -> None:
    here, there = part(0, graph_of(run_id=b"run no 1")), part(1, graph_of(run_id=b"run no 2"))
    [[read]] = there.remote_reads.values()
    assert here.find(read.partition_id, read.subpartition) is None


@pytest.mark.parametrize("version", FlinkVersion)
@pytest.mark.parametrize("is_reader_old", [True, False])
def test_a_reader_never_gets_the_partition_of_another_attempt(version: FlinkVersion, is_reader_old: bool) -> None:
    """Over the wire: whoever asks for what another attempt produces is told that it is not there, and keeps asking."""
    old = graph_of(replace(CONFIG, flink_version=version))
    new = old.restarted()
    reader, producer = (old, new) if is_reader_old else (new, old)
    here, there = part(0, producer), part(1, reader)
    [(connection_id, [read])] = there.remote_reads.items()
    connection, consumer = here.accept("tm-1 reads tm-0"), there.connect(connection_id, "tm-1 reads tm-0")
    fill(here, 0)
    connection.receive_data(consumer.data_to_send())
    responses = b"".join(connection.data_to_send())
    answer = decode(responses[8], memoryview(responses)[HEADER_BYTES:], version)
    assert isinstance(answer, ErrorResponse)
    assert answer.receiver == read.channel.receiver
    assert b"PartitionNotFoundException" in answer.error
    consumer.receive_data(responses)
    assert read.channel.snapshot().num_available == 0
    assert here.partitions[0, 0].subpartitions[1].num_queued == 1
    assert consumer.next_deadline(0.0) is not None  # to ask again
    # The reader of its own attempt gets it.
    own = part(1, producer)
    [(own_id, _reads)] = own.remote_reads.items()
    consumer = own.connect(own_id, "its own")
    connection.receive_data(consumer.data_to_send())
    consumer.receive_data(b"".join(connection.data_to_send()))
    assert own.remote_channels[0].snapshot().num_available == 1


@pytest.mark.parametrize("number", [-1, 2, 2**31 - 1])
def test_a_partition_that_is_there_has_no_other_subpartitions_than_its_own(number: int) -> None:
    """A negative one too: a list would answer from its end."""
    shuffle = part(0)
    name: ResultPartitionId = shuffle.graph.partition_id(0, subtask(shuffle.graph, "source-0"))
    with pytest.raises(IndexError, match=str(number)):
        shuffle.find(name, number)


# -- connections -----------------------------------------------------------------------------------


def test_a_connection_asks_for_everything_that_is_read_there() -> None:
    environment = StreamEnvironment(CONFIG, parallelism=2)
    source = environment.source(lambda _i, _n: IterableReader([])).slot_sharing_group("sources")
    source.rebalance().sink(print).slot_sharing_group("sinks")
    shuffle = part(1, environment.execution_graph(2))  # the sources on tm-0, the sinks on tm-1: four channels
    connection = shuffle.connect(ConnectionId(0), "tm-1 reads tm-0")
    asked = list(FrameDecoder(connection, 1_024).receive(connection.data_to_send()))
    assert asked == [
        PartitionRequest(read.partition_id, read.subpartition, read.subpartition, read.channel.receiver, 2)
        for read in shuffle.remote_reads[ConnectionId(0)]
    ]
    assert len(asked) == 4
    assert connection.name == "tm-1 reads tm-0"
    assert shuffle.consumer_connections == [connection]


def test_a_connection_to_a_task_manager_from_which_nothing_is_read_asks_for_nothing() -> None:
    assert part(0).connect(ConnectionId(7), "to nobody").data_to_send() == b""


def exchanges_between(has_credit: bool) -> StreamEnvironment:
    """Sources and maps on tm-0, sinks on tm-1, which read both."""
    environment = StreamEnvironment(replace(CONFIG, num_buffers=40, credit_based=has_credit))
    source = environment.source(lambda *_: IterableReader(range(200))).slot_sharing_group("sources")
    for name in ("first", "second"):
        mapped = source.rebalance().map(lambda n: n, name).slot_sharing_group("sources")
        mapped.rebalance().sink(print, f"{name} sink").slot_sharing_group("sinks")
    return environment


@pytest.mark.parametrize(("has_credit", "names"), [
    (True, ["tm-0"]), (False, ["exchange 1 of tm-0", "exchange 3 of tm-0"]),
])  # fmt: skip
def test_exchanges_share_a_connection_only_if_credit_keeps_them_apart(has_credit: bool, names: list[str]) -> None:
    environment = exchanges_between(has_credit)
    shuffle = Deployment(environment.execution_graph(2), 1).shuffle
    assert [str(each) for each in shuffle.remote_reads] == names
    assert sum(map(len, shuffle.remote_reads.values())) == 2


def test_whoever_is_forgotten_leaves_and_what_was_lent_to_it_comes_home() -> None:
    here, there = part(0), part(1)
    fill(here, 0)
    kept, gone = here.accept("kept"), here.accept("gone")
    ask(gone, there, 0)
    assert gone.data_to_send()  # the transport has it and has not written it
    assert len(gone.lent_buffers) == 1
    here.forget(gone)
    assert here.producer_connections == [kept]
    assert gone.is_closed
    assert gone.lent_buffers == ()
    assert here.partitions[0, 0].create_view(1).is_consumed
    assert not here.partitions[0, 0].create_view(0).is_consumed
    assert len(here.partitions[0, 0].pool.lent) == 1  # the other reader's buffer
    with pytest.raises(ValueError, match=r"list\.remove"):
        here.forget(gone)


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_credit", [True, False])
def test_after_closing_every_segment_is_home(has_credit: bool) -> None:
    """Queued, lent to a transport, received and not read, half received: in the middle of everything."""
    graph = graph_of(replace(CONFIG, credit_based=has_credit))
    here, there = part(0, graph), part(1, graph)
    fill(here, 0)
    fill(here, 0)
    connection = here.accept("tm-1 reads tm-0")
    [connection_id] = there.remote_reads
    consumer = there.connect(connection_id, "tm-1 reads tm-0")
    connection.receive_data(consumer.data_to_send())
    consumer.receive_data(b"".join(connection.data_to_send(1)))
    connection.data_sent()
    consumer.receive_data(b"".join(connection.data_to_send(1))[:-1])
    assert there.remote_channels[0].snapshot().num_available == 1
    assert (consumer.decoder.held_buffer is not None, len(connection.lent_buffers)) == (True, 1)
    for shuffle in (here, there):
        shuffle.close()
    # What a decoder holds is given up by whoever closes the transport.
    assert [len(each.pool.segments) - each.pool.num_free for each in (here, there)] == [0, 1]
    consumer.receive_end()
    assert there.pool.num_free == len(there.pool.segments)


def test_closing_tells_the_producer_that_its_reader_has_gone() -> None:
    shuffle = part(1)
    connection = shuffle.connect(ConnectionId(0), "tm-1 reads tm-0")
    connection.data_to_send()
    shuffle.close()
    assert list(FrameDecoder(connection, 1_024).receive(connection.data_to_send())) == [CloseRequest()]


def test_one_that_cannot_be_closed_does_not_keep_the_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffle = part(0)
    fill(shuffle, 0)

    def fail() -> None:
        raise RuntimeError("not this one")

    monkeypatch.setattr(shuffle.gates[0], "release", fail)
    with pytest.raises(RuntimeError, match="not this one"):
        shuffle.close()
    assert shuffle.partitions[0, 0].pool.is_destroyed
    assert [pool.is_destroyed for pool in shuffle.gate_pools] == [True]
    assert shuffle.partitions[0, 0].subpartitions[0].num_queued == 0
    with pytest.raises(LocalUsageError, match="destroyed"):
        LocalBufferPool(shuffle.pool, 1, 1, "too late")
