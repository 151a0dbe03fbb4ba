"""JStorm's trigger, master and controller, rule by rule."""

from __future__ import annotations

import pytest

from refimpl.rivals import Complaint, SourceController, TaskTrigger, TopologyMaster, jstorm


def looks(trigger: TaskTrigger, *loads: float) -> list[Complaint | None]:
    return [trigger.look(load) for load in loads]


def test_the_constants_are_those_of_the_code() -> None:
    assert (jstorm.HIGH, jstorm.LOW, jstorm.CHECK_MS, jstorm.NUM_LOOKS) == (0.8, 0.05, 1_000, 4)
    assert (jstorm.SAMPLE_RATE, jstorm.TRIGGER_RATIO, jstorm.GREW_MS) == (0.75, 0.1, 5)
    assert TopologyMaster.period_ms == 4_000


def test_three_of_four_high_looks_are_a_complaint() -> None:
    trigger = TaskTrigger()
    assert looks(trigger, 0.9, 0.5, 0.9, 0.9) == [None, None, None, Complaint.START]
    assert looks(trigger, 0.9, 0.5, 0.9, 0.5) == [None] * 4
    assert looks(trigger, 0.801, 0.801, 0.801, 0.8) == [None, None, None, Complaint.START]
    assert looks(trigger, 0.8, 0.8, 0.801, 0.801) == [None] * 4


def test_three_of_four_low_looks_are_a_stop_for_who_has_complained() -> None:
    trigger = TaskTrigger()
    assert looks(trigger, 0.0, 0.0, 0.0, 0.0) == [None] * 4
    looks(trigger, 1.0, 1.0, 1.0, 1.0)
    assert looks(trigger, 0.05, 0.05, 0.06, 0.05) == [None, None, None, Complaint.STOP]
    assert looks(trigger, 0.06, 0.06, 0.05, 0.05) == [None] * 4
    assert looks(trigger, 0.0, 0.0, 0.0, 0.0)[-1] is Complaint.STOP  # again, until the master tells it otherwise


def test_the_master_acts_when_a_tenth_of_the_tasks_complain() -> None:
    master = TopologyMaster(num_tasks=20)
    assert master.start(0, 7, 0.0) is None
    assert master.start(1, 7, 4_000.0) == 7


def test_the_master_acts_once_in_four_seconds_unless_the_time_grew_by_more_than_five() -> None:
    master = TopologyMaster()
    assert master.start(0, 10, 0.0) == 10
    assert master.start(0, 15, 1_000.0) is None
    assert master.start(0, 16, 2_000.0) == 16
    assert master.start(0, 17, 5_999.0) is None
    assert master.start(0, 17, 6_000.0) == 17


def test_a_stop_waits_its_time_and_a_start_after_it_does_not() -> None:
    master = TopologyMaster()
    assert not master.stop(0, 0.0)  # nobody has complained
    assert master.start(0, 10, 0.0) == 10
    assert not master.stop(0, 3_999.0)
    assert master.stop(0, 4_000.0)
    assert master.start(0, 10, 4_500.0) == 10
    master.source_is_free()
    assert not master.stop(0, 99_000.0)


@pytest.mark.parametrize(
    ("sleep", "bound", "execute", "expected", "expected_bound"),
    [
        (0, 0, 0, 1, 1),
        (7, 9, 0, 8, 9),
        (0, 0, 13, 13, 13),  # above the bound: at once
        (3, 12, 13, 13, 13),
        (13, 13, 13, 14, 14),  # at the bound: a step beyond
        (6, 13, 13, 10, 13),  # half way, rounded up
        (20, 20, 13, 21, 21),  # below the bound, and there already
        (14, 20, 13, 17, 20),  # towards the bound
        (6, 20, 13, 10, 20),  # towards the time
    ],
)
def test_a_start_makes_the_source_slower(
    sleep: int, bound: int, execute: int, expected: int, expected_bound: int
) -> None:
    controller = SourceController()
    controller.sleep_ms, controller.max_bound = sleep, bound
    controller.start(execute)
    assert (controller.sleep_ms, controller.max_bound) == (expected, expected_bound)


def test_the_emit_queue_is_cut_to_a_hundredth_and_ten_at_least() -> None:
    small, large = SourceController(256), SourceController(5_000)
    small.start(3)
    large.start(3)
    assert (small.queue_limit, large.queue_limit) == (10, 50)
    while not large.stop():
        pass
    assert (large.queue_limit, large.sleep_ms, large.max_bound, large.min_bound) == (5_000, 0, 0, 0)


def test_each_stop_halves() -> None:
    controller = SourceController()
    controller.start(13)
    sleeps = []
    while not controller.stop():
        sleeps.append(controller.sleep_ms)
        assert controller.min_bound == controller.sleep_ms
    assert sleeps == [6, 3, 1]


def test_a_stop_after_a_start_goes_half_way_to_what_was_too_fast_before() -> None:
    controller = SourceController()
    controller.start(13)
    controller.stop()
    assert (controller.sleep_ms, controller.min_bound) == (6, 6)
    controller.start(13)
    assert controller.sleep_ms == 10
    controller.stop()
    assert controller.sleep_ms == 8
