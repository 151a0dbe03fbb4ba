"""A region of a job begins again, and the rest goes on: what becomes of checkpoints meanwhile."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import (
    Ack,
    CheckpointAborted,
    CheckpointCoordinator,
    CheckpointOptions,
    CheckpointRequest,
    CompletedCheckpoints,
    CoordinatorDecision,
    Delete,
    NotifyComplete,
    RequestRefused,
    TaskEvent,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.errors import LocalUsageError
from refimpl.state import CheckpointKind, StateFile

TASKS = ["left", "left sink", "right", "right sink"]
FAILED = {"left": "left again", "left sink": "left sink again"}
NOW = ["left again", "left sink again", "right", "right sink"]


def running() -> CheckpointCoordinator:
    made = CheckpointCoordinator(CheckpointOptions(), CompletedCheckpoints(1))
    made.start(TASKS, ["left", "right"], 0)
    for task in TASKS:
        made.task_reports(task, TaskEvent.RUN, 0)
    return made


def ask(made: CheckpointCoordinator) -> list[CoordinatorDecision]:
    return made.submit(CheckpointRequest(1, 0), 0)


def ack(number: int, task: str) -> Ack:
    return Ack(number, task, (StateFile(f"chk-{number}/{task}", 1, "00"),))


def test_what_is_under_way_is_given_up_though_the_failed_ones_have_acknowledged_it() -> None:
    made = running()
    ask(made)
    for task in FAILED:
        made.acknowledge(ack(1, task), 0)
    decisions = made.lose(FAILED, 0)
    assert [type(each) for each in decisions if isinstance(each, CheckpointAborted | Delete)] == [
        CheckpointAborted, Delete
    ]  # fmt: skip
    assert [type(each) for each in ask(made)] == [RequestRefused]


def test_there_are_checkpoints_again_when_those_in_their_places_run() -> None:
    made = running()
    made.lose(FAILED, 0)
    assert made.replace(FAILED) == []
    assert [type(each) for each in ask(made)] == [RequestRefused]
    for task in FAILED.values():
        made.task_reports(task, TaskEvent.RUN, 0)
    (trigger,) = ask(made)
    assert isinstance(trigger, TriggerCheckpoint)
    assert trigger.attempts == ("left again", "right")
    for task in NOW:
        decisions = made.acknowledge(ack(trigger.checkpoint_id, task), 0)[1]
    assert isinstance(decisions[-1], WriteManifest)
    told = [each for each in made.manifest_written(trigger.checkpoint_id, 0) if isinstance(each, NotifyComplete)]
    assert [each.attempts for each in told] == [tuple(NOW)]


def test_no_restart_while_a_manifest_is_being_written() -> None:
    made = running()
    ask(made)
    for task in TASKS:
        made.acknowledge(ack(1, task), 0)
    made.lose(FAILED, 0)
    with pytest.raises(LocalUsageError, match="manifest of"):
        made.replace(FAILED)
    made.manifest_written(1, 0)
    made.replace(FAILED)


def test_who_had_ended_is_in_the_final_checkpoint_and_who_failed_is_in_it_anew() -> None:
    made = running()
    for task in TASKS:
        if task != "left":
            made.task_ended(Ack(0, task, (StateFile(f"final/{task}", 1, "00"),)), 0)
    made.lose(FAILED, 0)
    assert made.replace(FAILED) == [Delete(("final/left sink",))]
    for task in FAILED.values():
        decisions = made.task_ended(Ack(0, task, (StateFile(f"final/{task}", 1, "00"),)), 1)
    (write,) = decisions
    assert isinstance(write, WriteManifest)
    assert write.request.kind is CheckpointKind.FINAL
    assert {each.attempt for each in write.acks} == set(NOW)
