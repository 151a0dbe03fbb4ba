"""Which failure is the last, and which timer counts; more cases are in `conformance`."""

from __future__ import annotations

import random

import pytest

from refimpl.cluster import (
    FailureRateRestart,
    FixedDelayRestart,
    GiveUp,
    NoRestart,
    RestartAt,
    Restarts,
    RestartStrategy,
)
from refimpl.errors import LocalUsageError


def test_with_a_fixed_delay_the_failure_after_the_last_restart_is_final() -> None:
    """Flink: FixedDelayRestartBackoffTimeStrategyTest#testNumberOfRestarts."""
    restarts = Restarts(FixedDelayRestart(3, 10))
    assert [restarts.failed(now_ms) for now_ms in (0, 5, 7)] == [RestartAt(10, 1), RestartAt(15, 2), RestartAt(17, 3)]
    assert isinstance(restarts.failed(9), GiveUp)


def test_no_restarts_at_all() -> None:
    for strategy in (FixedDelayRestart(0, 0), NoRestart()):
        assert isinstance(Restarts(strategy).failed(0), GiveUp)


@pytest.mark.parametrize(("third_ms", "is_final"), [(100, True), (101, False)])
def test_with_a_rate_one_more_than_allowed_within_the_interval_is_final(third_ms: float, is_final: bool) -> None:
    strategy = FailureRateRestart(2, 100, 5)
    for now_ms in (0.0, 50.0, third_ms):
        assert strategy.can_restart(now_ms)
        strategy.notify_failure(now_ms)
    assert strategy.can_restart(third_ms) is not is_final


def test_failures_far_apart_go_on_for_ever() -> None:
    """Flink: FailureRateRestartBackoffTimeStrategyTest#testManyFailuresWithinRate."""
    restarts = Restarts(FailureRateRestart(1, 10, 0))
    assert all(isinstance(restarts.failed(11.0 * number), RestartAt) for number in range(50))


@pytest.mark.parametrize("strategy", [FixedDelayRestart(1, 0), FailureRateRestart(1, 10, 0)])
def test_asking_changes_nothing(strategy: RestartStrategy) -> None:
    strategy.notify_failure(0)
    assert [strategy.can_restart(0) for _ in range(5)] == [True] * 5


def test_what_is_not_recoverable_is_not_told_to_the_strategy() -> None:
    restarts = Restarts(FixedDelayRestart(1, 0))
    assert isinstance(restarts.failed(0, is_recoverable=False), GiveUp)
    assert isinstance(restarts.failed(0), RestartAt)


def test_only_the_newest_timer_counts_and_only_once() -> None:
    restarts = Restarts(FixedDelayRestart(9, 100))
    first, second = restarts.failed(0), restarts.failed(50)
    assert isinstance(first, RestartAt)
    assert isinstance(second, RestartAt)
    assert not restarts.fires(first.version)
    assert restarts.fires(second.version)
    assert not restarts.fires(second.version)


def test_after_cancelling_no_timer_counts() -> None:
    restarts = Restarts(FixedDelayRestart(9, 100))
    armed = restarts.failed(0)
    assert isinstance(armed, RestartAt)
    restarts.disarm()
    assert not restarts.fires(armed.version)


@pytest.mark.parametrize("seed", range(50))
def test_a_rate_is_what_counting_says(seed: int) -> None:
    print(f"{seed=}")
    draw = random.Random(seed)
    most, interval_ms = draw.randint(1, 5), draw.randint(1, 50)
    strategy, failures, now_ms = FailureRateRestart(most, interval_ms, 0), list[float](), 0.0
    for _ in range(200):
        now_ms += draw.randint(0, 20)
        if draw.random() < 0.6:
            strategy.notify_failure(now_ms)
            failures.append(now_ms)
        within = sum(now_ms - each <= interval_ms for each in failures)
        assert strategy.can_restart(now_ms) == (within <= most)


@pytest.mark.parametrize("numbers", [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_a_rate_of_nothing_is_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(LocalUsageError):
        FailureRateRestart(*numbers)


@pytest.mark.parametrize("numbers", [(-1, 0), (1, -1)])
def test_a_delay_below_0_is_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(LocalUsageError):
        FixedDelayRestart(*numbers)
