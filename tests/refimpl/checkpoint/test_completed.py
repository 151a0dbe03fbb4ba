"""Which checkpoints are kept, and which stay when the job has ended."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import CompletedCheckpoint, CompletedCheckpoints, JobEnd, Retention
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind


def checkpoint(checkpoint_id: int, kind: CheckpointKind = CheckpointKind.CHECKPOINT) -> CompletedCheckpoint:
    return CompletedCheckpoint(checkpoint_id, kind, (), 0, 0)


def test_the_newest_are_kept_and_what_they_push_out_is_told() -> None:
    kept = CompletedCheckpoints(num_retained=2)
    assert kept.latest is None
    assert [kept.add(checkpoint(number)) for number in (1, 3, 4)] == [[], [], [checkpoint(1)]]
    assert kept.kept == (checkpoint(3), checkpoint(4))
    assert kept.latest == checkpoint(4)


def test_they_complete_in_order() -> None:
    kept = CompletedCheckpoints(num_retained=2)
    kept.add(checkpoint(2))
    for late in (1, 2):
        with pytest.raises(LocalUsageError, match=f"checkpoint {late} completes after checkpoint 2"):
            kept.add(checkpoint(late))


def test_a_savepoint_that_a_job_began_with_is_pushed_out_and_not_deleted() -> None:
    kept = CompletedCheckpoints(restored=[checkpoint(7, CheckpointKind.SAVEPOINT)])
    assert kept.latest == checkpoint(7, CheckpointKind.SAVEPOINT)
    assert kept.add(checkpoint(8)) == []
    assert kept.kept == (checkpoint(8),)


STAY = {
    Retention.DELETE: set(),
    Retention.ON_FAILURE: {JobEnd.FAILED},
    Retention.ON_CANCELLATION: {JobEnd.FAILED, JobEnd.CANCELED},
}


@pytest.mark.parametrize("retention", Retention)
@pytest.mark.parametrize("end", JobEnd)
def test_after_the_end_they_stay_as_the_job_wanted(retention: Retention, end: JobEnd) -> None:
    kept = CompletedCheckpoints(2, retention, [checkpoint(2), checkpoint(1)])
    dropped = kept.dispose(end)
    assert dropped == ([] if end in STAY[retention] else [checkpoint(1), checkpoint(2)])


def test_none_kept_is_refused() -> None:
    with pytest.raises(LocalUsageError):
        CompletedCheckpoints(0)
