"""Words for checkpoints: what a table in a terminal and a view in a notebook both say."""

from __future__ import annotations

from refimpl.checkpoint.reasons import CheckpointFailureReason

__all__ = ["LIST_HEAD", "duration_words", "list_row", "reason_words", "size_words"]

_R = CheckpointFailureReason

_REASONS = {
    _R.TIMER_STOPPED: "the timer was stopped",
    _R.TOO_MANY_REQUESTS: "too many requests were waiting",
    _R.MIN_PAUSE: "the pause after the last one was not over",
    _R.NOT_ALL_RUNNING: "not all tasks were running",
    _R.EXPIRED: "it took too long",
    _R.SUBSUMED: "a newer one completed first",
    _R.SUSPENDED: "the job stopped running",
    _R.TASK_FAILED: "a task failed",
    _R.FINALIZE: "its manifest could not be written",
    _R.DECLINED: "a task declined",
    _R.IO: "a task could not write its state",
    _R.DECLINED_NOT_READY: "a task was not ready",
    _R.DECLINED_SUBSUMED: "a newer barrier came to a task first",
    _R.DECLINED_CANCELLED: "a cancel marker came to a task",
    _R.DECLINED_INPUT_ENDED: "the input of a task ended first",
}


def reason_words(reason: CheckpointFailureReason) -> str:
    """Why a checkpoint failed or was not begun, behind `since` or a colon."""
    return _REASONS[reason]


def size_words(num_bytes: int) -> str:
    """A size in the largest unit of which there is one."""
    size, unit = float(num_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{num_bytes} B" if unit == "B" else f"{size:.1f} {unit}"


def duration_words(ms: float) -> str:
    """A time in ms, in seconds from ten of them on; of small ones two places behind the point."""
    if ms >= 10_000:
        return f"{ms / 1000:.1f} s"
    places = 2 if ms < 10 else 1 if ms < 1_000 else 0
    return f"{ms:.{places}f}".rstrip("0").rstrip(".") + " ms" if places else f"{ms:.0f} ms"


def list_row(checkpoint_id: int, kind: str, num_bytes: int, ms: float) -> str:
    """What a line of a list of checkpoints begins with, below `LIST_HEAD`."""
    return f"{checkpoint_id:>6}  {kind:<10}  {size_words(num_bytes):>10}  {duration_words(ms):>9}"


LIST_HEAD = f"{'id':>6}  {'kind':<10}  {'size':>10}  {'duration':>9}"
