"""How many checkpoints may fail in a row, and which failures count: as Flink 1.11.4 counts them."""

from __future__ import annotations

import pytest

from refimpl.checkpoint import CheckpointFailureManager, CheckpointFailureReason
from refimpl.consumer import AbortReason
from refimpl.errors import LocalUsageError

COUNTED = {"CHECKPOINT_DECLINED", "CHECKPOINT_EXPIRED", "CHECKPOINT_ASYNC_EXCEPTION"}


@pytest.mark.parametrize("reason", CheckpointFailureReason)
def test_what_counts(reason: CheckpointFailureReason) -> None:
    """Asked of Flink's own class, reason by reason."""
    manager = CheckpointFailureManager(tolerable=5)
    manager.failed(1, reason)
    assert manager.num_failed == (reason.value in COUNTED)
    assert CheckpointFailureManager(0).failed(1, reason) == (reason.value in COUNTED)


def test_a_task_declines_with_a_reason_that_the_coordinator_has_too() -> None:
    for reason in AbortReason:
        assert CheckpointFailureReason(reason.value).value == reason.value


def test_a_checkpoint_counts_once_however_many_decline_it() -> None:
    manager = CheckpointFailureManager(tolerable=1)
    assert [manager.failed(1, CheckpointFailureReason.DECLINED) for _ in range(5)] == [False] * 5
    assert manager.failed(1, CheckpointFailureReason.EXPIRED) is False
    assert manager.failed(2, CheckpointFailureReason.EXPIRED) is True


def test_one_that_completes_sets_the_count_to_0() -> None:
    manager = CheckpointFailureManager(tolerable=1)
    for checkpoint_id in range(0, 10, 2):
        assert manager.failed(checkpoint_id, CheckpointFailureReason.DECLINED) is False
        manager.completed()
    assert manager.num_failed == 0


def test_after_the_job_has_failed_the_count_begins_anew() -> None:
    manager = CheckpointFailureManager(tolerable=1)
    told = [manager.failed(checkpoint_id, CheckpointFailureReason.DECLINED) for checkpoint_id in range(6)]
    assert told == [False, True] * 3


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(LocalUsageError):
        CheckpointFailureManager(-1)
