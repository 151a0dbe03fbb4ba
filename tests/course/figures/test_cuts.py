"""What lesson 14 shows is what the engine does."""

from __future__ import annotations

from collections import Counter

import pytest

from course.data.crashes import count_through_a_crash
from course.data.sample import sample_flights
from course.figures.cuts import after_a_crash, barriers_behind, crash_recorded, race_of_barriers, told_to_the_aligner
from course.figures.jam import barriers_through
from refimpl.config import CheckpointingMode
from widgets import AlignmentView

ORIGINS = [flight["origin"] for flight in sample_flights(300)]


def test_a_crash_costs_what_the_lesson_says():
    found = {row[0]: row[-2:] for row in after_a_crash().rows}
    assert found == {
        "(as they were)": ("600", ""),
        "cut at the first barrier": ("595", "✗ 5 lost"),
        "cut at the last, nobody waits": ("607", "✗ 7 twice"),
        "cut at the last, who has it waits": ("600", "✓"),
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("crash_step", [40, 90])
def test_with_alignment_a_crash_costs_nothing(seed, crash_step):
    found = count_through_a_crash(ORIGINS, seed=seed, crash_step=crash_step)
    assert found.counts == Counter(ORIGINS), (seed, crash_step)


@pytest.mark.slow
def test_without_it_nothing_is_lost_and_some_may_count_twice():
    origins = [flight["origin"] for flight in sample_flights(600)]
    found = [count_through_a_crash(origins, CheckpointingMode.AT_LEAST_ONCE, seed=seed) for seed in range(4)]
    assert all(each.counts[key] >= number for each in found for key, number in Counter(origins).items())
    assert any(each.total > len(origins) for each in found)
    assert all(each.restored_id > 0 for each in found)


def test_the_race_has_a_channel_that_waits_with_much_behind_its_barrier():
    recording = race_of_barriers()
    view = AlignmentView(recording)
    try:
        models = [view.model_of(*moment, view._known) for moment in recording.moments]
    finally:
        view.close()
    board = [model["tasks"][-1] for model in models]
    waits = [channel["behind_buffers"] for task in board for channel in task["channels"] if channel["state"] == "waits"]
    assert max(waits) >= 9
    assert board[35]["channels"][0]["state"] == "waits"
    assert board[-1]["num_completed"] >= 2


def test_the_recorded_crash_goes_on_from_a_checkpoint():
    snapshot, _ = crash_recorded().moments[-1]
    assert snapshot.checkpoints.counts.num_restored == 1
    assert snapshot.checkpoints.counts.num_completed > 2


@pytest.mark.slow
def test_with_credits_a_barrier_has_less_to_stand_behind():
    with_credits, without = (barriers_through(8, credit_based=each) for each in (True, False))
    assert all(one < other for one, other in zip(with_credits, without, strict=True))
    assert max(with_credits[1:]) * 4 < min(without[1:])
    assert [row[1:] for row in barriers_behind().rows] == [tuple(map(str, each)) for each in (without, with_credits)]


def test_what_an_aligner_is_told_stands_beside_what_it_does():
    rows = told_to_the_aligner("0 barrier 1", "1 cancels 2", "0 barrier 2", "2 ends", "1 barrier 3", "0 barrier 3").rows
    assert rows == (
        ("channel 0 barrier 1", "-", "0"),
        ("channel 1 cancels 2", "0 goes on, abort 2 (CANCELLED)", "-"),
        ("channel 0 barrier 2", "0 goes on", "-"),
        ("channel 2 ends", "-", "-"),
        ("channel 1 barrier 3", "-", "1"),
        ("channel 0 barrier 3", "0 goes on, 1 goes on, cut 3", "-"),
    )
