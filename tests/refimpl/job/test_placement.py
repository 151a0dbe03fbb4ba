"""Which TaskManager runs which subtask: slots, slot-sharing groups, and how both are dealt out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.errors import LocalUsageError
from refimpl.job import JobGraph, Placement, StreamEnvironment
from refimpl.task import IterableReader


def job_of(*stages: tuple[str, int, str]) -> JobGraph:
    """A job of (name, parallelism, slot-sharing group); no two operators share a task."""
    environment = StreamEnvironment()
    (name, parallelism, group), *others = stages
    stream = environment.source(lambda _i, _n: IterableReader([]), name, parallelism=parallelism)
    stream.slot_sharing_group(group)
    for name, parallelism, group in others:
        stream = stream.rebalance().map(abs, name).set_parallelism(parallelism).slot_sharing_group(group)
    return JobGraph(environment.graph, environment.config)


def places(job: JobGraph, num_task_managers: int) -> dict[str, list[int]]:
    """For each operator, the TaskManagers of its subtasks."""
    placement = Placement(job, num_task_managers)
    return {
        vertex.name: [placement.task_manager_of(vertex, subtask) for subtask in range(vertex.parallelism)]
        for vertex in job.vertices.values()
    }


def test_one_task_manager_runs_everything() -> None:
    job = job_of(("source", 3, "default"), ("map", 2, "other"))
    assert places(job, 1) == {"source": [0, 0, 0], "map": [0, 0]}


def test_a_slot_holds_one_subtask_of_each_operator_of_its_group() -> None:
    """The widest operator says how many there are; subtasks of the same number stand in the same one."""
    job = job_of(("source", 1, "default"), ("map", 4, "default"), ("sink", 2, "default"))
    assert Placement(job).num_slots == 4
    assert places(job, 2) == {"source": [0], "map": [0, 0, 1, 1], "sink": [0, 0]}
    assert places(job, 4) == {"source": [0], "map": [0, 1, 2, 3], "sink": [0, 1]}


def test_groups_share_no_slot_and_stand_in_the_order_in_which_the_job_names_them() -> None:
    job = job_of(("source", 2, "b"), ("map", 3, "a"), ("sink", 1, "b"))
    assert Placement(job).num_slots == 5
    assert places(job, 5) == {"source": [0, 1], "map": [2, 3, 4], "sink": [0]}
    assert places(job, 2) == {"source": [0, 0], "map": [0, 1, 1], "sink": [0]}


def test_a_chain_stands_in_the_group_of_its_head() -> None:
    environment = StreamEnvironment()
    environment.from_collection([1]).rebalance().map(abs, "one").slot_sharing_group("g").map(abs, "two")
    job = JobGraph(environment.graph, environment.config)
    assert places(job, 2) == {"source": [0], "one": [1], "two": [0]}  # `two` is of the default group, so not chained
    environment.graph.nodes[2].slot_sharing_group = "g"
    job = JobGraph(environment.graph, environment.config)
    assert places(job, 2) == {"source": [0], "one → two": [1]}


WIDTHS = st.lists(st.tuples(st.integers(1, 6), st.sampled_from("abc")), min_size=1, max_size=5)


@settings(deadline=None)
@given(WIDTHS, st.data())
def test_every_task_manager_gets_its_part_of_the_slots_and_something_to_run(
    widths: list[tuple[int, str]], data: st.DataObject
) -> None:
    job = job_of(*((f"op-{number}", width, group) for number, (width, group) in enumerate(widths)))
    num_slots = Placement(job).num_slots
    assert num_slots == sum(max(w for w, g in widths if g == group) for group in {g for _, g in widths})
    num_task_managers = data.draw(st.integers(1, num_slots))
    placed = places(job, num_task_managers)
    slots = {}
    for (_, group), numbers in zip(widths, placed.values(), strict=True):
        assert numbers == sorted(numbers)
        for subtask, number in enumerate(numbers):
            assert slots.setdefault((group, subtask), number) == number  # a slot is in one place
    load = [list(slots.values()).count(number) for number in range(num_task_managers)]
    assert sum(load) == num_slots
    assert min(load) >= 1
    assert max(load) - min(load) <= 1


@pytest.mark.parametrize("num_task_managers", [0, -1, 4])
def test_more_task_managers_than_slots_or_none_are_refused(num_task_managers: int) -> None:
    job = job_of(("source", 3, "default"), ("map", 2, "default"))
    said = f"{num_task_managers} TaskManagers cannot share the 3 slots of this job; give 1 to 3, or the job more"
    with pytest.raises(LocalUsageError, match=said):
        Placement(job, num_task_managers)
