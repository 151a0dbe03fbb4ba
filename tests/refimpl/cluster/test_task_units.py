"""What is made together on a TaskManager, and ends together; and that no two attempts have one id."""

from __future__ import annotations

from dataclasses import replace

from refimpl.cluster import AllocationId, ExecutionId, JobPlan, SubmittedTask, TaskUnits, graph_of
from refimpl.job import StreamEnvironment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.job_graph import JobGraph

ALLOCATION = AllocationId("job", 1, 1)


def job() -> JobGraph:
    environment = StreamEnvironment()
    numbers = environment.from_collection(range(4), "numbers").set_parallelism(2)
    numbers.rebalance().map(lambda value: value, name="map").set_parallelism(2).sink(print, name="sink")
    return environment.execution_graph(1).job


def submitted(plan: JobPlan, epoch: int = 1, attempt: int = 0) -> list[SubmittedTask]:
    together = tuple(ExecutionId("job", *place, attempt, attempt, epoch) for place in sorted(plan.slot_of))
    return [SubmittedTask(each, ALLOCATION, ("tm-0", "tm-1"), together) for each in together]


def test_a_unit_is_made_when_all_of_it_that_is_here_has_been_sent() -> None:
    plan = JobPlan.of("job", ExecutionGraph(job()))
    here = [each for each in submitted(plan) if plan.slot_of[each.execution.place] == 1]
    assert len(here) > 1
    units = TaskUnits("tm-1")
    made = [units.add(each, plan) for each in here]
    assert [each is not None for each in made] == [False] * (len(here) - 1) + [True]
    assert made[-1] is not None
    assert list(made[-1].tasks.values()) == here


def test_one_that_ends_ends_its_unit_once_and_no_other() -> None:
    plan = JobPlan.of("job", ExecutionGraph(job()))
    units = TaskUnits("tm-0")
    for attempt in range(2):
        for each in submitted(plan, attempt=attempt):
            if plan.slot_of[each.execution.place] == 0:
                units.add(each, plan)
    first = submitted(plan)[0].execution
    ended = units.remove(first)
    assert ended is not None
    assert {each.attempt for each in ended.tasks} == {0}
    assert units.remove(first) is None
    assert units.remove(replace(first, attempt=1, generation=1)) is not None


def test_whoever_makes_the_graph_of_a_region_comes_to_the_same_ids_and_no_attempt_has_those_of_another() -> None:
    made = job()
    plan = JobPlan.of("job", ExecutionGraph(made))
    kinds = [(epoch, attempt) for epoch in (1, 2) for attempt in (0, 1)]
    ids = []
    for epoch, attempt in kinds:
        graphs = [graph_of(made, each) for each in submitted(plan, epoch, attempt)]
        found = {graph.partition_id(0, graph.vertices[0]) for graph in graphs}
        assert len(found) == 1
        assert {each.task_manager for each in graphs[0].vertices} == {0, 1}
        ids.append(found.pop())
    assert len(set(ids)) == len(kinds)
