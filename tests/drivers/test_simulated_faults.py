"""Faults of a simulated cluster: TaskManagers that are gone, and control messages that come late, twice or never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.checkpoint.decisions import CheckpointAborted, CheckpointCompleted
from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import MissTaskManager, Restart, Revive, Tell, Way
from refimpl.errors import LocalUsageError, RemoteTransportError
from refimpl.job import StreamEnvironment
from refimpl.state import MemoryStore


def simulation(sink: Callable[[Any], object], num_records: int = 60, **options: Any) -> Simulation:
    """Numbers that two TaskManagers share, into a sink that has each of them once."""
    given: dict[str, Any] = {"max_control_delay_ms": 0.5, "num_task_managers": 2, "store": MemoryStore(), **options}
    config = Config(
        num_buffers=64,
        segment_size_bytes=64,
        source_batch=4,
        checkpoint_interval_ms=1,
        checkpoint_timeout_ms=40,
        tolerable_failed_checkpoints=99,
    )
    job = StreamEnvironment(config, parallelism=2)
    numbers = job.from_collection(range(num_records), name="numbers").rebalance()
    exactly_once = given["store"] is not None
    numbers.map(abs).rebalance().sink(sink, exactly_once=exactly_once)
    return Simulation(job, step_ms=0.2, restart=FixedDelayRestart(9, 1.0), **given)


def on_their_way(run: Simulation, what: str) -> list[int]:
    """The numbers of the control messages of a kind."""
    assert run.control is not None
    return [each.number for each in run.control.messages if each.what.startswith(what)]


def until_there_are(run: Simulation, what: str) -> list[int]:
    while not (found := on_their_way(run, what)):
        assert run.step() is not None
    return found


def completed(run: Simulation) -> list[int]:
    assert run.recovery is not None
    history = run.recovery.checkpoints.history
    return [each.checkpoint.checkpoint_id for each in history if isinstance(each, CheckpointCompleted)]


# -- TaskManagers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("num_steps", [0, 40, 90])
def test_a_taskmanager_is_gone_and_another_takes_its_place(number: int, num_steps: int) -> None:
    results: list[int] = []
    run = simulation(results.append)
    run.run(num_steps)
    gone = run.deployments[number].pool
    run.kill(number, revive_after_ms=500.0)
    taken = []
    while (action := run.step()) is not None:
        taken.append(action)
    assert sorted(results) == list(range(60))
    assert run.deployments[number].pool is not gone
    revived = next(each for each in taken if isinstance(each, Revive))
    restarted = next(each for each in taken if isinstance(each, Restart))
    assert revived.time_ms >= 500.0
    assert taken.index(revived) < taken.index(restarted)


def test_tasks_elsewhere_go_on_until_somebody_misses_it() -> None:
    run = simulation(lambda _: None, 400)
    run.run(60)
    run.kill(1, noticed_after_ms=0.0)
    assert not [each for each in run.enabled() if str(each).startswith("step") and str(each).endswith("-1")]
    missed = next(each for each in run.enabled() if isinstance(each, MissTaskManager))
    run.step(missed)
    assert [type(each) for each in run.enabled()] != []
    run.run()
    assert run.recovery is not None
    assert run.recovery.graph.generation == 1


def test_nobody_misses_a_taskmanager_whose_tasks_had_ended_when_the_job_is_done() -> None:
    """What sinks have made visible would come again: the checkpoints are deleted by then."""
    results: list[int] = []
    run = simulation(results.append)
    while not any(each.is_done for each in run.deployments):
        assert run.step() is not None
    run.kill(next(each.task_manager for each in run.deployments if each.is_done))
    run.run()
    assert run.is_done
    assert run.recovery is not None
    assert run.recovery.graph.generation == 0
    assert sorted(results) == list(range(60))


def test_what_a_dead_taskmanager_was_about_to_write_is_not_written() -> None:
    store = MemoryStore()
    run = simulation(lambda _: None, 400, store=store)
    assert run.recovery is not None
    work = run.recovery.checkpoints.work
    while not (doomed := [each.what.removeprefix("write ") for each in work if each.what.endswith(".state")]):
        assert run.step() is not None
    for number in range(2):
        run.kill(number)
    run.run()
    assert run.recovery.graph.generation == 1
    assert not {f"put job/{each}" for each in doomed} & set(store.calls)


def test_a_job_without_checkpoints_fails_when_a_taskmanager_is_gone() -> None:
    run = simulation(lambda _: None, store=None)
    run.run(30)
    run.kill(1)
    with pytest.raises(RemoteTransportError):
        run.run()


def test_what_is_gone_cannot_be_killed_again() -> None:
    run = simulation(lambda _: None)
    run.kill(1)
    with pytest.raises(LocalUsageError, match="tm-1 is gone already"):
        run.kill(1)
    with pytest.raises(LocalUsageError, match="no TaskManager 2"):
        run.kill(2)


# -- control messages ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["Trigger", "Snapshotted"])
def test_a_checkpoint_of_which_a_message_is_lost_expires_and_the_next_completes(what: str) -> None:
    results: list[int] = []
    run = simulation(results.append, 800)
    number = until_there_are(run, what)[0]
    assert run.control is not None
    run.control.lose(number)
    while not completed(run):
        assert run.step() is not None
    assert run.recovery is not None
    aborted = [each for each in run.recovery.checkpoints.history if isinstance(each, CheckpointAborted)]
    assert [(each.checkpoint_id, each.reason) for each in aborted] == [(1, CheckpointFailureReason.EXPIRED)]
    assert completed(run) == [2]


def test_news_that_are_lost_are_covered_by_the_next() -> None:
    results: list[int] = []
    run = simulation(results.append)
    while run.step() is not None:
        assert run.control is not None
        for number in on_their_way(run, "NotifyComplete"):
            if 1 in completed(run) and 2 not in completed(run):
                run.control.lose(number)
    assert sorted(results) == list(range(60))


def test_who_has_ended_is_told_again_that_the_last_checkpoint_counts() -> None:
    results: list[int] = []
    run = simulation(results.append)
    lost, at_ms = set[str](), 0.0
    while run.step() is not None:
        assert run.control is not None
        assert run.recovery is not None
        for message in list(run.control.messages):
            is_news = message.what.startswith("NotifyComplete")
            if is_news and run.recovery.checkpoints.coordinator.tasks.final_id is not None and not at_ms:
                run.control.lose(message.number)
                lost.add(message.task)
        at_ms = at_ms or (run.time_ms if lost else 0.0)
    assert len(lost) > 1
    assert run.time_ms > at_ms + 900
    assert sorted(results) == list(range(60))


def test_an_end_cannot_be_lost() -> None:
    run = simulation(lambda _: None)
    assert run.control is not None
    ends = until_there_are(run, "Finished")
    with pytest.raises(LocalUsageError, match="cannot be lost"):
        run.control.lose(ends[0])
    with pytest.raises(LocalUsageError, match="no message 999999"):
        run.control.lose(999_999)


@pytest.mark.parametrize("what", ["Trigger", "NotifyComplete", "Snapshotted"])
def test_every_message_twice_changes_nothing(what: str) -> None:
    results: list[int] = []
    run = simulation(results.append)
    repeated = set[int]()
    while run.step() is not None:
        assert run.control is not None
        for number in on_their_way(run, what):
            if number not in repeated:
                run.control.repeat(number)
                repeated |= {number, max(each.number for each in run.control.messages)}
    assert repeated
    assert completed(run)
    assert sorted(results) == list(range(60))


def test_what_is_sent_behind_a_delayed_message_arrives_behind_it() -> None:
    run = simulation(lambda _: None, 800)
    assert run.control is not None
    number = until_there_are(run, "Trigger")[0]
    message = next(each for each in run.control.messages if each.number == number)
    run.control.delay(number, 500.0)
    run.control.send(message.task, "Trigger 2", lambda: None)
    line = [each for each in run.control.messages if each.task == message.task and each.is_to_task]
    assert line[0].arrival_ms >= 500.0
    assert line[1].arrival_ms >= line[0].arrival_ms
    told = [each.number for each in run.enabled() if isinstance(each, Tell)]
    assert line[1].number not in told


def test_a_delayed_connection_brings_what_is_on_it_later() -> None:
    run = simulation(lambda _: None)
    link = next(iter(run.links.values()))
    while link.next_arrival_ms(Way.RESPONSES) is None:
        assert run.step() is not None
    before = link.next_arrival_ms(Way.RESPONSES)
    assert before is not None
    link.delay(Way.RESPONSES, 30.0)
    assert link.next_arrival_ms(Way.RESPONSES) == before + 30.0
