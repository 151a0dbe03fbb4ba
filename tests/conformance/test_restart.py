"""Whether a job begins again after its failures, as Flink's restart strategies had it.

A case is a `strategy` (`none`, `fixed_delay` with `max_restarts`, `failure_rate` with `max_failures` and `interval_ms`;
both with `backoff_ms`) and steps: at `at` ms a `failure`, or only the question (`ask`); after each, whether it
`can_restart`, and after how long.
"""

from __future__ import annotations

import pytest

from refimpl.cluster import FailureRateRestart, FixedDelayRestart, NoRestart, RestartStrategy

TOPIC = "restart"
BY_VERSION = False


def strategy_of(case: dict) -> RestartStrategy:
    match case["strategy"]:
        case "none":
            return NoRestart()
        case "fixed_delay":
            return FixedDelayRestart(case["max_restarts"], case["backoff_ms"])
        case "failure_rate":
            return FailureRateRestart(case["max_failures"], case["interval_ms"], case["backoff_ms"])
    pytest.skip(f"strategy {case['strategy']} is not described in the format")


def test_a_job_begins_again_when_flinks_did(case: dict) -> None:
    strategy = strategy_of(case)
    for number, step in enumerate(case["steps"]):
        match step["op"]:
            case "failure":
                strategy.notify_failure(step["at"])
            case "ask":
                pass
            case _:
                pytest.skip(f"operation {step['op']} is not described in the format")
        assert strategy.can_restart(step["at"]) == step["can_restart"], f"step {number}: {step}"
        assert strategy.backoff_ms == step["backoff_ms"], f"step {number}: {step}"
