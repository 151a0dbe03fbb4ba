"""Which regions run: by what they read, by the slots there are, and by what has failed."""

from __future__ import annotations

import random

import pytest

from refimpl.batch_options import ExchangeMode, ExecutionMode
from refimpl.cluster import REGION_TRANSITIONS, RegionEvent, RegionSchedule, RegionState
from refimpl.config import Config
from refimpl.errors import LocalUsageError
from refimpl.job import ExecutionVertex, StreamEnvironment
from refimpl.task.source import IterableReader

W, R, F = RegionState.WAITING, RegionState.RUNNING, RegionState.FINISHED


def schedule_of(
    num_slots: int | None = None, mode: ExecutionMode | ExchangeMode = ExecutionMode.BATCH
) -> RegionSchedule:
    """Two of `a`, each read by three of `b`; `far` reads what `b` gives, and `near` what `a` does, by itself."""
    environment = StreamEnvironment(Config(execution_mode=mode), 2)
    a = environment.source(lambda *_: IterableReader([1]), "a")
    b = a.shuffle().map(abs, "b").set_parallelism(3)
    b.shuffle().sink(print, "far").set_parallelism(1)
    a.shuffle().sink(print, "near").set_parallelism(1)
    return RegionSchedule(environment.execution_graph(), num_slots)


def names(schedule: RegionSchedule, numbers: list[int]) -> list[str]:
    return [each.name for number in numbers for each in schedule.executions(number)]


def start(schedule: RegionSchedule) -> list[str]:
    return names(schedule, [each.number for each in schedule.start_next()])


def finish(schedule: RegionSchedule, *tasks: str) -> int:
    """Let the regions of these tasks end; how many results nobody will read any more."""
    numbers = {each.name: number for number in range(7) for each in schedule.executions(number)}
    return sum(len(schedule.finished(numbers[task])) for task in tasks)


def test_the_table_has_a_row_for_each_state_and_goes_where_it_says() -> None:
    assert set(REGION_TRANSITIONS) == set(RegionState)
    assert REGION_TRANSITIONS == {
        W: {RegionEvent.START: R, RegionEvent.RESTART: W},
        R: {RegionEvent.FINISH: F, RegionEvent.RESTART: W},
        F: {RegionEvent.RESTART: W},
    }


def test_a_region_starts_when_all_that_it_reads_is_complete_whatever_else_runs() -> None:
    schedule = schedule_of()
    assert start(schedule) == ["a-0", "a-1"]
    assert start(schedule) == []
    finish(schedule, "a-0")
    assert start(schedule) == []
    finish(schedule, "a-1")
    assert sorted(start(schedule)) == ["b-0", "b-1", "b-2", "near-0"]
    finish(schedule, "b-0", "b-1", "b-2")
    assert start(schedule) == ["far-0"]  # while `near` still runs
    assert not schedule.is_done
    finish(schedule, "far-0", "near-0")
    assert schedule.is_done


def test_a_result_goes_when_the_last_that_reads_it_has_finished() -> None:
    schedule = schedule_of()
    start(schedule)
    assert finish(schedule, "a-0", "a-1") == 0
    start(schedule)
    assert finish(schedule, "b-0", "b-1", "near-0") == 0
    assert finish(schedule, "b-2") == 4  # two of each of `a`: for `b`, and for `near`
    start(schedule)
    assert finish(schedule, "far-0") == 3


@pytest.mark.parametrize("num_slots", [1, 2, 3])
def test_no_more_slots_are_in_use_than_there_are_and_all_come_to_their_end(num_slots: int) -> None:
    for seed in range(20):
        rng, schedule = random.Random(seed), schedule_of(num_slots)
        running: list[int] = []
        while not schedule.is_done:
            running += [each.number for each in schedule.start_next()]
            slots = {each.subtask for number in running for each in schedule.executions(number)}
            assert 0 < len(slots) <= num_slots, f"seed {seed}"
            schedule.finished(running.pop(rng.randrange(len(running))))
        assert schedule.most_slots <= num_slots


def test_a_job_that_needs_more_slots_than_there_are_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="the job needs 3 slots at one time, and there are 2"):
        schedule_of(2, ExchangeMode.ALL_PIPELINED)
    assert schedule_of(3, ExchangeMode.ALL_PIPELINED).start_next()[0].number == 0


def test_a_region_that_fails_begins_again_alone_with_other_attempts_and_ids() -> None:
    schedule = schedule_of()
    start(schedule)
    finish(schedule, "a-0", "a-1")
    start(schedule)
    number = next(n for n in range(7) if names(schedule, [n]) == ["b-1"])
    before = schedule.results(number)
    assert schedule.failed([number]) == [number]
    assert {each.name: each.attempt for each in schedule.graph.vertices if each.attempt} == {"b-1": 1}
    assert set(before).isdisjoint(schedule.results(number))
    assert start(schedule) == ["b-1"]


def test_whoever_made_a_result_that_is_gone_begins_again_and_with_it_all_that_read_from_it() -> None:
    schedule = schedule_of()
    start(schedule)
    finish(schedule, "a-0", "a-1")
    start(schedule)
    number = next(n for n in range(7) if names(schedule, [n]) == ["near-0"])

    def is_here(execution: ExecutionVertex) -> bool:
        return execution.name != "a-1"

    again = names(schedule, schedule.failed([number], is_here))
    assert sorted(again) == ["a-1", "b-0", "b-1", "b-2", "near-0"]
    assert start(schedule) == ["a-1"]
