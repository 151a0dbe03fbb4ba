"""Which checkpoint may start, step by step as Flink's `CheckpointRequestDecider` had it.

A case is a decider (`max_concurrent`, `min_pause_ms`, `max_queued`) and steps:

    submit      request `id` (`savepoint`, `forced`, `periodic`, `timestamp` in ms), then as `choose`
    choose      at `now`, with `pending` under way, while one `is_triggering`, the last completed at `last_completion`
    abort_all   empties the queue for `reason`

and after each: the id that was `started`, those `dropped` with their reasons (in no order), in how many ms the timer
was to fire again (`reschedule_in`), and what is `queued`, in order.
"""

from __future__ import annotations

import pytest

from refimpl.checkpoint import (
    CheckpointFailureReason,
    CheckpointRequest,
    CheckpointRequestDecider,
    DeciderDecision,
    DropRequest,
    MoveTimer,
    StartCheckpoint,
)
from refimpl.state.manifest import CheckpointKind

TOPIC = "decider"
BY_VERSION = False


def request_of(step: dict) -> CheckpointRequest:
    kind = CheckpointKind.SAVEPOINT if step["savepoint"] else CheckpointKind.CHECKPOINT
    return CheckpointRequest(step["id"], step["timestamp"], kind, step["forced"], step["periodic"])


def decide(decider: CheckpointRequestDecider, step: dict) -> list[DeciderDecision]:
    if step["op"] == "abort_all":
        return decider.drop_all(CheckpointFailureReason(step["reason"]))
    situation = (step["now"], step["pending"], step["last_completion"], step["is_triggering"])
    match step["op"]:
        case "submit":
            return decider.submit(request_of(step), *situation)
        case "choose":
            return decider.choose(*situation)
    pytest.skip(f"operation {step['op']} is not described in the format")


def test_a_decider_decides_as_flinks_did(case: dict) -> None:
    decider = CheckpointRequestDecider(case["max_concurrent"], case["min_pause_ms"], case["max_queued"])
    for number, step in enumerate(case["steps"]):
        decisions = decide(decider, step)
        started = [each.request.number for each in decisions if isinstance(each, StartCheckpoint)]
        dropped = [[each.request.number, each.reason.value] for each in decisions if isinstance(each, DropRequest)]
        moved = [each.at_ms - step["now"] for each in decisions if isinstance(each, MoveTimer)]
        assert started == ([] if step.get("started") is None else [step["started"]]), f"step {number}: {step}"
        assert sorted(dropped) == sorted(step["dropped"]), f"step {number}: {step}"
        assert moved == ([] if step["reschedule_in"] is None else [step["reschedule_in"]]), f"step {number}: {step}"
        assert [request.number for request in decider.queued] == step["queued"], f"step {number}: {step}"
