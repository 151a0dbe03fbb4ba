"""Who starts when: all tasks at once, or each with the first that it can read, of any of its inputs or of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from refimpl.batch_options import ExchangeMode, InputConstraint, ScheduleMode
from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.drivers.simulation import StepTask
from refimpl.job import StreamEnvironment
from refimpl.task.source import IterableReader


def two_inputs(found: list[int], constraint: InputConstraint, mode: ScheduleMode) -> StreamEnvironment:
    environment = StreamEnvironment(
        Config(segment_size_bytes=32, num_buffers=64, source_batch=1, schedule_mode=mode, input_constraint=constraint)
    )

    def numbers(subtask: int, of: int) -> Iterator[int]:
        yield from range(subtask, 40, of)

    left = environment.source(lambda subtask, of: IterableReader(numbers(subtask, of)), "left")
    right = environment.source(lambda subtask, of: IterableReader(numbers(subtask, of)), "right")
    left.connect(right).map(abs, lambda n: n + 100, "both").rebalance().sink(found.append, "last")
    return environment


def started_of(run: Simulation) -> set[str]:
    return {name for name, task in run.tasks.items() if task.is_started}


def step(run: Simulation, name: str) -> None:
    """Step one task as often as it takes until it has handed something on."""
    for _ in range(6):
        run.step(StepTask(name))


@pytest.mark.parametrize("constraint", InputConstraint)
def test_a_task_starts_with_the_first_of_any_input_or_of_all(constraint: InputConstraint) -> None:
    found: list[int] = []
    with Simulation(two_inputs(found, constraint, ScheduleMode.LAZY_FROM_SOURCES)) as run:
        names = [action.task for action in run.enabled() if isinstance(action, StepTask)]
        assert names == ["left-0", "right-0"]
        step(run, "left-0")
        may_start = StepTask("both → last-0") in run.enabled() or StepTask("both-0") in run.enabled()
        assert may_start is (constraint is InputConstraint.ANY)
        assert started_of(run) == {"left-0"}
        step(run, "right-0")
        assert StepTask("both → last-0") in run.enabled() or StepTask("both-0") in run.enabled()
        run.run()
    assert sorted(found) == sorted([*range(40), *range(100, 140)])


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun, AsyncRun, ProcessRun])
@pytest.mark.parametrize("constraint", InputConstraint)
def test_the_results_are_the_same_on_every_driver(
    constraint: InputConstraint, driver: type[Simulation | ThreadedRun | AsyncRun | ProcessRun]
) -> None:
    found: list[int] = []
    environment = two_inputs(found, constraint, ScheduleMode.LAZY_FROM_SOURCES)
    driver(environment, num_task_managers=1).run()
    assert sorted(found) == sorted([*range(40), *range(100, 140)])


@pytest.mark.parametrize("mode", [ScheduleMode.LAZY_FROM_SOURCES, ScheduleMode.PIPELINED_REGION])
@pytest.mark.parametrize("results", [ExchangeMode.ALL_PIPELINED, ExchangeMode.ALL_BLOCKING])
def test_it_is_the_first_buffer_of_a_pipelined_result_that_a_lazy_consumer_waits_for(
    results: ExchangeMode, mode: ScheduleMode, tmp_path: Path
) -> None:
    """Flink: ResultPartitionTest#testSendScheduleOrUpdateConsumersMessage (P64)."""
    found: list[int] = []
    config = Config(
        segment_size_bytes=32,
        num_buffers=32,
        source_batch=1,
        execution_mode=results,
        schedule_mode=mode,
        spill_directory=str(tmp_path),
    )
    environment = StreamEnvironment(config)
    environment.from_collection(range(40), "numbers").rebalance().sink(found.append)
    with Simulation(environment) as run:
        seen = []
        for _ in range(2):
            seen.append(run.tasks["sink-0"].may_start() if "sink-0" in run.tasks else None)
            step(run, "numbers-0")
        run.run()
    is_lazy = mode is ScheduleMode.LAZY_FROM_SOURCES
    assert seen == ([not is_lazy, True] if results is ExchangeMode.ALL_PIPELINED else [None, None])
    assert found == list(range(40))
