"""The record of a run's checkpoints: whoever carries out what the coordinator decides tells it here, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from refimpl.checkpoint.decider import CheckpointRequest
from refimpl.checkpoint.decisions import (
    CheckpointAborted,
    CheckpointCompleted,
    CoordinatorDecision,
    DeleteManifest,
    RequestRefused,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.checkpoint.pending import Ack, AttemptId
from refimpl.checkpoint.stats import (
    CheckpointCounts,
    CheckpointStats,
    CheckpointStatsSnapshot,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskStats,
)
from refimpl.state.manifest import CheckpointKind

__all__ = ["CheckpointStatsTracker"]

_NUM_REMEMBERED = 10
"""Flink: web.checkpoints.history, 1.11.4"""


class CheckpointStatsTracker:
    """Keeps what became of the last `num_remembered` checkpoints, and of all that are in progress.

    It is told what was decided in the order in which that is carried out. What it hears of a checkpoint that it does
    not know, or of one that is over, changes nothing.

    Flink:   CheckpointStatsTracker, CheckpointStatsHistory (runtime.checkpoint), 1.11.4
    Differs: one that is in progress is never forgotten for newer ones. `latest_completed` is never a savepoint, as
             there; but a savepoint that was restored is told as what it is.
    """

    def __init__(self, num_remembered: int = _NUM_REMEMBERED) -> None:
        self._num_remembered = num_remembered
        self._known: dict[int, CheckpointStats] = {}  # the oldest first
        self._tasks: tuple[AttemptId, ...] = ()
        self._ended: dict[AttemptId, SubtaskStats] = {}  # the final acknowledgements, before there is a checkpoint
        self._now = CheckpointStatsSnapshot()

    def snapshot(self) -> CheckpointStatsSnapshot:
        """Everything at this moment: the same object until something changes."""
        return self._now

    # -- what is told ----------------------------------------------------------------------------------

    def started(self, tasks: Sequence[AttemptId]) -> None:
        """These attempts run from now on, and no others."""
        self._tasks = tuple(tasks)
        self._ended = {}

    def restored(self, checkpoint_id: int, kind: CheckpointKind, now_ms: float) -> None:
        """The job goes on from this one."""
        if (stats := self._known.get(checkpoint_id)) is not None:
            self._known[checkpoint_id] = replace(stats, num_restores=stats.num_restores + 1)
        self._count("num_restored", latest_restored=RestoredCheckpoint(checkpoint_id, kind, now_ms))

    def acknowledged(self, ack: Ack, now_ms: float, *, is_final: bool = False) -> None:
        """An attempt has done its part; `is_final`: of the checkpoint that is made when all have ended."""
        size = sum(file.size for file in ack.files)
        done = SubtaskStats(str(ack.attempt), now_ms, size, ack.alignment_ms, ack.buffered_bytes, ack.is_unaligned)
        if is_final:
            self._ended.setdefault(ack.attempt, done)
            return
        stats = self._in_progress(ack.checkpoint_id)
        if stats is not None:
            subtasks = (done if _is_missing(each, done.task) else each for each in stats.subtasks)
            self._change(replace(stats, subtasks=tuple(subtasks)))

    def note(self, decision: CoordinatorDecision, now_ms: float) -> None:
        """What the coordinator has decided; only what changes the record is looked at."""
        match decision:
            case TriggerCheckpoint(checkpoint_id, request):
                self._begin(checkpoint_id, request, now_ms, (SubtaskStats(str(each)) for each in self._tasks))
            case WriteManifest(checkpoint_id, request, started_ms):
                if checkpoint_id not in self._known:  # FINAL: nobody was told to begin it
                    self._begin(checkpoint_id, request, started_ms, self._ended.values())
                if (stats := self._in_progress(checkpoint_id)) is not None:
                    self._change(replace(stats, is_writing=True))
            case CheckpointCompleted(checkpoint):
                self._end(checkpoint.checkpoint_id, CheckpointStatus.COMPLETED, now_ms)
            case CheckpointAborted(checkpoint_id, _, reason, detail):
                if (stats := self._in_progress(checkpoint_id)) is not None:
                    self._known[checkpoint_id] = replace(stats, reason=reason, detail=detail)
                self._end(checkpoint_id, CheckpointStatus.FAILED, now_ms)
            case RequestRefused(_, reason):
                self._count("num_refused", refusal=reason)
            case DeleteManifest(checkpoint_id):
                stats = self._known.get(checkpoint_id)
                if stats is not None and stats.status is CheckpointStatus.COMPLETED:
                    self._change(replace(stats, is_discarded=True))

    # -- helpers ---------------------------------------------------------------------------------------

    def _in_progress(self, checkpoint_id: int) -> CheckpointStats | None:
        stats = self._known.get(checkpoint_id)
        return stats if stats is not None and stats.status is CheckpointStatus.IN_PROGRESS else None

    def _begin(
        self, checkpoint_id: int, request: CheckpointRequest, now_ms: float, subtasks: Iterable[SubtaskStats]
    ) -> None:
        self._known[checkpoint_id] = CheckpointStats(checkpoint_id, request.kind, now_ms, tuple(subtasks), request.name)
        self._count("num_triggered", "num_in_progress")

    def _end(self, checkpoint_id: int, status: CheckpointStatus, now_ms: float) -> None:
        stats = self._in_progress(checkpoint_id)
        if stats is None:
            return
        ended = replace(stats, status=status, is_writing=False, ended_ms=now_ms)
        self._known[checkpoint_id] = ended
        over = [each for each in self._known.values() if each.status is not CheckpointStatus.IN_PROGRESS]
        for each in over[: max(0, len(over) - self._num_remembered)]:
            del self._known[each.checkpoint_id]
        counts = self._now.counts
        self._now = replace(self._now, counts=replace(counts, num_in_progress=counts.num_in_progress - 1))
        if status is CheckpointStatus.FAILED:
            self._count("num_failed", latest_failed=ended)
        elif ended.kind is CheckpointKind.SAVEPOINT:
            self._count("num_completed", latest_savepoint=ended)
        else:
            self._count("num_completed", latest_completed=ended)

    def _count(self, *names: str, **latest: Any) -> None:
        """One more of each of these; and what is the latest now."""
        counts = self._now.counts
        raised: CheckpointCounts = replace(counts, **{name: getattr(counts, name) + 1 for name in names})
        self._now = replace(self._now, counts=raised, history=tuple(self._known.values()), **latest)

    def _change(self, stats: CheckpointStats) -> None:
        self._known[stats.checkpoint_id] = stats
        self._now = replace(self._now, history=tuple(self._known.values()))


def _is_missing(stats: SubtaskStats, task: str) -> bool:
    return stats.task == task and stats.acked_ms is None
