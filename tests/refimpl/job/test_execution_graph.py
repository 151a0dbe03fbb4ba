"""Subtasks drawn out: who has a channel to whom, names, key groups, and the least number of buffers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.config import Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.errors import InsufficientBuffersError, LocalUsageError
from refimpl.exchange import HEADER_BYTES, PartitionRequest, decode, encode
from refimpl.job import MAX_ATTEMPT, ChannelPlan, ExecutionGraph, Placement, StreamEnvironment, channels_of

COUNTS = st.integers(1, 30)


def graph_of(environment: StreamEnvironment) -> ExecutionGraph:
    return environment.execution_graph()


@pytest.mark.parametrize(
    ("producers", "consumers", "channels"),
    [
        (1, 1, [[0]]),
        (3, 3, [[0], [1], [2]]),
        (1, 3, [[0, 1, 2]]),
        (2, 4, [[0, 1], [2, 3]]),
        (2, 5, [[0, 1, 2], [3, 4]]),
        (2, 3, [[0, 1], [2]]),
        (3, 1, [[0], [0], [0]]),
        (4, 2, [[0], [0], [1], [1]]),
        (3, 2, [[0], [1], [1]]),
        (5, 2, [[0], [0], [1], [1], [1]]),
    ],
)
def test_pointwise_each_subtask_has_channels_to_the_nearby_ones(
    producers: int, consumers: int, channels: list[list[int]]
) -> None:
    assert channels_of(producers, consumers, is_pointwise=True) == channels


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_all_to_all_is_every_pair(producers: int, consumers: int) -> None:
    assert channels_of(producers, consumers, is_pointwise=False) == [list(range(consumers))] * producers


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_pointwise_channels_are_even_and_leave_nobody_out(producers: int, consumers: int) -> None:
    channels = channels_of(producers, consumers, is_pointwise=True)
    pairs = [(producer, consumer) for producer, targets in enumerate(channels) for consumer in targets]
    assert pairs == sorted(set(pairs))
    assert len(pairs) == max(producers, consumers)
    for side, count in ((0, producers), (1, consumers)):
        degrees = [sum(pair[side] == subtask for pair in pairs) for subtask in range(count)]
        assert min(degrees) >= 1
        assert max(degrees) - min(degrees) <= 1
    assert [consumer for _, consumer in pairs] == sorted(consumer for _, consumer in pairs)


def test_every_subtask_has_a_vertex_named_after_its_chain() -> None:
    environment = StreamEnvironment(parallelism=2)
    environment.from_collection([1]).map(abs).filter(abs).sink(print).set_parallelism(1)
    assert [vertex.name for vertex in graph_of(environment).vertices] == [
        "source-0",
        "map → filter-0",
        "map → filter-1",
        "sink-0",
    ]


@pytest.mark.parametrize(
    ("route", "targets"),
    [("rebalance", [[0, 1, 2], [0, 1, 2]]), ("rescale", [[0, 1], [2]]), ("broadcast", [[0, 1, 2], [0, 1, 2]]),
     ("shuffle", [[0, 1, 2], [0, 1, 2]]), ("to_first", [[0, 1, 2], [0, 1, 2]])],
)  # fmt: skip
def test_only_rescale_and_forward_are_pointwise(route: str, targets: list[list[int]]) -> None:
    environment = StreamEnvironment(parallelism=2)
    source = environment.source(lambda _i, _n: iter(()))
    getattr(source, route)().map(abs).set_parallelism(3)
    graph = graph_of(environment)
    assert len(graph.job.edges) == 1
    assert [graph.targets(0, subtask) for subtask in range(2)] == targets
    forward = StreamEnvironment(Config(chaining=False), parallelism=3)
    forward.source(lambda _i, _n: iter(())).map(abs)
    graph = graph_of(forward)
    assert [graph.targets(0, subtask) for subtask in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize(("configured", "groups"), [(None, [128, 256]), (100, [100, 100])])
def test_key_groups_are_configured_or_follow_from_the_parallelism(configured: int | None, groups: list[int]) -> None:
    environment = StreamEnvironment(Config(max_parallelism=configured))
    environment.from_collection([1]).map(abs).set_parallelism(90)
    graph = graph_of(environment)
    assert [graph.max_parallelism(vertex) for vertex in graph.job.vertices.values()] == groups


def simple(num_buffers: int) -> StreamEnvironment:
    """3 sources, each with a channel to 2 maps; each map with one to 1 sink."""
    environment = StreamEnvironment(Config(num_buffers=num_buffers, segment_size_bytes=16), parallelism=2)
    source = environment.source(lambda _i, _n: Empty(), parallelism=3)
    source.rebalance().map(abs).rescale().sink(print).set_parallelism(1)
    return environment


class Empty:
    def read(self, max_records: int) -> None:
        return None

    def close(self) -> None: ...


def test_the_least_number_of_buffers_starts_the_job_and_one_less_does_not() -> None:
    """A buffer for each channel of each output, and one more."""
    least = graph_of(simple(99)).num_required_buffers
    assert least == 3 * (2 + 1) + 2 * (1 + 1)
    with Simulation(simple(least)) as simulation:
        simulation.run()
    with pytest.raises(InsufficientBuffersError) as caught:
        Simulation(simple(least - 1))
    assert (caught.value.num_free, caught.value.num_total) == (1, least - 1)


@pytest.mark.parametrize("has_credit", [True, False])
@pytest.mark.parametrize("width", [2, 3])
def test_the_least_number_of_buffers_starts_the_job_on_several_task_managers(width: int, has_credit: bool) -> None:
    """As above; and for what is read from elsewhere exclusive buffers and one that floats, or one for each channel."""
    options = replace(simple(99).config, buffers_per_channel=3, credit_based=has_credit)

    def job(num_buffers: int) -> StreamEnvironment:
        environment = simple(num_buffers)
        environment.config = replace(options, num_buffers=num_buffers)
        return environment

    graph = job(99).execution_graph(width)
    inputs = [sum(plan.is_remote for plans in graph.inputs(consumer) for plan in plans) for consumer in graph.vertices]
    each = 3 if has_credit else 1
    floating = 1 if has_credit else 0
    by_hand = [0] * width
    for consumer, num_remote in zip(graph.vertices, inputs, strict=True):
        num_outputs = {"source": 2 + 1, "map": 1 + 1, "sink": 0}[consumer.vertex.name]
        by_hand[consumer.task_manager] += num_outputs + num_remote * each + (floating if num_remote else 0)
    assert graph.num_required_buffers == max(by_hand)
    with Simulation(job(max(by_hand)), num_task_managers=width) as simulation:
        simulation.run()
    with pytest.raises(InsufficientBuffersError) as caught:
        Simulation(job(max(by_hand) - 1), num_task_managers=width)
    assert caught.value.num_total == max(by_hand) - 1


# -- names on the wire -----------------------------------------------------------------------------


def several_exchanges(version: FlinkVersion) -> StreamEnvironment:
    """Two sources into one map, all to all; the map into two sinks; every parallelism above 1."""
    environment = StreamEnvironment(Config(flink_version=version), parallelism=3)
    one, two = (environment.source(lambda _i, _n: Empty(), name, parallelism=2) for name in ("one", "two"))
    mapped = one.union(two).rebalance().map(abs)
    mapped.rebalance().sink(print, "left").set_parallelism(2)
    mapped.broadcast().sink(print, "right")
    return environment


def plans_of(graph: ExecutionGraph) -> list[ChannelPlan]:
    return [plan for consumer in graph.vertices for plans in graph.inputs(consumer) for plan in plans]


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_partition_and_a_channel_have_a_name_of_their_own(version: FlinkVersion) -> None:
    graph = several_exchanges(version).execution_graph(3)
    plans = plans_of(graph)
    assert len(plans) == 2 * (2 * 3) + 3 * 2 + 3 * 3
    assert len({plan.receiver for plan in plans}) == len(plans)
    outputs = {(plan.edge, plan.producer.subtask): plan.partition_id for plan in plans}
    assert len(set(outputs.values())) == len(outputs) == 2 * 2 + 3 + 3
    assert len({(plan.partition_id, plan.subpartition) for plan in plans}) == len(plans)


@pytest.mark.parametrize("version", FlinkVersion)
def test_every_task_manager_comes_to_the_same_names_whatever_the_placement(version: FlinkVersion) -> None:
    """Each makes its own graph of the job; and where a subtask runs changes no name."""
    one, same, alone = (several_exchanges(version).execution_graph(width) for width in (3, 3, 1))
    for plan, as_elsewhere, as_if_alone in zip(plans_of(one), plans_of(same), plans_of(alone), strict=True):
        names = (plan.edge, plan.subpartition, plan.partition_id, plan.receiver)
        for other in (as_elsewhere, as_if_alone):
            assert (other.edge, other.subpartition, other.partition_id, other.receiver) == names
    assert {plan.is_remote for plan in plans_of(one)} == {True, False}
    assert {plan.is_remote for plan in plans_of(alone)} == {False}


@pytest.mark.parametrize("version", FlinkVersion)
def test_another_run_has_other_names(version: FlinkVersion) -> None:
    job = several_exchanges(version)
    first, second = (plans_of(job.execution_graph(2, run_id)) for run_id in (b"run no 1", b"run no 2"))
    assert not {plan.partition_id for plan in first} & {plan.partition_id for plan in second}
    assert not {plan.receiver for plan in first} & {plan.receiver for plan in second}


@pytest.mark.parametrize("version", FlinkVersion)
def test_names_survive_the_wire_of_either_version(version: FlinkVersion) -> None:
    graph = several_exchanges(version).execution_graph(3, b"run no 1")
    for plan in plans_of(graph):
        asked = PartitionRequest(plan.partition_id, plan.subpartition, plan.subpartition, plan.receiver, 2)
        frame = encode(asked, version)
        assert decode(frame[8], memoryview(frame)[HEADER_BYTES:], version) == asked


def test_the_producing_attempt_is_named_as_each_version_names_it() -> None:
    """1.11: one id. 2.x: the execution graph, the job vertex and the subtask."""
    old, new = (several_exchanges(version).execution_graph(2) for version in FlinkVersion)
    subtasks = [execution for execution in new.vertices if execution.vertex.name == "map"]
    vertex = subtasks[0].vertex.id
    edge = next(index for index, edge in enumerate(new.job.edges) if edge.source == vertex)
    in_2x = [new.partition_id(edge, execution).producer for execution in subtasks]
    assert len({producer.id for producer in in_2x}) == len({producer.vertex_id for producer in in_2x}) == 1
    assert [producer.subtask for producer in in_2x] == [0, 1, 2]
    in_1_11 = [old.partition_id(edge, execution).producer for execution in subtasks]
    assert len({producer.id for producer in in_1_11}) == 3
    assert {(producer.vertex_id, producer.subtask) for producer in in_1_11} == {(bytes(16), 0)}


# -- restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", FlinkVersion)
def test_a_restart_makes_another_graph_whose_names_are_all_new(version: FlinkVersion) -> None:
    before = several_exchanges(version).execution_graph(3, b"run no 1")
    plans = plans_of(before)
    seen_partitions, seen_receivers = {plan.partition_id for plan in plans}, {plan.receiver for plan in plans}
    graph = before
    for generation in range(1, 4):
        graph = graph.restarted()
        partitions = {plan.partition_id for plan in plans_of(graph)}
        receivers = {plan.receiver for plan in plans_of(graph)}
        assert (graph.generation, {each.attempt for each in graph.vertices}) == (generation, {generation})
        assert not partitions & seen_partitions
        assert not receivers & seen_receivers
        assert len(receivers) == len(plans)
        seen_partitions |= partitions
        seen_receivers |= receivers
    assert plans_of(before) == plans
    assert (before.generation, {each.attempt for each in before.vertices}) == (0, {0})


@pytest.mark.parametrize("version", FlinkVersion)
def test_what_is_not_restarted_keeps_its_names(version: FlinkVersion) -> None:
    """Of a task restarted alone the outputs and the channels it reads are new, and nothing else."""
    before = several_exchanges(version).execution_graph()
    restarted = next(each for each in before.vertices if each.name == "map-1")
    after = before.restarted([restarted])
    assert [each.attempt for each in after.vertices] == [int(each.name == "map-1") for each in before.vertices]
    for old, new in zip(plans_of(before), plans_of(after), strict=True):
        assert (old.partition_id == new.partition_id) is (old.producer.name != "map-1")
        assert (old.receiver == new.receiver) is (old.consumer.name != "map-1")


def test_the_attempt_stands_where_each_version_has_it() -> None:
    """1.11: in the one id of the producer. 2.x: a number of its own, beside ids that stay."""
    old, new = (several_exchanges(version).execution_graph() for version in FlinkVersion)
    old_restarted, new_restarted = old.restarted(), new.restarted()
    for one, other in zip(plans_of(new), plans_of(new_restarted), strict=True):
        assert other.partition_id.producer == replace(one.partition_id.producer, attempt=1)
    for one, other in zip(plans_of(old), plans_of(old_restarted), strict=True):
        assert other.partition_id.producer.attempt == 0
        assert one.partition_id.producer.id[-4:] == bytes([0, 0, 0, 0])
        assert other.partition_id.producer.id == one.partition_id.producer.id[:-4] + bytes([0, 0, 0, 1])


def test_a_restarted_task_may_run_elsewhere_under_the_names_it_would_have_anyway() -> None:
    before = several_exchanges(FlinkVersion.V1_11).execution_graph(3)
    moved = before.restarted(placement=Placement(before.job, 1))
    assert {each.task_manager for each in moved.vertices} == {0}
    names = [(plan.partition_id, plan.receiver) for plan in plans_of(before.restarted())]
    assert [(plan.partition_id, plan.receiver) for plan in plans_of(moved)] == names


def test_an_attempt_that_has_been_restarted_is_not_restarted_again() -> None:
    """Whoever decides about an old attempt has missed a restart, and would skip an attempt or repeat one."""
    graph = several_exchanges(FlinkVersion.V1_11).execution_graph()
    first = graph.vertices[0]
    with pytest.raises(LocalUsageError, match="attempt 0 of one-0 is not the one that runs, which is 1"):
        graph.restarted().restarted([first])
    with pytest.raises(LocalUsageError, match="attempt 0 of one-0"):
        graph.restarted([first, first])


@pytest.mark.parametrize(("attempts", "trouble"), [
    ({(0, 2): 1}, "subtask 2 of vertex 0"), ({(77, 0): 1}, "subtask 0 of vertex 77"),
    ({(0, -1): 1}, "subtask -1 of vertex 0"), ({(0, 0): -1}, "attempt -1 of one-0"),
    ({(0, 0): MAX_ATTEMPT + 1}, "attempt 65536 of one-0"),
])  # fmt: skip
def test_attempts_of_nothing_and_attempts_without_a_name_are_refused(
    attempts: dict[tuple[int, int], int], trouble: str
) -> None:
    job = several_exchanges(FlinkVersion.V1_11).execution_graph().job
    with pytest.raises(LocalUsageError, match=trouble):
        ExecutionGraph(job, attempts=attempts)


@pytest.mark.parametrize("version", FlinkVersion)
def test_the_last_attempt_there_is_survives_the_wire(version: FlinkVersion) -> None:
    job = several_exchanges(version).execution_graph().job
    attempts = {(each.vertex.id, each.subtask): MAX_ATTEMPT for each in ExecutionGraph(job).vertices}
    graph = ExecutionGraph(job, attempts=attempts)
    assert len({plan.receiver for plan in plans_of(graph)}) == len(plans_of(graph))
    for plan in plans_of(graph):
        asked = PartitionRequest(plan.partition_id, plan.subpartition, plan.subpartition, plan.receiver, 2)
        frame = encode(asked, version)
        assert decode(frame[8], memoryview(frame)[HEADER_BYTES:], version) == asked
    attempts.clear()  # what was handed in was copied
    with pytest.raises(LocalUsageError, match="65536"):
        graph.restarted()
