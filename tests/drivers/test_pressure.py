"""Who holds a job back, on the real engine in virtual time: the culprit, and never one that waits for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from refimpl.cluster import BackPressureMonitor, BottleneckKind, JobPlan, TaskSampler
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Costs, PressureWatch
from refimpl.errors import LocalUsageError
from refimpl.job import DataStream, StreamEnvironment

QUICK = {"source_batch": 1, "buffer_timeout_ms": 0, "segment_size_bytes": 64, "num_buffers": 256}
NUM = 4_000


def environment(**config: object) -> StreamEnvironment:
    return StreamEnvironment(Config(**{**QUICK, **config}))


def step(stream: DataStream, name: str) -> DataStream:
    """One operator in a task of its own, of one subtask."""
    return stream.rebalance().map(lambda value: value, name)


def row() -> StreamEnvironment:
    job = environment()
    step(step(step(job.from_collection(range(NUM), name="source"), "a"), "b"), "c").rebalance().sink(_ignore, "sink")
    return job


def diamond() -> StreamEnvironment:
    job = environment()
    source = job.from_collection(range(NUM), name="source")
    step(source, "a").union(step(source, "b")).rebalance().sink(_ignore, "sink")
    return job


def two_branches() -> StreamEnvironment:
    job = environment()
    first = step(job.from_collection(range(NUM), name="source"), "a")
    first.union(step(job.from_collection(range(NUM), name="other"), "b")).rebalance().sink(_ignore, "sink")
    return job


def _ignore(_value: object) -> None:
    """A sink's function."""


def watched(job: StreamEnvironment, costs: Mapping[str, float], **options: object) -> tuple[str, BottleneckKind, str]:
    """The vertex that is named, of what kind, and who sends to it, after a while in which the pressure has spread."""
    everybody = dict.fromkeys(("source", "other", "a", "b", "c", "sink"), 0.1)
    with Simulation(job, policy="timed", costs=Costs({**everybody, **costs}, **options), check_every=0) as run:  # type: ignore[arg-type]
        watch = PressureWatch(run)
        until(run, 150)
        watch.loads()
        until(run, 300)
        found = watch.bottleneck()
        names = {(each.vertex.id, each.subtask): each.name for each in run.graph.vertices}
        return names.get(found.place, ""), found.kind, names.get(found.producer, "")  # type: ignore[arg-type]


def until(run: Simulation, time_ms: float) -> None:
    while run.time_ms < time_ms and run.step() is not None:
        pass
    assert run.time_ms >= time_ms, "the job was over too soon to be looked at"


@pytest.mark.parametrize("culprit", ["a", "b", "c", "sink"])
def test_in_a_row_it_is_the_slow_one_and_none_of_the_victims_before_it(culprit: str) -> None:
    name, kind, _ = watched(row(), {culprit: 1.0})
    assert (kind, name.split("-")[0].split(" ")[0]) == (BottleneckKind.SUBTASK, culprit)


@pytest.mark.parametrize("job", [diamond, two_branches])
@pytest.mark.parametrize("culprit", ["a", "b"])
def test_of_two_branches_it_is_the_slow_one(job: object, culprit: str) -> None:
    name, kind, _ = watched(job(), {culprit: 1.0})  # type: ignore[operator]
    assert (kind, name.split("-")[0].split(" ")[0]) == (BottleneckKind.SUBTASK, culprit)


def test_a_slow_source_holds_nobody_back() -> None:
    assert watched(row(), {"source": 1.0})[1] is BottleneckKind.SOURCE


def test_a_link_that_is_slow_is_named_with_both_its_ends() -> None:
    job = environment()
    source = job.from_collection(range(NUM), name="source").slot_sharing_group("one")
    source.rebalance().map(lambda value: value, "a").slot_sharing_group("two").sink(_ignore, "sink")
    costs = Costs({"source": 0.1, "a": 0.01, "sink": 0.01}, link_bytes_per_ms=20.0)
    with Simulation(job, policy="timed", costs=costs, num_task_managers=2, check_every=0) as run:
        watch = PressureWatch(run)
        until(run, 300)
        watch.loads()
        until(run, 600)
        found = watch.bottleneck()
        assert found.kind is BottleneckKind.EXCHANGE
        where = {(each.vertex.id, each.subtask): each.task_manager for each in run.graph.vertices}
        assert found.producer is not None
        assert found.place is not None
        assert where[found.producer] != where[found.place]


def test_one_subtask_with_too_much_to_do_is_told_from_its_siblings() -> None:
    job = StreamEnvironment(Config(**QUICK), parallelism=3)  # type: ignore[arg-type]
    job.from_collection([1] * NUM, name="source").key_by(lambda value: value).sink(_ignore, "a")
    with Simulation(job, policy="timed", costs=Costs({"source": 0.01, "a": 0.5}), check_every=0) as run:
        watch = PressureWatch(run)
        until(run, 100)
        watch.loads()
        until(run, 250)
        assert watch.bottleneck().kind is BottleneckKind.SKEW


@pytest.mark.parametrize("culprit", ["b", "sink", "source"])
def test_the_samples_and_the_times_say_the_same(culprit: str) -> None:
    """Within what a hundred samples can be wrong by."""
    costs = Costs({**dict.fromkeys(("source", "a", "b", "c", "sink"), 0.1), culprit: 0.8})
    with Simulation(row(), policy="timed", costs=costs, check_every=0) as run:
        watch = PressureWatch(run)
        until(run, 100)
        watch.loads()
        names = [each.name for each in run.graph.vertices]
        held: dict[object, bool | None] = {}
        monitor, sampler = BackPressureMonitor(num_samples=100, delay_ms=2.03), TaskSampler(lambda task: held[task])
        _, (order,) = monitor.ask("all", dict.fromkeys(names, True), run.time_ms)
        sampler.begin(order, run.time_ms + 1)
        while (due_ms := sampler.next_deadline) is not None:
            while run.time_ms < due_ms:  # at that time things are as they were before time went past it
                held = {name: watch.is_held_back(name) for name in names}
                run.step()
            for request, task, ratio in sampler.on_timeout(run.time_ms):
                monitor.answered(request, task, ratio, run.time_ms)
        stats, _ = monitor.ask("all", dict.fromkeys(names, True), run.time_ms)
        loads = watch.loads()
    assert stats is not None
    for name, ratio in zip(names, stats.ratios, strict=True):
        place = next((each.vertex.id, each.subtask) for each in run.graph.vertices if each.name == name)
        assert abs(loads[place].held_back - ratio) < 0.15, (name, loads[place], ratio)


def test_where_work_takes_no_time_nobody_can_be_watched() -> None:
    with Simulation(row()) as run, pytest.raises(LocalUsageError, match="timed"):
        PressureWatch(run)


def test_the_plan_of_a_job_has_its_slots_and_every_channel_once() -> None:
    with Simulation(diamond()) as run:
        plan = JobPlan.of("diamond", run.graph)
    channels = [(each.producer, each.consumer) for each in plan.exchanges]
    assert len(channels) == len(set(channels)) == 4
    assert set(plan.slot_of.values()) == {0}
    assert plan.num_slots == 1
