"""Storm's queues, workers and flag."""

from __future__ import annotations

import math

import pytest

from refimpl.rivals import SLOW, SOURCE, Course, DisruptorQueue, Storm, Workload, storm

SECOND = 1_000.0


def filled(queue: DisruptorQueue, number: int) -> DisruptorQueue:
    for _ in range(number):
        queue.add(0.0)
    return queue


def test_the_constants_are_those_of_defaults_yaml() -> None:
    assert (storm.QUEUE_SIZE, storm.HIGH_WATER, storm.LOW_WATER) == (1_024, 0.9, 0.4)
    assert (storm.POLL_MS, storm.SPOUT_WAIT_MS) == (100, 1)


def test_high_water_is_seen_when_a_record_is_added() -> None:
    calls: list[bool] = []
    queue = DisruptorQueue()
    queue.on_change = lambda: calls.append(queue.is_throttling)
    filled(queue, 920)  # int(0.9 * 1024) is 921
    assert not queue.is_throttling
    queue.add(0.0)
    assert queue.is_throttling
    filled(queue, 50)
    assert calls == [True]  # once


def test_low_water_is_seen_when_a_record_is_taken() -> None:
    queue = filled(DisruptorQueue(), 921)
    while queue.population > 410:  # int(0.4 * 1024) is 409
        queue.consume()
    assert queue.is_throttling
    queue.consume()
    assert not queue.is_throttling


def test_what_does_not_fit_goes_into_a_list_without_a_bound_and_counts_as_population() -> None:
    queue = filled(DisruptorQueue(10), 9)
    while queue.consume() is not None:
        pass
    assert not queue.is_throttling
    filled(queue, 5_000)
    assert (queue.population, queue.num_overflow, queue.is_full) == (5_000, 4_990, True)
    assert queue.is_throttling


def quiet(system: Storm, until_ms: float, step_ms: float = 1.0, from_ms: float = 0.0) -> None:
    now = from_ms
    while now < until_ms:
        now += step_ms
        if system.next_tick_ms <= now:
            system.on_tick(now)


def test_a_flag_of_any_worker_stops_all_spouts_and_the_last_to_clear_it_lets_them_go() -> None:
    system = Storm()
    assert system.may_emit(SLOW, 0.0) == 0
    filled(system.receive[2, 0], 1_000)
    filled(system.receive[1, 1], 1_000)
    quiet(system, 10)  # a callback wakes the worker; write, notice and read take the store a moment each
    assert [worker.is_throttled for worker in system.workers] == [True] * 3
    assert system.may_emit(0, 10.0) == system.may_emit(1, 10.0) == 1.0  # looks again after 1 ms
    session = system.store.connect(1_000, 0)
    assert system.store.children(session, "/backpressure/job") == ("worker-1", "worker-2")
    while system.receive[2, 0].consume() is not None:
        pass
    quiet(system, 20, from_ms=10)
    assert system.may_emit(0, 20.0) == 1.0
    while system.receive[1, 1].consume() is not None:
        pass
    quiet(system, 30, from_ms=20)
    assert system.may_emit(0, 30.0) == 0.0


def test_the_flag_is_written_only_when_it_changes() -> None:
    system = Storm()
    filled(system.receive[2, 0], 1_000)
    quiet(system, 2 * SECOND)
    assert [worker.num_writes for worker in system.workers] == [0, 0, 1]


def test_a_callback_that_is_lost_is_made_good_by_the_look_every_100_ms() -> None:
    system = Storm()
    system.receive[2, 0].on_change = lambda: None
    filled(system.receive[2, 0], 1_000)
    quiet(system, 99)
    assert not system.workers[SOURCE].is_throttled
    quiet(system, 110, from_ms=99)
    assert system.workers[SOURCE].is_throttled


def test_a_worker_that_dies_takes_its_flag_with_it() -> None:
    system = Storm()
    filled(system.receive[2, 0], 1_000)
    quiet(system, 200)
    dead = system.workers.pop()
    quiet(system, 20 * SECOND, 10.0, from_ms=200)
    system.store.expire(20_200)  # its session is one of 20 s
    quiet(system, 20_300, from_ms=20_200)
    assert dead.is_throttled
    assert not system.workers[SOURCE].is_throttled


def test_spouts_stop_and_go() -> None:
    course = Course(Storm(), Workload(0))
    emitted = []
    for second in range(1, 91):
        before = course.emitted[SLOW]
        course.run_until(second * SECOND)
        emitted.append(course.emitted[SLOW] - before)
    held = emitted[60:]
    assert sum(not each for each in held) > 8
    assert sum(each > 150 for each in held) > 5


@pytest.mark.parametrize("refresh_ms", [math.inf, storm.REFRESH_MS])
def test_storm_1949_a_low_water_that_nobody_hears_of_stops_the_topology_for_ever(refresh_ms: float) -> None:
    """Spouts hear that a flag went up, and not that it went down. They emit nothing, so no flag ever changes again.

    Source: STORM-1949, and why the mechanism is off by default since 1.0.2 (STORM-1956); 1.0.3 reads again every 30 s.
    """
    system = Storm(refresh_ms)
    filled(system.receive[2, SLOW], 1_000)
    quiet(system, 10)
    spouts = system.workers[SOURCE]
    assert spouts.is_throttled
    spouts.is_deaf = True
    while system.receive[2, SLOW].consume() is not None:
        pass
    quiet(system, 20, from_ms=10)
    spouts.is_deaf = False
    session = system.store.connect(1_000, 20)
    assert system.store.children(session, "/backpressure/job") == ()
    quiet(system, 29 * SECOND, 10.0, from_ms=20)
    assert system.may_emit(0, 29 * SECOND) == system.may_emit(1, 29 * SECOND) == 1.0
    quiet(system, 600 * SECOND, 10.0, from_ms=29 * SECOND)
    assert spouts.is_throttled == (refresh_ms == math.inf)
    assert system.measure().queued == 0


def test_who_throttles_after_the_queue_was_emptied_waits_for_the_next_record() -> None:
    """Low water is seen only when something is taken out: with spouts that stand still that is never."""
    queue = filled(DisruptorQueue(), 920)
    population = queue.publish(0.0)
    while queue.consume() is not None:
        pass
    queue.looked(population)
    assert queue.is_throttling
    assert queue.consume() is None
    assert queue.is_throttling
    queue.add(0.0)
    queue.consume()
    assert not queue.is_throttling


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_what_is_inside_is_what_was_emitted_and_has_not_left(seed: int) -> None:
    system = Storm()
    course = Course(system, Workload(seed))
    for tenth in range(1, 800, 3):
        course.run_until(tenth * 100.0)
        held = system.measure()
        assert held.queued + held.unbounded == sum(course.emitted) - sum(course.left)
