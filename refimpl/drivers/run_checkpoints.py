"""The checkpoints of a run: what the coordinator decides, carried out with a store and the tasks of the job.

A driver has one, and says when: `on_timeout` at `next_deadline`, and what its tasks report as it comes. It tells the
tasks what is handed to `tell`. What has to be done with the store waits in `work`: the driver does one call after the
other, outside of whatever keeps its tasks apart, and then says what came of it.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from refimpl.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints, JobEnd
from refimpl.checkpoint.coordinator import CheckpointCoordinator
from refimpl.checkpoint.decider import CheckpointRequest
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
from refimpl.checkpoint.live_tasks import TaskEvent
from refimpl.checkpoint.options import CheckpointOptions
from refimpl.checkpoint.pending import Ack
from refimpl.checkpoint.reasons import CheckpointFailureReason
from refimpl.checkpoint.stats_tracker import CheckpointStatsTracker
from refimpl.config import Config
from refimpl.drivers.restore_point import RestorePoint, check_uids
from refimpl.drivers.store_calls import StoreCalls, StoreWork
from refimpl.errors import LeadershipLostError, LocalUsageError, SluiceError, StoreError
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.state.layout import (
    JobStore,
    checkpoint_folder,
    claimed_epoch,
    manifest_key,
    savepoint_folder,
)
from refimpl.state.manifest import CheckpointKind, Manifest, OperatorRecord, StateRecord
from refimpl.state.recovery import Leader, Recovered
from refimpl.state.retention import sweep
from refimpl.state.store import SnapshotStore
from refimpl.task.checkpoint_reports import Declined, Report, Snapshotted, Unwanted

__all__ = ["Attempt", "RunCheckpoints", "ToTask"]

_NUM_REMEMBERED = 100

ToTask = TriggerCheckpoint | NotifyComplete | NotifyAborted
"""What a task is told about checkpoints."""

CheckpointOutcome = CheckpointCompleted | CheckpointAborted | RequestRefused
"""What became of a checkpoint, or of who asked for one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one subtask: the task's name, and the generation of the graph it belongs to."""

    task: str
    generation: int

    def __str__(self) -> str:
        return self.task


class RunCheckpoints:
    """The checkpoints of the job called `job` in `store`, for one run, which becomes their leader.

    `tell` gives a task a message, by the attempt it is for; a message to a task that is no more may be dropped.
    `on_failure` hears why the job is to fail: too many checkpoints did, or somebody else leads. `history` has what
    became of the last hundred, `stats` how many there were, for whoever looks on. Times are the driver's, in ms;
    `epoch_ms` is when they began, in ms since 1970.

    Raises:
        LeadershipLostError: somebody else became leader at the same moment.
        StoreError: the store did not answer.

    Flink:   JobMaster, SchedulerNG (runtime.jobmaster, runtime.scheduler), 1.11.4, what they do for checkpoints
    """

    def __init__(
        self,
        store: SnapshotStore,
        job: str,
        config: Config,
        tell: Callable[[Attempt, ToTask], None],
        on_failure: Callable[[SluiceError], None],
        epoch_ms: float = 0.0,
        run: str | None = None,
    ) -> None:
        own = JobStore(store, job)
        claims = [claimed_epoch(key) or 0 for key in own.list("leader-")]
        self.leader = Leader(own, max(claims, default=0) + 1, run or secrets.token_hex(8))
        self.recovered: Recovered | None = None
        self.stats = CheckpointStatsTracker()
        self._has_swept = False
        self._calls = StoreCalls(own)
        self.history: deque[CheckpointOutcome] = deque(maxlen=_NUM_REMEMBERED)
        self._config = config
        self._tell = tell
        self._on_failure = on_failure
        self._epoch_ms = epoch_ms
        self._coordinator: CheckpointCoordinator | None = None
        self._graph: ExecutionGraph | None = None
        self._executions: dict[Attempt, ExecutionVertex] = {}
        self._at_work: dict[str, int] = {}  # the attempt numbers in the names of state files, by task
        self._asked_for: list[str | None] = []  # the folder of each savepoint, by number; `None` if it never began

    # -- the job -------------------------------------------------------------------------------------

    def recover(
        self, graph: ExecutionGraph, savepoint: str | None = None, *, trust_pickle: bool = False
    ) -> RestorePoint:
        """What the tasks of `graph` go on from: the newest checkpoint, or nothing if there is none.

        With the name of a savepoint it is that one, and the job has begun with it. What is pickled in it is read if
        this run has written it, or with `trust_pickle`.

        Raises:
            RestoreRefusedError: there are checkpoints, and none that is sound, or that this job can go on from.
            LeadershipLostError: somebody else leads.
            StoreError: the store did not answer.
            LocalUsageError: two operators have one uid.
        """
        check_uids(graph)
        key = None if savepoint is None else manifest_key(savepoint_folder(savepoint))
        recovered = self.leader.recover(key)
        self._has_swept = recovered.next_checkpoint_id == 1  # nothing was before
        if self._coordinator is None:
            kept = [] if recovered.manifest is None else [_as_completed(recovered.manifest)]
            completed = CompletedCheckpoints(self._config.checkpoints_retained, restored=kept)
            options = CheckpointOptions(
                self._config.checkpoint_interval_ms,
                self._config.checkpoint_timeout_ms,
                self._config.max_concurrent_checkpoints,
                self._config.min_pause_ms,
                self._config.tolerable_failed_checkpoints,
                self._config.seed,
            )
            self._coordinator = CheckpointCoordinator(options, completed, recovered.next_checkpoint_id)
        self.recovered = recovered
        is_own = recovered.manifest is not None and recovered.manifest.run == self.leader.run
        point = RestorePoint(
            self.leader.store.job, self._attempt_number(graph), recovered.manifest, is_own or trust_pickle
        )
        point.check(graph)
        return point

    def start(self, graph: ExecutionGraph, now_ms: float) -> None:
        """The tasks of `graph` run from now on; `recover` has come before."""
        self.deploy(graph, _by_attempt(graph), now_ms)
        for attempt in self.coordinator.tasks.attempts:
            assert isinstance(attempt, Attempt), f"{attempt!r} is no attempt of ours"
            self.task_is(attempt, TaskEvent.RUN, now_ms)

    def deploy(self, graph: ExecutionGraph, executions: Mapping[Attempt, ExecutionVertex], now_ms: float) -> None:
        """These attempts are on their way; `recover` has come before. All of the job, or those of failed ones."""
        self._graph = graph
        numbers = dict.fromkeys((each.task for each in executions), self._attempt_number(graph))
        if self.recovered is not None and (manifest := self.recovered.manifest) is not None:
            self.stats.restored(manifest.checkpoint_id, manifest.kind, now_ms)
        if not self.coordinator.tasks.attempts:
            self._executions, self._at_work = dict(executions), numbers
            sources = [attempt for attempt, each in executions.items() if each.vertex.nodes[0].make_reader]
            self.coordinator.start(list(executions), sources, now_ms)
        else:
            failed = {each.task: each for each in self.coordinator.tasks.attempts if isinstance(each, Attempt)}
            self._executions |= executions
            self._at_work |= numbers
            self._carry_out(self.coordinator.replace({failed[each.task]: each for each in executions}), now_ms)
        self.stats.started(list(self.coordinator.tasks.attempts))

    def stop(self, now_ms: float) -> None:
        """The tasks do not run any more; a manifest that is being written will be, or not."""
        if self.coordinator.tasks.attempts:
            self._carry_out(self.coordinator.stop(now_ms), now_ms)

    def dispose(self, end: JobEnd) -> None:
        """The job has ended for ever."""
        for each in self.coordinator.completed.dispose(end):
            self.stats.note(DeleteManifest(each.checkpoint_id), each.completed_ms)
            self._calls.delete([self._manifest_key(each.checkpoint_id), *each.keys])

    @property
    def work(self) -> deque[StoreWork]:
        """The calls of the store that are to be made, in this order."""
        return self._calls.waiting

    @property
    def coordinator(self) -> CheckpointCoordinator:
        assert self._coordinator is not None, "recover comes first"
        return self._coordinator

    # -- time, and who asks ----------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return self.coordinator.next_deadline

    def on_timeout(self, now_ms: float) -> None:
        """Do what is due."""
        self._carry_out(self.coordinator.on_timeout(now_ms), now_ms)

    def savepoint(self, name: str, now_ms: float) -> CheckpointRequest:
        """Ask for a savepoint; in `history` it is told with this request. The store is not asked.

        Raises:
            LocalUsageError: one of this name was there when the job began, or somebody has asked for it since.
        """
        folder = savepoint_folder(name)
        if folder in self._asked_for or (self.recovered is not None and folder in self.recovered.savepoints):
            raise LocalUsageError(f"there is a savepoint {name!r} already, or was to be; take another name")
        self._asked_for.append(folder)
        request = CheckpointRequest.for_savepoint(len(self._asked_for), now_ms, name)
        self._carry_out(self.coordinator.submit(request, now_ms), now_ms)
        return request

    # -- what tasks say ----------------------------------------------------------------------------------

    def task_is(self, attempt: Attempt, event: TaskEvent, now_ms: float) -> None:
        """A task runs, or has ended well."""
        self._carry_out(self.coordinator.task_reports(attempt, event, now_ms), now_ms)

    def lose(self, attempts: Sequence[Attempt], now_ms: float) -> None:
        """These tasks are no more, the others run on; next come `recover`, and `deploy` with those in their places."""
        self._carry_out(self.coordinator.lose(attempts, now_ms), now_ms)

    def task_says(self, attempt: Attempt, report: Report, now_ms: float) -> None:
        """What a task has done of a checkpoint."""
        match report:
            case Snapshotted(checkpoint_id, file, states, is_final, took_ms, is_unaligned):
                files = () if file is None else (file,)
                ack = Ack(checkpoint_id, attempt, files, states, took_ms, is_unaligned)
                self.stats.acknowledged(ack, now_ms, is_final=is_final)
                if is_final:
                    self._carry_out(self.coordinator.task_ended(ack, now_ms), now_ms)
                else:
                    self._carry_out(self.coordinator.acknowledge(ack, now_ms)[1], now_ms)
            case Declined(checkpoint_id, reason, detail):
                why = CheckpointFailureReason(reason.value)
                self._carry_out(self.coordinator.decline(checkpoint_id, attempt, why, detail, now_ms), now_ms)
            case Unwanted(key):
                self._calls.delete([key])

    # -- what is decided ---------------------------------------------------------------------------------

    def _carry_out(self, decisions: Iterable[CoordinatorDecision], now_ms: float) -> None:
        for decision in decisions:
            self.stats.note(decision, now_ms)
            match decision:
                case TriggerCheckpoint() | NotifyComplete() | NotifyAborted():
                    for attempt in decision.attempts:
                        assert isinstance(attempt, Attempt), f"{attempt!r} is no attempt of ours"
                        self._tell(attempt, decision)
                case WriteManifest():
                    self._write_manifest(decision, now_ms)
                case DeleteManifest(checkpoint_id):
                    self._calls.delete([self._manifest_key(checkpoint_id)])
                case Delete(keys):
                    self._calls.delete(keys)
                case CheckpointCompleted() | CheckpointAborted() | RequestRefused():
                    self.history.append(decision)
                    if isinstance(decision, RequestRefused) and decision.request.kind is CheckpointKind.SAVEPOINT:
                        self._asked_for[decision.request.number - 1] = None
                    if isinstance(decision, CheckpointCompleted):
                        self._sweep_after(decision.checkpoint)
                case FailJob(cause):
                    self._on_failure(StoreError("checkpoints", cause))

    # -- the store ---------------------------------------------------------------------------------------

    def _attempt_number(self, graph: ExecutionGraph) -> int:
        """One that no other attempt of the job has had, under any leader."""
        return self.leader.epoch << 16 | graph.generation

    def _sweep_after(self, completed: CompletedCheckpoint) -> None:
        """Once after each beginning, when there is something newer: delete what those before have left unfinished."""
        if self._has_swept or completed.kind is CheckpointKind.SAVEPOINT:
            return
        self._has_swept = True
        kept = [each.checkpoint_id for each in self.coordinator.completed.kept]
        retained = self._config.checkpoints_retained
        at_work = set(self._at_work.values())
        do = partial(sweep, self.leader, completed.checkpoint_id, retained, kept, at_work)
        self.work.append(StoreWork("delete what nobody has finished", do, _ignore))

    @staticmethod
    def _manifest_key(checkpoint_id: int) -> str:
        return manifest_key(checkpoint_folder(checkpoint_id))

    def _write_manifest(self, decision: WriteManifest, now_ms: float) -> None:
        request = decision.request
        is_savepoint = request.kind is CheckpointKind.SAVEPOINT
        folder = savepoint_folder(request.name) if is_savepoint else checkpoint_folder(decision.checkpoint_id)
        key = manifest_key(folder)
        do = partial(self.leader.complete, self._manifest(decision, now_ms), key)
        self.work.append(StoreWork(f"write {key}", do, partial(self._manifest_put, decision.checkpoint_id)))

    def _manifest_put(self, checkpoint_id: int, error: SluiceError | None, now_ms: float) -> None:
        if error is None:
            self._carry_out(self.coordinator.manifest_written(checkpoint_id, now_ms), now_ms)
            return
        if isinstance(error, LeadershipLostError):  # whether it is there and counts is for others to say: it stays
            self._on_failure(error)
        else:
            self._carry_out(self.coordinator.manifest_not_written(checkpoint_id, str(error), now_ms), now_ms)

    def _manifest(self, decision: WriteManifest, now_ms: float) -> Manifest:
        assert self._graph is not None, "no job was started"
        acks: dict[tuple[int, int], Ack] = {}
        for ack in decision.acks:
            assert isinstance(ack.attempt, Attempt), f"{ack.attempt!r} is no attempt of ours"
            execution = self._executions[ack.attempt]
            acks[execution.vertex.id, execution.subtask] = ack
        return Manifest(
            self.leader.store.job,
            self.leader.run,
            self.leader.epoch,
            decision.checkpoint_id,
            decision.request.kind,
            round(self._epoch_ms + decision.started_ms),
            round(self._epoch_ms + now_ms),
            tuple(_operators(self._graph, acks)),
        )


def _by_attempt(graph: ExecutionGraph) -> dict[Attempt, ExecutionVertex]:
    return {Attempt(each.name, graph.generation): each for each in graph.vertices}


def _operators(graph: ExecutionGraph, acks: Mapping[tuple[int, int], Ack]) -> Iterator[OperatorRecord]:
    """The lines of a manifest."""
    for vertex in graph.job.vertices.values():
        own = [acks.get((vertex.id, subtask)) for subtask in range(vertex.parallelism)]
        for node in vertex.nodes:
            states: dict[tuple[str, str], StateRecord] = {}
            for ack in own:
                for record in () if ack is None else ack.states.get(node.uid, ()):
                    states[record.kind, record.name] = record
            files = [ack.files[0] if ack is not None and ack.files and node.uid in ack.states else None for ack in own]
            yield OperatorRecord(
                node.uid,
                node.name,
                graph.max_parallelism(vertex),
                vertex.parallelism,
                tuple(states.values()),
                tuple(files),
            )


def _as_completed(manifest: Manifest) -> CompletedCheckpoint:
    """A checkpoint of an earlier leader, as one that is kept."""
    files: Sequence[object] = tuple(manifest.files().values())
    acks = (Ack(manifest.checkpoint_id, "an earlier run", tuple(manifest.files().values())),) if files else ()
    return CompletedCheckpoint(manifest.checkpoint_id, manifest.kind, acks, manifest.started_ms, manifest.completed_ms)


def _ignore(_error: SluiceError | None, _now_ms: float) -> None:
    """What could not be deleted is deleted another time."""
