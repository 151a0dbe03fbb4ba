"""Samples of back pressure: when they are taken, what they say, and what becomes of those that come late."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest

from refimpl.cluster import (
    FORGET_AFTER_MS,
    REFRESH_AFTER_MS,
    BackPressureLevel,
    BackPressureMonitor,
    BackPressureStats,
    SampleTasks,
    TaskSampler,
)
from refimpl.errors import LocalUsageError

BOTH = {"map-0": True, "map-1": True}


def answered(monitor: BackPressureMonitor, request: int, now_ms: float, *ratios: float) -> None:
    for task, ratio in zip(BOTH, ratios, strict=True):
        monitor.answered(request, task, ratio, now_ms)


@pytest.mark.parametrize(
    ("ratio", "level"), [(0, "OK"), (0.1, "OK"), (0.11, "LOW"), (0.5, "LOW"), (0.51, "HIGH"), (1, "HIGH")]
)
def test_the_level_of_a_ratio(ratio: float, level: str) -> None:
    """Flink: JobVertexBackPressureHandlerTest#testGetBackPressure."""
    assert BackPressureLevel.of(ratio) is BackPressureLevel[level]


def test_the_first_question_has_no_answer_and_takes_samples_once() -> None:
    """Flink: BackPressureStatsTrackerImplTest#testTriggerStackTraceSample (P111)."""
    monitor = BackPressureMonitor()
    assert monitor.ask("map", BOTH, 0) == (None, [SampleTasks(1, ("map-0", "map-1"), 100, 50)])
    assert monitor.ask("map", BOTH, 10) == (None, [])
    assert monitor.next_deadline == 100 * 50 + 10_000
    answered(monitor, 1, 5_000, 0.2, 0.9)
    stats = BackPressureStats((0.2, 0.9), 5_000)
    assert monitor.ask("map", BOTH, 5_001) == (stats, [])
    assert stats.level is BackPressureLevel.HIGH
    assert monitor.next_deadline is None


def test_the_ratio_of_each_subtask_is_its_own() -> None:
    """Flink: BackPressureStatsTrackerImplTest#testTriggerStackTraceSample (P111): 4 subtasks, i + 1 of 4 held back."""
    tasks = [f"map-{number}" for number in range(4)]
    taken = dict.fromkeys(tasks, 0)

    def is_held_back(task: Hashable) -> bool:
        taken[str(task)] += 1
        return taken[str(task)] <= tasks.index(str(task)) + 1

    monitor, sampler = BackPressureMonitor(num_samples=4), TaskSampler(is_held_back)
    _, (order,) = monitor.ask("map", dict.fromkeys(tasks, True), 0)
    sampler.begin(order, 0)
    while (now_ms := sampler.next_deadline) is not None:
        for request, task, ratio in sampler.on_timeout(now_ms):
            monitor.answered(request, task, ratio, now_ms)
    stats, _ = monitor.ask("map", dict.fromkeys(tasks, True), 200)
    assert stats == BackPressureStats((0.25, 0.5, 0.75, 1.0), 150)


def test_old_samples_are_given_once_more_while_new_ones_are_taken() -> None:
    """Flink: BackPressureStatsTrackerImplTest#testCachedStatsUpdatedAfterRefreshInterval."""
    monitor = BackPressureMonitor()
    monitor.ask("map", BOTH, 0)
    answered(monitor, 1, 5_000, 0, 0)
    old = BackPressureStats((0, 0), 5_000)
    assert monitor.ask("map", BOTH, 5_000 + REFRESH_AFTER_MS - 1) == (old, [])
    stats, orders = monitor.ask("map", BOTH, 5_000 + REFRESH_AFTER_MS)
    assert (stats, [each.request for each in orders]) == (old, [2])


def test_a_vertex_nobody_asks_about_is_forgotten() -> None:
    """Flink: WebOptions.BACKPRESSURE_CLEANUP_INTERVAL, 1.11.4."""
    monitor = BackPressureMonitor()
    monitor.ask("map", BOTH, 0)
    answered(monitor, 1, 5_000, 0, 0)
    assert monitor.ask("map", BOTH, FORGET_AFTER_MS)[0] is not None
    assert monitor.ask("map", BOTH, 2 * FORGET_AFTER_MS + 1)[0] is None


def test_where_a_subtask_does_not_run_nothing_is_sampled() -> None:
    """Flink: BackPressureRequestCoordinatorTest#testRequestNotRunningTasks."""
    monitor = BackPressureMonitor()
    assert monitor.ask("map", {"map-0": True, "map-1": False}, 0) == (None, [])
    assert monitor.ask("map", {}, 0) == (None, [])


def test_what_is_not_answered_in_time_or_loses_a_subtask_is_given_up_and_late_answers_are_let_pass() -> None:
    """Flink: StackTraceSampleCoordinatorTest#testTriggerStackTraceSampleTimeout, #testCancelStackTraceSample (P112)."""
    monitor = BackPressureMonitor()
    monitor.ask("map", BOTH, 0)
    monitor.answered(1, "map-0", 0.5, 10)
    monitor.on_timeout(14_999)
    assert monitor.next_deadline == 15_000
    monitor.on_timeout(15_000)
    monitor.answered(1, "map-1", 0.5, 15_001)
    assert monitor.ask("map", BOTH, 20_000)[0] is None
    monitor.task_gone("another")
    assert monitor.next_deadline is not None
    monitor.task_gone("map-1")
    assert monitor.next_deadline is None
    monitor.answered(2, "map-0", 0.5, 20_001)


def test_an_answer_nobody_asked_for_is_refused() -> None:
    """Flink: StackTraceSampleCoordinatorTest#testCollectStackTraceForUnknownSample (P112)."""
    monitor = BackPressureMonitor()
    for now_ms in range(0, 11 * 20_000, 20_000):
        _, orders = monitor.ask("map", BOTH, now_ms)
        assert orders
        monitor.task_gone("map-0")
    with pytest.raises(LocalUsageError, match="request 1, which is none of ours"):
        monitor.answered(1, "map-0", 0, 1e6)
    monitor.answered(2, "map-0", 0, 1e6)
    monitor.ask("map", BOTH, 1e6)
    with pytest.raises(LocalUsageError, match="samples of sink-0"):
        monitor.answered(12, "sink-0", 0, 1e6)


def test_a_sampler_takes_its_samples_in_time_and_counts_who_is_held_back() -> None:
    """Flink: BackPressureSampleServiceTest."""
    held = {"a": iter([True, False, True, True]), "b": iter([False] * 4)}
    sampler = TaskSampler(lambda task: next(held[task]))
    sampler.begin(SampleTasks(7, ("a", "b"), 4, 50), 1_000)
    assert sampler.next_deadline == 1_000
    for now_ms in (1_000, 1_050, 1_300):
        assert sampler.on_timeout(now_ms) == []
    assert sampler.next_deadline == 1_350
    assert sampler.on_timeout(1_349) == []
    assert sampler.on_timeout(1_350) == [(7, "a", 0.75), (7, "b", 0.0)]
    assert sampler.next_deadline is None


def test_a_task_that_is_no_more_has_no_ratio_and_requests_do_not_mix() -> None:
    rng = random.Random(3)
    gone: set[str] = set()
    sampler = TaskSampler(lambda task: None if task in gone else task == "a")
    sampler.begin(SampleTasks(1, ("a", "b"), 3, 10), 0)
    sampler.begin(SampleTasks(2, ("a",), 2, 25), 5)
    found = sampler.on_timeout(0)
    gone.add("b")
    now_ms = 0.0
    while (due_ms := sampler.next_deadline) is not None:
        now_ms = due_ms + rng.random()
        found += sampler.on_timeout(now_ms)
    assert sorted(found) == [(1, "a", 1.0), (2, "a", 1.0)]


def test_what_cannot_be_sampled_is_refused() -> None:
    with pytest.raises(LocalUsageError, match="needs samples"):
        BackPressureMonitor(num_samples=0)
