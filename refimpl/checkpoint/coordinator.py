"""The checkpoints of one job: events in, decisions out.

A checkpoint is true only when its manifest is durable. So this is the order at its completion, and no step comes
before the one above it:

    all attempts have acknowledged     their files are durable
    its manifest is durable            from here on it is complete, whoever crashes
    it is in the list of those kept
    older ones are deleted             each manifest before its files
    the attempts are told              they commit; a message that is lost is covered by the next

One manifest is written at a time, that of the oldest checkpoint that is ready. While one is, a restart waits: the
outcome says from where. Which file may be deleted is never told by an id, only by what the checkpoints that count, or
still may, name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from refimpl.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints
from refimpl.checkpoint.decider import (
    CheckpointRequest,
    CheckpointRequestDecider,
    DeciderDecision,
    DropRequest,
    MoveTimer,
    StartCheckpoint,
)
from refimpl.checkpoint.decisions import (
    CheckpointAborted,
    CheckpointCompleted,
    CoordinatorDecision,
    Delete,
    DeleteManifest,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    RequestRefused,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.checkpoint.failures import CheckpointFailureManager
from refimpl.checkpoint.live_tasks import LiveTasks, TaskEvent, TaskPhase
from refimpl.checkpoint.options import CheckpointOptions
from refimpl.checkpoint.pending import Ack, AckResult, AttemptId, PendingCheckpoint
from refimpl.checkpoint.periodic import PeriodicTrigger
from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.checkpoint.snapshot import CoordinatorSnapshot
from refimpl.checkpoint.under_way import CheckpointsUnderWay
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind

__all__ = ["CheckpointCoordinator"]

_REMINDER_MS = 1_000.0
_LIVE = (TaskPhase.DEPLOYED, TaskPhase.RUNNING, TaskPhase.ENDED)


class CheckpointCoordinator:
    """Begins, follows and ends the checkpoints of one job; ids rise from `next_id` on, over all runs of the job.

    Every method takes the driver's time in ms and gives decisions, to be carried out in order. `start` and `stop` say
    when the job is RUNNING and no longer is. Messages from attempts may come late, twice, or from an older run.

    End of a bounded job: an attempt whose operators want a last notification reports `task_ended` with its final
    snapshot, and stays. When every attempt has ended or finished, these snapshots become checkpoint FINAL, and those
    that ended are told until they have finished. A restart before that drops the snapshots.

    An attempt reports that it has finished after the answers to its writes: what it has not acknowledged by then is
    given up.

    Flink:   CheckpointCoordinator, CheckpointCoordinatorDeActivator (runtime.checkpoint), 1.11.4
    Differs: 1.11 leaves the last epoch of a bounded job uncommitted. As from 1.15 on, nobody is told to commit on a
             savepoint, and it subsumes nothing: no restart looks at it but of a job that has begun with it. The timer
             asks for nothing while what it asked for is queued, so after a slow checkpoint no others follow at once.
             Files of a late ack are deleted for the last 16 ids only, Flink deletes all: an older savepoint may name
             them.
    """

    def __init__(self, options: CheckpointOptions, completed: CompletedCheckpoints, next_id: int = 1) -> None:
        self.completed = completed
        self.tasks = LiveTasks()
        self._options = options
        self._decider = CheckpointRequestDecider(options.max_concurrent, options.min_pause_ms)
        self._timer = PeriodicTrigger(options.interval_ms, options.min_pause_ms, options.seed)
        self._failures = CheckpointFailureManager(options.tolerable_failures)
        self._pending = CheckpointsUnderWay(next_id, options.timeout_ms)
        self._last_completion_ms: float | None = None

    # -- the job -------------------------------------------------------------------------------------

    def start(self, attempts: Sequence[AttemptId], sources: Sequence[AttemptId], now_ms: float) -> None:
        """The job is RUNNING, with these attempts, of which none has reported yet.

        Raises:
            LocalUsageError: the job was running, or a manifest is being written: wait for its outcome.
        """
        if self.tasks.attempts:
            raise LocalUsageError(f"the job runs already, with {len(self.tasks.attempts)} attempts")
        if (writing := self._pending.writing) is not None:
            raise LocalUsageError(f"the manifest of {writing} is being written: a restart waits for the outcome")
        self.tasks = LiveTasks(attempts, sources)
        self._timer.start(now_ms)

    def lose(self, attempts: Iterable[AttemptId], now_ms: float) -> list[CoordinatorDecision]:
        """These attempts have failed, or have been stopped with one that has; the others go on, without checkpoints."""
        decisions = self._give_up_all(now_ms)
        for attempt in attempts:
            self.tasks.report(attempt, TaskEvent.FAIL)
        return decisions

    def replace(self, attempts: Mapping[AttemptId, AttemptId]) -> list[CoordinatorDecision]:
        """Attempts that were lost have others in their places, which have not reported yet.

        Raises:
            LocalUsageError: a manifest is being written: wait for its outcome.
        """
        if (writing := self._pending.writing) is not None:
            raise LocalUsageError(f"the manifest of {writing} is being written: a restart waits for the outcome")
        return self._delete(file.key for ack in self.tasks.replace(attempts) for file in ack.files)

    def stop(self, now_ms: float) -> list[CoordinatorDecision]:
        """The job is RUNNING no longer: whatever can be given up is."""
        self._timer.stop()
        decisions = self._give_up_all(now_ms)
        final_acks, self.tasks = self.tasks.final_acks.values(), LiveTasks()
        return decisions + self._delete(file.key for ack in final_acks for file in ack.files)

    # -- time, and who asks --------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return min((each for each in (self._timer.due_ms, self.answer_deadline) if each is not None), default=None)

    @property
    def answer_deadline(self) -> float | None:
        """When whoever has not answered by then is given up, or told again, in ms."""
        deadlines = (self._pending.next_expiry, self.tasks.remind_at_ms)
        return min((each for each in deadlines if each is not None), default=None)

    def on_timeout(self, now_ms: float) -> list[CoordinatorDecision]:
        """Give up what has taken too long, remind who was told in vain, and ask for what is due."""
        decisions: list[CoordinatorDecision] = []
        for pending in self._pending.expired(now_ms):
            pending.fail(CheckpointFailureReason.EXPIRED, f"after {self._options.timeout_ms} ms")
            decisions += self._aborted(pending)
        if self.tasks.remind_at_ms is not None and now_ms >= self.tasks.remind_at_ms:
            decisions += self._tell_ended(now_ms)
        if self._timer.fires(now_ms) and not any(each.is_periodic for each in self._decider.queued):
            return decisions + self.submit(CheckpointRequest(0, now_ms, is_periodic=True), now_ms)
        return decisions + self._go_on(now_ms)

    def submit(self, request: CheckpointRequest, now_ms: float) -> list[CoordinatorDecision]:
        """Somebody asks for a checkpoint or a savepoint; its end is told with the request.

        Raises:
            LocalUsageError: nobody can ask for a FINAL one.
        """
        if request.kind is CheckpointKind.FINAL:
            raise LocalUsageError("a FINAL checkpoint comes by itself, when all input has ended")
        num_pending, last_ms = len(self._pending), self._last_completion_ms
        decisions = self._carry_out(self._decider.submit(request, now_ms, num_pending, last_ms), now_ms)
        return decisions + self._go_on(now_ms)

    # -- what attempts say ---------------------------------------------------------------------------

    def task_reports(self, attempt: AttemptId, event: TaskEvent, now_ms: float) -> list[CoordinatorDecision]:
        """An attempt runs, has finished, or has failed; for its end with a snapshot see `task_ended`.

        Raises:
            LocalUsageError: the event is END.
        """
        if event is TaskEvent.END:
            raise LocalUsageError(f"{attempt} has ended: say so with its final snapshot")
        if not self.tasks.report(attempt, event):
            return []
        decisions: list[CoordinatorDecision] = []
        if event is TaskEvent.FAIL:
            decisions += self._fail_without(attempt, CheckpointFailureReason.TASK_FAILED)
        elif event is TaskEvent.FINISH:
            decisions += self._fail_without(attempt, CheckpointFailureReason.DECLINED_INPUT_ENDED)
            if not self.tasks.in_phase(TaskPhase.ENDED):
                self.tasks.remind_at_ms = None
        return decisions + self._begin_final(now_ms) + self._go_on(now_ms)

    def task_ended(self, final: Ack, now_ms: float) -> list[CoordinatorDecision]:
        """The input of an attempt has ended, this is its final snapshot, and it waits to be told; again is fine."""
        if not self.tasks.report(final.attempt, TaskEvent.END):
            return self._delete(file.key for file in final.files)
        self.tasks.final_acks[final.attempt] = final
        decisions = self._fail_without(final.attempt, CheckpointFailureReason.DECLINED_INPUT_ENDED)
        return decisions + self._begin_final(now_ms) + self._go_on(now_ms)

    def acknowledge(self, ack: Ack, now_ms: float) -> tuple[AckResult, list[CoordinatorDecision]]:
        """An attempt has done its part of a checkpoint. What comes for nothing is deleted, if nobody else names it."""
        pending = self._pending.get(ack.checkpoint_id)
        if pending is not None:
            result = pending.acknowledge(ack)
            if result is AckResult.SUCCESS:
                return result, self._go_on(now_ms)
            return result, self._delete(file.key for file in ack.files)
        must_stay = self._pending.must_stay(ack.checkpoint_id)
        if must_stay is None:
            return AckResult.UNKNOWN, []
        return AckResult.DISCARDED, self._delete(file.key for file in ack.files if file.key not in must_stay)

    def decline(
        self, checkpoint_id: int, attempt: AttemptId, reason: CheckpointFailureReason, detail: str, now_ms: float
    ) -> list[CoordinatorDecision]:
        """An attempt says that a checkpoint will not be; too late while its manifest is being written."""
        pending = self._pending.get(checkpoint_id)
        if pending is None or (attempt not in pending.missing and attempt not in pending.acks):
            return []
        if not pending.fail(reason, f"{attempt}: {detail}"):
            return []
        return self._aborted(pending) + self._go_on(now_ms)

    # -- what the store says -------------------------------------------------------------------------

    def manifest_written(self, checkpoint_id: int, now_ms: float) -> list[CoordinatorDecision]:
        """The manifest is durable: the checkpoint is complete. Said again it is no news.

        Raises:
            LocalUsageError: nobody was asked to write it.
        """
        pending = self._pending.get(checkpoint_id)
        if pending is None or not pending.written():
            return []
        completed = self._completed(pending, now_ms)
        decisions: list[CoordinatorDecision] = [CheckpointCompleted(completed, pending.request)]
        if completed.kind is not CheckpointKind.SAVEPOINT:
            dropped = self.completed.add(completed)
            self._pending.end(pending)
            decisions += self._subsume_older_than(checkpoint_id)
            decisions += [DeleteManifest(each.checkpoint_id) for each in dropped]
            decisions += self._delete(key for each in dropped for key in each.keys)
        else:
            self._pending.end(pending, frozenset(completed.keys))
        if completed.kind is CheckpointKind.FINAL:
            decisions += self._tell_ended(now_ms)
        elif completed.kind is CheckpointKind.CHECKPOINT and (attempts := self.tasks.in_phase(*_LIVE)):
            decisions.append(NotifyComplete(checkpoint_id, attempts))
        return decisions + self._go_on(now_ms)

    def manifest_not_written(self, checkpoint_id: int, detail: str, now_ms: float) -> list[CoordinatorDecision]:
        """The manifest is not there, for sure, and will not be. Said again it is no news.

        Raises:
            LocalUsageError: nobody was asked to write it.
        """
        pending = self._pending.get(checkpoint_id)
        if pending is None or not pending.not_written(detail):
            return []
        decisions: list[CoordinatorDecision] = [DeleteManifest(checkpoint_id), *self._aborted(pending)]
        if checkpoint_id == self.tasks.final_id:
            decisions.append(FailJob(f"checkpoint {checkpoint_id}, the final one, could not be completed: {detail}"))
        return decisions + self._go_on(now_ms)

    def snapshot(self) -> CoordinatorSnapshot:
        writing = self._pending.writing
        return CoordinatorSnapshot(
            self._pending.next_id,
            tuple(each.snapshot() for each in self._pending),
            self._decider.queued,
            self.completed.kept,
            self._failures.num_failed,
            None if writing is None else writing.checkpoint_id,
        )

    # -- helpers: how a checkpoint begins --------------------------------------------------------------

    def _go_on(self, now_ms: float) -> list[CoordinatorDecision]:
        """Write the next manifest and begin the next checkpoint, if it is time."""
        decisions: list[CoordinatorDecision] = []
        if self._pending.writing is None and (ready := self._pending.ready) is not None:
            decisions.append(self._write(ready))
        num_pending, last_ms = len(self._pending), self._last_completion_ms
        while chosen := self._decider.choose(now_ms, num_pending, last_ms):
            decisions += self._carry_out(chosen, now_ms)
            num_pending = len(self._pending)
        return decisions

    def _write(self, pending: PendingCheckpoint) -> WriteManifest:
        is_final = pending.checkpoint_id == self.tasks.final_id
        finished = self.tasks.in_phase(TaskPhase.FINISHED) if is_final else ()
        pending.write(tuple(attempt for attempt in finished if attempt not in pending.acks))
        acks = tuple(pending.acks.values())
        return WriteManifest(pending.checkpoint_id, pending.request, pending.started_ms, acks, pending.finished)

    def _carry_out(self, chosen: Iterable[DeciderDecision], now_ms: float) -> list[CoordinatorDecision]:
        decisions: list[CoordinatorDecision] = []
        for each in chosen:
            match each:
                case StartCheckpoint(request):
                    decisions.append(self._begin(request, now_ms))
                case DropRequest(request, reason):
                    decisions.append(RequestRefused(request, reason))
                case MoveTimer(at_ms):
                    self._timer.move(at_ms)
        return decisions

    def _begin(self, request: CheckpointRequest, now_ms: float) -> CoordinatorDecision:
        if not self.tasks.can_be_cut:
            return RequestRefused(request, CheckpointFailureReason.NOT_ALL_RUNNING)
        pending = self._pending.begin(request, self.tasks.attempts, now_ms)
        return TriggerCheckpoint(pending.checkpoint_id, request, round(now_ms), self.tasks.sources)

    def _begin_final(self, now_ms: float) -> list[CoordinatorDecision]:
        """Make the last checkpoint of the final snapshots, once everybody is done."""
        tasks = self.tasks
        if not tasks.all_done or not tasks.in_phase(TaskPhase.ENDED) or tasks.final_id is not None:
            return []
        request = CheckpointRequest(0, now_ms, CheckpointKind.FINAL, is_forced=True)
        pending = self._pending.begin(request, tuple(tasks.final_acks), now_ms)
        tasks.final_id = pending.checkpoint_id
        for ack in tasks.final_acks.values():
            pending.acknowledge(replace(ack, checkpoint_id=pending.checkpoint_id))
        return []

    # -- helpers: how a checkpoint ends ----------------------------------------------------------------

    def _fail_without(self, attempt: AttemptId, reason: CheckpointFailureReason) -> list[CoordinatorDecision]:
        """Give up the checkpoints that an attempt has not acknowledged, and never will."""
        decisions: list[CoordinatorDecision] = []
        for pending in self._pending:
            if attempt in pending.missing and pending.fail(reason, str(attempt)):
                decisions += self._aborted(pending)
        return decisions

    def _subsume_older_than(self, checkpoint_id: int) -> list[CoordinatorDecision]:
        decisions: list[CoordinatorDecision] = []
        for pending in self._pending:
            if pending.checkpoint_id < checkpoint_id and pending.can_be_subsumed and pending.subsume(checkpoint_id):
                decisions += self._aborted(pending)
        return decisions

    def _completed(self, pending: PendingCheckpoint, now_ms: float) -> CompletedCheckpoint:
        self._last_completion_ms = now_ms
        self._failures.completed()
        return CompletedCheckpoint(
            pending.checkpoint_id,
            pending.request.kind,
            tuple(pending.acks.values()),
            pending.started_ms,
            now_ms,
            pending.finished,
            pending.request.name,
        )

    def _give_up_all(self, now_ms: float) -> list[CoordinatorDecision]:
        """Give up whatever can be."""
        decisions = self._carry_out(self._decider.drop_all(CheckpointFailureReason.SUSPENDED), now_ms)
        for pending in self._pending:
            if pending.suspend():
                decisions += self._aborted(pending)
        return decisions

    def _aborted(self, pending: PendingCheckpoint) -> list[CoordinatorDecision]:
        """What follows from a checkpoint that was given up."""
        self._pending.end(pending)
        reason = pending.reason
        assert reason is not None, f"{pending} was given up without a reason"
        checkpoint_id, missing = pending.checkpoint_id, tuple(pending.missing)
        decisions: list[CoordinatorDecision] = [
            CheckpointAborted(checkpoint_id, pending.request, reason, pending.detail, missing)
        ]
        if attempts := self.tasks.in_phase(*_LIVE):
            decisions.append(NotifyAborted(checkpoint_id, attempts))
        decisions += self._delete(pending.keys)
        if self._failures.failed(checkpoint_id, reason):
            cause = f"checkpoint {checkpoint_id}: {reason.value}, {pending.detail}"
            decisions.append(FailJob(f"more than {self._failures.tolerable} checkpoints failed, the last was {cause}"))
        return decisions

    def _tell_ended(self, now_ms: float) -> list[CoordinatorDecision]:
        """Tell those that wait for it that the FINAL checkpoint counts, and plan to tell them again."""
        attempts = self.tasks.in_phase(TaskPhase.ENDED)
        if self.tasks.final_id is None or not attempts:
            return []
        self.tasks.remind_at_ms = now_ms + _REMINDER_MS
        return [NotifyComplete(self.tasks.final_id, attempts)]

    def _delete(self, keys: Iterable[str]) -> list[CoordinatorDecision]:
        """Delete those of `keys` that nothing names which counts, or may come to count."""
        named = {key for pending in self._pending for key in pending.keys}
        named |= {key for kept in self.completed.kept for key in kept.keys}
        named |= {file.key for ack in self.tasks.final_acks.values() for file in ack.files}
        doomed = tuple(key for key in dict.fromkeys(keys) if key not in named)
        return [Delete(doomed)] if doomed else []
