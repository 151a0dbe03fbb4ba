"""A job made real: its wiring, what can be swapped while it runs, what a snapshot shows, and how it is given up."""

from __future__ import annotations

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.invariants import check_all
from refimpl.job import Deployment, JobSnapshot, StreamEnvironment, Swap, SwapFunction, TaskManagerSnapshot
from refimpl.memory import NetworkPoolSnapshot
from refimpl.producer import BroadcastRecordWriter, PipelinedSubpartition, RecordWriter
from refimpl.records import SpanningRecordSerializer
from refimpl.task import IterableReader, OutputTag, Progress
from refimpl.trace import Trace


class Mine(SpanningRecordSerializer):
    """Somebody's part."""


class Unmakeable(SpanningRecordSerializer):
    def __init__(self) -> None:
        raise RuntimeError("not today")


def job(results: list[object] | None = None, num_buffers: int = 40) -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=32, num_buffers=num_buffers, source_batch=4))
    source = environment.source(lambda i, n: IterableReader(range(i, 30, n)), parallelism=2)
    mapped = source.rebalance().map(lambda n: n + 1).set_parallelism(3)
    mapped.broadcast().sink([].append if results is None else results.append).set_parallelism(2)
    return environment


def step_all(deployment: Deployment, rounds: int) -> None:
    for _ in range(rounds):
        for task in deployment.tasks:
            if task.is_runnable:
                task.step()
        for partition in deployment.partitions:
            partition.flush_all()


# -- wiring ----------------------------------------------------------------------------------------


def test_tasks_outputs_and_channels_are_those_of_the_graph() -> None:
    deployment = Deployment(job().execution_graph())
    assert [task.name for task in deployment.tasks] == [
        "source-0",
        "source-1",
        "map-0",
        "map-1",
        "map-2",
        "sink-0",
        "sink-1",
    ]
    assert [partition.name for partition in deployment.partitions] == [
        "source-0 → map",
        "source-1 → map",
        "map-0 → sink",
        "map-1 → sink",
        "map-2 → sink",
    ]
    assert [len(partition.subpartitions) for partition in deployment.partitions] == [3, 3, 2, 2, 2]
    assert [len(gate.channels) for gate in deployment.gates] == [2, 2, 2, 3, 3]
    assert [len(task.writers) for task in deployment.tasks] == [1, 1, 1, 1, 1, 0, 0]
    deployment.close()


def test_every_subpartition_is_read_by_exactly_one_channel() -> None:
    deployment = Deployment(job().execution_graph())
    read = [channel.view.subpartition for gate in deployment.gates for channel in gate.channels]
    produced = [sub for partition in deployment.partitions for sub in partition.subpartitions]
    assert sorted(map(id, read)) == sorted(map(id, produced))
    for number, gate in enumerate(deployment.gates[:3]):
        assert [channel.view.subpartition.index for channel in gate.channels] == [number] * 2
    deployment.close()


def test_only_a_broadcast_has_a_writer_that_shares_buffers() -> None:
    deployment = Deployment(job().execution_graph())
    kinds = {writer.partition.name[:3]: type(writer) for writer in deployment.writers.values()}
    assert kinds == {"sou": RecordWriter, "map": BroadcastRecordWriter}
    deployment.close()


def test_an_output_may_use_what_its_options_grant() -> None:
    environment = job()
    environment.config = Config(
        segment_size_bytes=32, num_buffers=400, buffers_per_channel=3, floating_buffers_per_gate=5
    )
    deployment = Deployment(environment.execution_graph())
    pools = [(p.pool.num_required, p.pool.num_max) for p in deployment.partitions]
    assert pools == [(4, 14)] * 2 + [(3, 11)] * 3
    deployment.close()


def test_two_outputs_of_one_operator_are_two_partitions() -> None:
    environment = StreamEnvironment(Config(num_buffers=40))
    source = environment.from_collection([1, 2])
    source.rebalance().sink(print, "left")
    source.side_output(OutputTag("x")).rebalance().sink(print, "right")
    deployment = Deployment(environment.execution_graph())
    assert [partition.name for partition in deployment.partitions] == ["source-0 → left", "source-0 → right"]
    assert len(deployment.task("source-0").writers) == 2
    deployment.close()


def test_a_task_is_found_by_name_or_refused_with_the_names_there_are() -> None:
    deployment = Deployment(job().execution_graph())
    assert deployment.task("map-1") is deployment.tasks[3]
    with pytest.raises(LocalUsageError, match=r"no task 'map-7'; there are \['source-0', 'source-1', 'map-0'"):
        deployment.task("map-7")
    deployment.close()


# -- swapping --------------------------------------------------------------------------------------


def test_a_swapped_part_goes_into_every_writer_at_its_next_step() -> None:
    deployment = Deployment(job().execution_graph())
    step_all(deployment, 1)
    writers = list(deployment.writers.values())
    deployment.do(Swap({"SpanningRecordSerializer": Mine}))
    assert not any(isinstance(writer.serializer, Mine) for writer in writers)
    assert deployment.parts.SpanningRecordSerializer is Mine
    step_all(deployment, 30)
    used = [writer.serializer for writer in writers]
    assert all(isinstance(serializer, Mine) for serializer in used)
    assert len(set(map(id, used))) == len(writers)
    deployment.close()


class MyRules(PipelinedSubpartition):
    """The same rules under another name."""


def test_swapped_rules_go_into_every_subpartition_and_leave_the_serializers() -> None:
    deployment = Deployment(job().execution_graph())
    step_all(deployment, 1)
    before = [writer.serializer for writer in deployment.writers.values()]
    deployment.do(Swap({"PipelinedSubpartition": MyRules}))
    step_all(deployment, 30)
    rules = {type(sub) for partition in deployment.partitions for sub in partition.subpartitions}
    assert rules == {MyRules}
    assert [writer.serializer for writer in deployment.writers.values()] == before
    deployment.close()


def test_a_job_may_start_with_other_rules() -> None:
    deployment = Deployment(job().use(PipelinedSubpartition=MyRules).execution_graph())
    assert {type(sub) for partition in deployment.partitions for sub in partition.subpartitions} == {MyRules}
    deployment.close()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"SpanningRecordSerialiser": Mine}, "did you mean SpanningRecordSerializer"),
        ({"SpanningRecordSerializer": 5}, "give the class that makes the part, not 5"),
        ({"is_chainable": Mine}, "cannot be swapped in a running job"),
        ({"SpanningRecordSerializer": Mine, "build_chains": Mine}, "cannot be swapped"),
    ],
)
def test_a_refused_swap_changes_no_part_and_reaches_no_task(parts: dict[str, object], said: str) -> None:
    deployment = Deployment(job().execution_graph())
    before = deployment.parts
    with pytest.raises(LocalUsageError, match=said):
        deployment.do(Swap(parts))
    assert deployment.parts == before
    step_all(deployment, 3)
    assert {type(writer.serializer) for writer in deployment.writers.values()} == {SpanningRecordSerializer}
    deployment.close()


def test_a_part_that_cannot_be_made_changes_nothing() -> None:
    deployment = Deployment(job().execution_graph())
    before = deployment.parts
    with pytest.raises(RuntimeError, match="not today"):
        deployment.do(Swap({"SpanningRecordSerializer": Unmakeable}))
    assert deployment.parts == before
    step_all(deployment, 30)
    assert deployment.is_done
    deployment.close()


def test_a_swapped_function_reaches_every_subtask_of_its_operator() -> None:
    results: list[object] = []
    deployment = Deployment(job(results).execution_graph())
    deployment.do(SwapFunction("map", lambda n: -n))
    step_all(deployment, 60)
    assert deployment.is_done
    assert sorted(results) == sorted([-n for n in range(30)] * 2)
    deployment.close()


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [("nap", abs, "no operator called 'nap' holds a function"), ("source", abs, "no operator called 'source'"),
     ("map", 3, "3 is no function"), ("map-0", abs, "no operator called 'map-0'")],
)  # fmt: skip
def test_a_function_that_has_no_place_is_refused(name: str, function: object, said: str) -> None:
    deployment = Deployment(job().execution_graph())
    with pytest.raises(LocalUsageError, match=said):
        deployment.do(SwapFunction(name, function))
    deployment.close()


# -- looking, giving up ----------------------------------------------------------------------------


def memory(shot: JobSnapshot) -> NetworkPoolSnapshot:
    (task_manager,) = shot.task_managers
    return task_manager.pool


def holders(part: TaskManagerSnapshot) -> list[int]:
    """Every segment of a TaskManager, once for each place that says it has it."""
    pools = [*(partition.pool for partition in part.partitions), *part.gate_pools]
    managers = [channel.buffers for gate in part.gates for channel in gate.channels if channel.buffers is not None]
    found = [*part.pool.free_segments]
    for pool in pools:
        found += [*pool.idle_segments, *pool.lent_segments]
    for manager in managers:
        found += [*manager.empty_segments, *manager.lent_segments]
    return sorted(found)


def test_a_snapshot_says_who_has_each_segment() -> None:
    with Simulation(job(), seed=2, num_task_managers=2) as simulation:
        received = credited = 0
        while simulation.step() is not None:
            for part in simulation.snapshot().task_managers:
                assert holders(part) == list(range(part.pool.num_total))
                channels = [channel for gate in part.gates for channel in gate.channels]
                received += sum(len(channel.queue) for channel in channels)
                credited += sum(reader.credit for reader in part.readers)
                assert all(channel.num_available == len(channel.queue) for channel in channels if channel.receiver)
                floating = [each for pool in part.gate_pools for each in pool.lent_segments]
                assert {each for c in channels if c.buffers for each in c.buffers.floating_segments} <= set(floating)
    assert received > 10
    assert credited > 10


def test_a_snapshot_shows_the_whole_job_and_does_not_change_later() -> None:
    deployment = Deployment(job().execution_graph())
    shot = deployment.snapshot(7.5)
    assert (shot.time_ms, shot.num_steps, memory(shot).num_free, memory(shot).num_total) == (7.5, 0, 40, 40)
    assert [task.name for task in shot.tasks] == [task.name for task in deployment.tasks]
    assert [len(part.subpartitions) for part in shot.partitions] == [3, 3, 2, 2, 2]
    assert [gate.name for gate in shot.gates] == ["map-0", "map-1", "map-2", "sink-0", "sink-1"]
    assert {task.progress for task in shot.tasks} == {Progress.IDLE}
    step_all(deployment, 2)
    later = deployment.snapshot()
    assert later.num_steps == sum(task.num_steps for task in deployment.tasks) > 0
    assert memory(later).num_free < 40
    assert sum(part.pool.num_requested for part in later.partitions) == 40 - memory(later).num_free
    assert memory(shot).num_free == 40
    deployment.close()


@pytest.mark.parametrize("rounds", range(0, 24, 3))
def test_a_job_given_up_anywhere_gives_every_segment_back(rounds: int) -> None:
    deployment = Deployment(job(num_buffers=17).execution_graph(), trace=Trace())
    step_all(deployment, rounds)
    check_all(deployment)
    deployment.close()
    assert deployment.pool.num_free == 17
    deployment.close()
    assert deployment.pool.num_free == 17


def test_a_job_without_operators_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="the job has no operators; start with a source"):
        StreamEnvironment().execution_graph()
