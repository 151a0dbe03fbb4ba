"""What the figures of unaligned checkpoints show is what the engine does, and what the text beside them may say."""

from __future__ import annotations

import pytest

from course.figures.overtaking import (
    WAYS,
    Cut,
    crash_recorded,
    cuts_of,
    given_up_recorded,
    race_recorded,
    told_to_the_unaligner,
    what_is_copied,
)
from widgets import AlignmentView

Runs = dict[str, list[Cut]]


@pytest.fixture(scope="module")
def runs() -> Runs:
    return {way: cuts_of(wait_ms) for way, wait_ms in WAYS.items()}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_has_checkpoints_in_order(way: str, runs: Runs):
    ids = [each.checkpoint_id for each in runs[way]]
    assert len(ids) > 2
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("way", ["never", "after 1000 ms"])
def test_a_barrier_that_waits_its_turn_copies_nothing(way: str, runs: Runs):
    assert {(each.input_bytes, each.output_bytes) for each in runs[way]} == {(0, 0)}


def test_barriers_that_overtake_are_sooner_and_copy_both_sides(runs: Runs):
    at_once, never = runs["at once"], runs["never"]
    assert max(each.took_ms for each in at_once) < max(each.took_ms for each in never)
    assert len(at_once) > len(never)
    assert max(each.input_bytes for each in at_once) > 0
    assert max(each.output_bytes for each in at_once) > max(each.input_bytes for each in at_once)


def test_who_waits_first_copies_less(runs: Runs):
    at_once, later = ([each.input_bytes + each.output_bytes for each in runs[way]] for way in ("at once", "after 2 ms"))
    assert 0 < max(later) < max(at_once)


def test_a_reader_that_keeps_up_leaves_less_to_copy(runs: Runs):
    idle = cuts_of(0, pace=2)
    assert max(each.output_bytes for each in idle) < max(each.output_bytes for each in runs["at once"])


def test_the_table_is_of_these_runs(runs: Runs):
    rows = {row[0]: row[1:] for row in what_is_copied().rows}
    assert list(rows) == list(WAYS)
    for way, cuts in runs.items():
        assert rows[way][0] == str(len(cuts))
        assert rows[way][1] == f"{max(each.took_ms for each in cuts):.2f} ms"
        assert rows[way][3:] == tuple(
            f"{max(getattr(each, side) for each in cuts)} B" for side in ("input_bytes", "output_bytes")
        )


def test_a_barrier_of_the_race_is_before_what_waits_only_if_it_overtakes():
    def words_of(overtake: bool) -> str:
        recording = race_recorded(overtake)
        view = AlignmentView(recording)
        try:
            return "\n".join(
                line for moment in recording.moments for line in view.words_of(view.model_of(*moment, view._known))
            )
        finally:
            view.close()

    assert "barrier 1 behind 7 buffers" in words_of(overtake=False)
    overtaken = words_of(overtake=True)
    assert "barrier 1 behind" not in overtaken
    assert "barrier 2 comes next" in overtaken


def test_what_an_unaligner_is_told_stands_beside_what_it_does():
    told = ("0 barrier 1", "2 barrier 1", "1 barrier 1", "2 barrier 2", "0 barrier 3", "1 barrier 2", "1 cancels 3",
            "2 barrier 3", "0 barrier 4", "1 ends", "2 barrier 4", "0 barrier 5", "2 barrier 5")  # fmt: skip
    assert told_to_the_unaligner(*told).rows == (
        ("channel 0 barrier 1", "cut 1, copy from here", "1, 2"),
        ("channel 2 barrier 1", "-", "1"),
        ("channel 1 barrier 1", "1 has all", "-"),
        ("channel 2 barrier 2", "cut 2, copy from here", "0, 1"),
        ("channel 0 barrier 3", "abort 2 (SUBSUMED), cut 3, copy from here", "1, 2"),
        ("channel 1 barrier 2", "-", "1, 2"),
        ("channel 1 cancels 3", "abort 3 (CANCELLED)", "-"),
        ("channel 2 barrier 3", "-", "-"),
        ("channel 0 barrier 4", "cut 4, copy from here", "1, 2"),
        ("channel 1 ends", "abort 4 (INPUT_ENDED)", "-"),
        ("channel 2 barrier 4", "-", "-"),
        ("channel 0 barrier 5", "cut 5, copy from here", "2"),
        ("channel 2 barrier 5", "5 has all", "-"),
    )


def test_what_is_recorded_is_what_the_lesson_tells():
    given_up, _ = given_up_recorded().moments[-1]
    crashed, _ = crash_recorded().moments[-1]
    assert given_up.checkpoints.counts.num_failed > 2
    assert crashed.checkpoints.counts.num_restored == 1
    assert any(each.is_unaligned for each in crashed.checkpoints.history)
