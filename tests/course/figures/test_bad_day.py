"""What lesson 17 shows is what the engine does; and other days end as well as that one."""

from __future__ import annotations

import pytest

from course.data.bad_days import NUM_FLIGHTS, SEED, TroubleKind, drawn, lived
from course.data.sample import sample_flights
from course.figures.bad_day import bad_day_recorded, both_days, incident_timeline, told_to_the_sink, troubles_ahead
from refimpl.checkpoint import CheckpointStatus

SHORT = sample_flights(300)
SHORT_MS = 28.0


@pytest.fixture(scope="module")
def quiet():
    return lived(flights=SHORT)


def test_a_quiet_day_prints_what_it_commits_and_has_no_incidents(quiet):
    assert quiet.printed == quiet.committed
    assert (quiet.num_read, quiet.num_again, quiet.incidents) == (len(SHORT), 0, [])
    assert len({line.rsplit(" ", 2)[0] for line in quiet.committed}) == len(quiet.committed)
    assert sum(int(line.split()[2]) for line in quiet.committed) == sum(
        flight["dep_delay_minutes"] is not None for flight in SHORT
    )


@pytest.mark.parametrize("seed", [1, 4, 6])  # days that go on from a checkpoint
def test_other_days_commit_what_a_quiet_one_does_each_once(seed, quiet):
    day = lived(drawn(seed, length_ms=SHORT_MS), seed, flights=SHORT, check_every=1)
    assert day.committed == quiet.committed, seed
    assert set(day.printed) == set(quiet.printed), seed
    assert len(day.printed) >= len(quiet.printed), seed
    assert day.num_read == len(SHORT) + day.num_again, seed
    assert day.checkpoints.counts.num_restored > 0, seed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 30))
def test_a_day_with_twice_as_many_troubles_commits_the_same(seed, quiet):
    assert lived(drawn(seed, 2, SHORT_MS), seed, flights=SHORT, check_every=1).committed == quiet.committed, seed


def test_a_seed_draws_each_kind_and_always_the_same():
    assert drawn(9, 2) == drawn(9, 2) != drawn(10, 2)
    assert sorted(each.kind.value for each in drawn(9, 2)) == sorted(2 * [kind.value for kind in TroubleKind])
    times = [each.at_ms for each in drawn(9, 2)]
    assert times == sorted(times)


def test_the_lesson_tells_the_day_as_it_went():
    rows = incident_timeline().rows
    assert [row[1:] for row in rows if "goes on" in row[1]] == [
        ("the job goes on from checkpoint 2", "104 flights come again"),
        ("the job goes on from checkpoint 4", "128 flights come again"),
    ]
    assert [row[1] for row in rows if row[2] == "the job runs on without it"] == [
        "checkpoint 1 is given up",
        "checkpoint 5 is given up",
    ]
    assert rows[2][:2] == ("15.3 ms", "tm-1 is gone")
    assert [row[1] for row in troubles_ahead().rows] == [each.kind.value for each in drawn(SEED)]
    assert both_days().rows == (
        ("quiet day, printed", "600", "39", "0", "0", "✓"),
        ("quiet day, files", "600", "39", "0", "0", "✓"),
        ("bad day, printed", str(NUM_FLIGHTS + 104 + 128), "46", "0", "7", "✗"),
        ("bad day, files", str(NUM_FLIGHTS + 104 + 128), "39", "0", "0", "✓"),
    )


def test_the_recorded_day_fits_one_view_and_has_both_restarts():
    moments = list(bad_day_recorded().moments)
    assert len(moments) <= 48
    assert [what for _, what in moments if what == "tm-1 is gone"] == ["tm-1 is gone"]
    stats = moments[-1][0].checkpoints
    assert stats.counts.num_restored == 2
    assert {each.checkpoint_id for each in stats.history if each.num_restores} <= {2, 4}
    assert stats.latest_completed.status is CheckpointStatus.COMPLETED


def test_what_waits_is_committed_after_a_crash_and_what_was_open_is_written_again():
    rows = told_to_the_sink("+ A", "barrier 1", "+ B", "dies, on from 1", "+ B", "barrier 2", "complete 2").rows
    assert rows == (
        ("+ A", "t0 (A)", "-", "-"),
        ("barrier 1", "t1 ()", "t0 (A) for 1", "-"),
        ("+ B", "t1 (B)", "t0 (A) for 1", "-"),
        ("dies, on from 1", "t2 ()", "-", "A"),
        ("+ B", "t2 (B)", "-", "A"),
        ("barrier 2", "t3 ()", "t2 (B) for 2", "A"),
        ("complete 2", "t3 ()", "-", "A B"),
    )
