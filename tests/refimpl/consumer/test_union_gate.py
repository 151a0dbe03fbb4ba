"""Several gates read as one: each exchange has the same turn, however many channels it has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from refimpl.config import Config
from refimpl.consumer import BufferOrEvent, InputGate, LocalInputChannel, UnionInputGate
from refimpl.job import StreamEnvironment
from refimpl.job.deployment import Deployment
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ResultPartition
from refimpl.records import CheckpointBarrier, EndOfPartition


class Bench:
    """Gates of so many channels each, read as one; a buffer holds the numbers of its gate and channel."""

    def __init__(self, widths: Sequence[int], kinds: tuple[type, type] = (InputGate, UnionInputGate)) -> None:
        self.home = NetworkBufferPool(256, 4)
        self.partitions = [
            ResultPartition(f"map-{gate}", width, LocalBufferPool(self.home, 1, num_channels=width), Config())
            for gate, width in enumerate(widths)
        ]
        self.num_ready = 0
        one, many = kinds
        gates = [
            one("sink-0", [LocalInputChannel(i, sub.view) for i, sub in enumerate(partition.subpartitions)])
            for partition in self.partitions
        ]
        self.gate = many("sink-0", gates, on_ready=self.on_ready)
        self.gate.open()

    def on_ready(self) -> None:
        self.num_ready += 1

    def fill(self, gate: int, channel: int, count: int = 1) -> None:
        partition = self.partitions[gate]
        for _ in range(count):
            builder = partition.request_builder(channel)
            assert builder is not None
            partition.add(builder.create_consumer(), channel)
            builder.append_and_commit(bytes((gate, channel)) * 2)
            builder.finish()
        partition.flush_all()

    def poll(self) -> tuple[int, tuple[int, int] | str, bool] | None:
        arrived: BufferOrEvent | None = self.gate.poll_next()
        if arrived is None:
            return None
        if arrived.buffer is None:
            return arrived.channel_index, type(arrived.event).__name__, arrived.is_more_available
        gate, channel = bytes(arrived.buffer.data)[:2]
        arrived.buffer.recycle()
        return arrived.channel_index, (gate, channel), arrived.is_more_available


def test_each_exchange_has_the_same_turn_however_many_channels_it_has() -> None:
    """Flink: `UnionInputGateTest#testBasicGetNextLogic` (P97), `InputGateFairnessTest`."""
    bench = Bench([3, 1])
    for channel in range(3):
        bench.fill(0, channel, 2)
    bench.fill(1, 0, 6)
    order = [bench.poll() for _ in range(12)]
    assert [index for index, _, _ in order] == [0, 3, 1, 3, 2, 3] * 2
    assert [is_more for _, _, is_more in order] == [True] * 11 + [False]
    assert bench.poll() is None


def test_a_channel_is_numbered_through_all_gates() -> None:
    bench = Bench([2, 3, 1])
    numbers = {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 3, (1, 2): 4, (2, 0): 5}
    for gate, channel in numbers:
        bench.fill(gate, channel)
    arrived = {taken: index for index, taken, _ in iter(bench.poll, None)}
    assert arrived == numbers
    assert [channel.view.subpartition for channel in bench.gate.channels] == [
        sub for partition in bench.partitions for sub in partition.subpartitions
    ]


def test_a_gate_stands_in_line_once_and_the_first_one_tells() -> None:
    bench = Bench([2, 2])
    bench.fill(0, 0)
    bench.fill(0, 1)
    bench.fill(1, 0)
    assert (bench.num_ready, bench.gate.is_ready) == (1, True)
    assert [bench.poll() for _ in range(4)] == [(0, (0, 0), True), (2, (1, 0), True), (1, (0, 1), False), None]
    bench.fill(1, 1)
    assert (bench.num_ready, bench.gate.is_ready) == (2, True)


def test_it_is_finished_when_every_channel_of_every_gate_has_ended() -> None:
    """Flink: `UnionInputGateTest`."""
    bench = Bench([1, 2])
    bench.partitions[0].finish()
    assert (bench.poll(), bench.gate.is_finished) == ((0, EndOfPartition.__name__, False), False)
    bench.partitions[1].finish()
    assert [bench.poll(), bench.poll()] == [
        (1, EndOfPartition.__name__, True),
        (2, EndOfPartition.__name__, False),
    ]
    assert bench.gate.is_finished


def test_a_channel_behind_its_barrier_goes_on_when_it_is_resumed_by_its_number_here() -> None:
    bench = Bench([1, 1])
    bench.partitions[1].broadcast_event(CheckpointBarrier(1, 0))
    bench.fill(1, 0)
    assert [bench.poll(), bench.poll()] == [(1, "CheckpointBarrier", False), None]
    bench.gate.channels[1].resume()
    assert bench.poll() == (1, (1, 0), False)


def test_a_released_gate_reads_nothing() -> None:
    bench = Bench([1, 1])
    bench.fill(0, 0)
    bench.fill(1, 0)
    bench.gate.release()
    assert (bench.poll(), bench.gate.is_ready) == (None, False)
    assert all(channel.is_released for gate in bench.gate.gates for channel in gate.snapshot().channels)


@pytest.mark.parametrize("num_task_managers", [1, 2])
def test_a_task_has_a_gate_for_each_edge_that_leads_to_it(num_task_managers: int) -> None:
    """And for each with remote channels a pool, from which these may have floating buffers."""
    environment = StreamEnvironment(Config(num_buffers=256, segment_size_bytes=64, floating_buffers_per_gate=3))
    wide = environment.from_collection(range(4), "wide").rebalance().map(abs, "each").set_parallelism(2)
    narrow = environment.from_collection(range(9), "narrow")
    wide.union(narrow, wide).rebalance().map(abs, "both").set_parallelism(2).sink(print)
    num_remote_gates = 0
    for number in range(num_task_managers):
        deployment = Deployment(environment.execution_graph(num_task_managers), number)
        for vertex, task in deployment.vertices_and_tasks:
            if not vertex.name.startswith("both"):
                continue
            gates = task.input.gate.gates
            assert [len(gate.channels) for gate in gates] == [2, 1, 2]
            assert {gate.name for gate in gates} == {task.name}
            assert all(gate in deployment.gates for gate in gates)
            pools = {pool.name: pool.snapshot() for pool in deployment.shuffle.gate_pools if task.name in pool.name}
            remote = [f"{task.name} #{n} (floating)" for n, gate in enumerate(gates, 1) if is_remote(gate)]
            assert list(pools) == remote
            assert all(pool.num_max == 3 for pool in pools.values())
            num_remote_gates += len(remote)
        deployment.close()
    assert (num_remote_gates > 0) == (num_task_managers > 1)


def is_remote(gate: InputGate) -> bool:
    return any(channel.snapshot().receiver for channel in gate.channels)
