"""A job with checkpoints, step by step: its messages are steps, faults can be chosen, and it goes on."""

from __future__ import annotations

import json

import pytest

from refimpl.config import Config
from refimpl.drivers.simulation import Costs
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from widgets import CheckpointView, QueueView, Stepper

NUM_RECORDS = 200


def numbered(sink, interval_ms=1):
    config = Config(segment_size_bytes=64, num_buffers=60, source_batch=2, checkpoint_interval_ms=interval_ms)
    environment = StreamEnvironment(config, 2)
    environment.from_collection(range(NUM_RECORDS)).map(lambda number: number * 2).rebalance().sink(
        sink, exactly_once=interval_ms > 0
    )
    return environment


@pytest.fixture
def results():
    return []


@pytest.fixture
def stepper(results):
    stepper = Stepper(numbered(results.append), seed=2, num_task_managers=2, checkpoints=True)
    yield stepper
    stepper.close()


def until_complete(stepper, number=1):
    """Step until so many checkpoints count."""
    while (counts := stepper.snapshot().checkpoints.counts).num_completed < number:
        assert stepper.step() is not None, counts


def test_what_a_coordinator_and_tasks_say_are_steps(stepper):
    until_complete(stepper)
    said = {words for _, words in stepper.recording.moments}
    for what in ("tell Trigger 1 to", "tell Snapshotted", "store: write chk-1"):
        assert any(words.startswith(what) for words in said), (what, said)


def test_a_crash_is_chosen_and_the_job_goes_on_from_the_newest_checkpoint(stepper, results):
    assert stepper.enabled()[-3:] == ["crash", "lose tm-0", "lose tm-1"]
    until_complete(stepper)
    assert stepper.step("crash") == "crash"
    assert stepper.snapshot().checkpoints.counts.num_restored == 0
    stepper.run()
    assert stepper.is_done
    assert stepper.enabled() == []
    assert stepper.snapshot().checkpoints.counts.num_restored == 1
    assert sorted(results) == [2 * number for number in range(NUM_RECORDS)]


def test_a_lost_task_manager_is_missed_and_another_takes_its_place(stepper, results):
    until_complete(stepper)
    stepper.step("lose tm-0")
    assert "lose tm-0" not in stepper.enabled()
    assert "lose tm-1" not in stepper.enabled()  # who would notice?
    stepper.run()
    assert sorted(results) == [2 * number for number in range(NUM_RECORDS)]


def test_no_fault_comes_by_itself_and_without_checkpoints_there_is_none(results):
    stepper = Stepper(numbered(results.append), seed=2, checkpoints=True)
    stepper.run()
    assert not [words for _, words in stepper.recording.moments if words == "crash"]
    stepper.close()
    without = Stepper(numbered(results.append, 0), seed=2)
    assert "crash" not in without.enabled()
    with pytest.raises(LocalUsageError, match="'crash' is not enabled"):
        without.step("crash")
    without.close()


def test_a_fork_keeps_its_change_after_a_restart_and_strikes_in_both_branches(stepper):
    stepper.run(20)
    stepper.fork(buffers=2)
    stepper.step("crash")
    while "restart" not in stepper.step():
        pass
    other = stepper._other
    pools = [partition.pool for each in other.simulation.deployments for partition in each.partitions]
    assert pools
    assert {pool.num_max for pool in pools} == {max(2, pool.num_required) for pool in pools}
    stepper.run()
    assert stepper.is_done
    assert other.choices.count("crash") == 1


def test_each_reset_and_each_fork_has_a_store_of_its_own(stepper):
    until_complete(stepper)
    first = [words for _, words in stepper.recording.moments]
    stepper.reset()
    assert stepper.snapshot().checkpoints.counts.num_completed == 0
    until_complete(stepper)
    assert [words for _, words in stepper.recording.moments] == first


def test_a_run_with_faults_is_kept_in_a_file(stepper, results):
    until_complete(stepper)
    stepper.step("crash")
    stepper.run(60)
    again = Stepper.from_json(stepper.to_json(), stepper.environment)
    assert again.ground == stepper.ground
    assert [moment for moment, _ in again.recording.moments] == [moment for moment, _ in stepper.recording.moments]
    again.close()


def test_a_file_of_before_has_neither_checkpoints_nor_costs(results):
    stepper = Stepper(numbered(results.append, 0), seed=1)
    stepper.run(5)
    assert json.loads(stepper.to_json()).keys() == {
        "format", "seed", "num_task_managers", "max_delay_ms", "choices", "fork",
    }  # fmt: skip
    stepper.close()


def test_views_show_it(stepper):
    until_complete(stepper)
    stepper.step("crash")
    stepper.run(5)
    assert "failed" in CheckpointView(stepper).text() or "complete" in CheckpointView(stepper).text()
    assert QueueView(stepper).text()


# -- work that takes time --------------------------------------------------------------------------


def test_work_takes_time(results):
    costs = Costs({"map": 3.0})
    stepper = Stepper(numbered(results.append, 0), seed=2, costs=costs)
    stepper.run()
    assert stepper.snapshot().time_ms == pytest.approx(NUM_RECORDS / 2 * 3.0, rel=0.2)
    times = {task.name: task.times for task in stepper.snapshot().tasks}
    assert times
    again = Stepper.from_json(stepper.to_json(), stepper.environment)
    assert again.ground.costs == costs
    assert again.snapshot() == stepper.snapshot()
    stepper.close()
    again.close()


def test_a_service_time_that_is_a_function_cannot_be_kept(results):
    stepper = Stepper(numbered(results.append, 0), seed=2, costs=Costs({"map": lambda _now, _number: 1.0}))
    with pytest.raises(LocalUsageError, match="the service time of 'map' is a function"):
        stepper.to_json()
    stepper.close()
