"""Random events against the coordinator, with its decisions carried out on a small job and a small store.

Messages come late, twice or never, manifests fail, the job restarts at any moment. The laws hold after each step; a
coordinator that is broken on purpose breaks one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from refimpl.checkpoint import (
    PENDING_TRANSITIONS,
    Ack,
    AckResult,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointCoordinator,
    CheckpointFailureManager,
    CheckpointFailureReason,
    CheckpointOptions,
    CheckpointRequest,
    CheckpointsUnderWay,
    CompletedCheckpoints,
    CoordinatorDecision,
    Delete,
    DeleteManifest,
    FailJob,
    LiveTasks,
    NotifyAborted,
    NotifyComplete,
    PendingCheckpoint,
    PendingEvent,
    PendingState,
    RequestRefused,
    TaskEvent,
    TaskPhase,
    TriggerCheckpoint,
    WriteManifest,
)
from refimpl.errors import LocalUsageError
from refimpl.state.manifest import CheckpointKind, StateFile

SEEDS = range(150)
NUM_STEPS = 150
DECLINES = [
    CheckpointFailureReason.DECLINED,
    CheckpointFailureReason.IO,
    CheckpointFailureReason.DECLINED_INPUT_ENDED,
    CheckpointFailureReason.DECLINED_CANCELLED,
]


class World:
    """A job of `num_tasks` tasks, a store, and messages under way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        draw = self.random.randint
        self.num_tasks = draw(1, 4)
        self.options = CheckpointOptions(
            interval_ms=draw(0, 20),
            timeout_ms=draw(20, 60),
            max_concurrent=draw(1, 3),
            min_pause_ms=draw(0, 15),
            tolerable_failures=draw(0, 2),
            seed=seed,
        )
        self.num_retained = draw(1, 3)
        self.coordinator = CheckpointCoordinator(self.options, CompletedCheckpoints(self.num_retained))
        self.now_ms = 0.0
        self.run = 0
        self.tasks: list[str] = []
        self.done: set[str] = set()
        self.files: set[str] = set()
        self.manifests: dict[int, list[str]] = {}
        self.acks: list[Ack] = []  # under way; some are delivered more than once
        self.finals: list[Ack] = []
        self.delivered: set[str] = set()
        self.excused: set[str] = set()  # named by an ack that came when its id was no longer remembered
        self.awaited: dict[int, tuple[str, ...]] = {}
        self.savepoints: set[int] = set()
        self.writing: WriteManifest | None = None
        self.open_requests: dict[int, CheckpointRequest] = {}
        self.ended: Counter[int] = Counter()
        self.failed: set[int] = set()
        self.has_failed = False
        self.started_ids: list[int] = []
        self.completed_ids: list[int] = []
        self.over_ids: list[int] = []
        self.num_files = 0

    # -- events ----------------------------------------------------------------------------------

    def step(self) -> None:
        if self.has_failed and self.tasks:
            self.stop()
            return
        events: list[Callable[[], None]] = [self.time, self.time, self.ask, self.ack, self.ack, self.ack, self.decline]
        events += [self.store, self.store, self.report, self.stop if self.random.random() < 0.1 else self.time]
        events += [self.end] if self.random.random() < 0.1 else []
        if not self.tasks:
            events = [self.start, self.store, self.ack]
        self.random.choice(events)()

    def start(self) -> None:
        if self.writing is not None:
            return
        self.run += 1
        self.has_failed = False
        self.tasks = [f"{number}@{self.run}" for number in range(self.num_tasks)]
        self.coordinator.start(self.tasks, self.tasks[:1], self.now_ms)
        for task in self.tasks:
            self.do(self.coordinator.task_reports(task, TaskEvent.RUN, self.now_ms))

    def stop(self) -> None:
        self.do(self.coordinator.stop(self.now_ms))
        self.tasks = []

    def time(self) -> None:
        self.now_ms += self.random.randint(0, 10)
        deadline_ms = self.coordinator.next_deadline
        if deadline_ms is not None and self.random.random() < 0.5:
            self.now_ms = max(self.now_ms, deadline_ms)
        if deadline_ms is not None and self.now_ms >= deadline_ms:
            self.do(self.coordinator.on_timeout(self.now_ms))

    def ask(self) -> None:
        number = len(self.open_requests) + sum(self.ended.values()) + 1
        request = CheckpointRequest(number, self.now_ms)
        if self.random.random() < 0.3:
            request = CheckpointRequest.for_savepoint(number, self.now_ms, f"s{number}")
        self.open_requests[number] = request
        self.do(self.coordinator.submit(request, self.now_ms))

    def ack(self) -> None:
        if not self.acks:
            return
        ack = self.random.choice(self.acks)
        if self.random.random() < 0.8:
            self.acks.remove(ack)
        if self.random.random() < 0.1:
            ack = replace(ack, files=(*ack.files, self.file(f"chk-{ack.checkpoint_id}")))
        is_pending = ack.checkpoint_id in {each.checkpoint_id for each in self.coordinator.snapshot().pending}
        result, decisions = self.coordinator.acknowledge(ack, self.now_ms)
        names = {file.key for file in ack.files}
        self.delivered |= names
        if not is_pending:
            is_remembered = ack.checkpoint_id in self.over_ids[-16:]
            assert result is (AckResult.DISCARDED if is_remembered else AckResult.UNKNOWN)
            self.excused |= set() if is_remembered else names
        self.do(decisions)

    def decline(self) -> None:
        pending = self.coordinator.snapshot().pending
        if pending and self.tasks:
            chosen, task = self.random.choice(pending), self.random.choice([*self.tasks, "stranger"])
            reason = self.random.choice(DECLINES)
            self.do(self.coordinator.decline(chosen.checkpoint_id, task, reason, "", self.now_ms))

    def report(self) -> None:
        events = [TaskEvent.RUN] * 12 + [TaskEvent.FINISH, TaskEvent.FAIL]
        event, task = self.random.choice(events), self.random.choice(self.tasks)
        phase = self.coordinator.tasks.phases[task]
        self.done |= {task} if event is not TaskEvent.RUN else set()
        self.do(self.coordinator.task_reports(task, event, self.now_ms))
        self.has_failed |= event is TaskEvent.FAIL and phase is not TaskPhase.FINISHED

    def end(self) -> None:
        for task in self.random.sample(self.tasks, self.random.randint(1, len(self.tasks))):
            final = Ack(0, task, (self.file("final"),))
            self.delivered.add(final.files[0].key)
            self.done.add(task)
            self.do(self.coordinator.task_ended(final, self.now_ms))

    def store(self) -> None:
        if self.writing is None:
            return
        manifest, self.writing = self.writing, None
        if self.random.random() < 0.8:
            self.manifests[manifest.checkpoint_id] = [file.key for ack in manifest.acks for file in ack.files]
            self.do(self.coordinator.manifest_written(manifest.checkpoint_id, self.now_ms))
        else:
            self.do(self.coordinator.manifest_not_written(manifest.checkpoint_id, "full", self.now_ms))

    def file(self, folder: str) -> StateFile:
        self.num_files += 1
        name = f"{folder}/{self.num_files}"
        self.files.add(name)
        return StateFile(name, 1, "00")

    # -- decisions -------------------------------------------------------------------------------

    def do(self, decisions: list[CoordinatorDecision]) -> None:
        for each in decisions:
            match each:
                case TriggerCheckpoint():
                    self.trigger(each)
                case WriteManifest():
                    self.write(each)
                case NotifyComplete(checkpoint_id, attempts):
                    assert checkpoint_id in self.manifests, f"told of {checkpoint_id}, which has no manifest"
                    assert set(attempts) <= set(self.tasks)
                case NotifyAborted(checkpoint_id, attempts):
                    assert checkpoint_id not in self.manifests
                    assert set(attempts) <= set(self.tasks)
                case DeleteManifest(checkpoint_id):
                    self.manifests.pop(checkpoint_id, None)
                case Delete(keys):
                    self.delete(keys)
                case CheckpointCompleted(checkpoint, request):
                    self.complete(checkpoint.checkpoint_id, request)
                case CheckpointAborted(checkpoint_id, request, reason):
                    self.over_ids.append(checkpoint_id)
                    is_savepoint = request.kind is CheckpointKind.SAVEPOINT
                    assert not (is_savepoint and reason is CheckpointFailureReason.SUBSUMED)
                    self.close(request)
                    if reason.value in ("CHECKPOINT_DECLINED", "CHECKPOINT_EXPIRED", "CHECKPOINT_ASYNC_EXCEPTION"):
                        self.failed.add(checkpoint_id)
                case RequestRefused(request, _):
                    self.close(request)
                case FailJob():
                    self.fail()

    def trigger(self, decision: TriggerCheckpoint) -> None:
        checkpoint_id = decision.checkpoint_id
        assert not self.started_ids or checkpoint_id > self.started_ids[-1]
        assert self.tasks, "begun while the job does not run"
        assert not self.done & set(self.tasks), "begun without those that are done"
        num_others = len(set(self.awaited) - set(self.over_ids))
        assert decision.request.is_forced or num_others < self.options.max_concurrent
        self.started_ids.append(checkpoint_id)
        self.awaited[checkpoint_id] = tuple(self.tasks)
        if decision.request.kind is CheckpointKind.SAVEPOINT:
            self.savepoints.add(checkpoint_id)
        for task in self.tasks:
            if self.random.random() < 0.95:
                self.acks.append(Ack(checkpoint_id, task, (self.file(f"chk-{checkpoint_id}"),)))

    def write(self, manifest: WriteManifest) -> None:
        assert self.writing is None, "two manifests at a time"
        who = [ack.attempt for ack in manifest.acks]
        assert len(who) == len(set(who))
        if manifest.request.kind is CheckpointKind.FINAL:
            assert sorted([*map(str, who), *map(str, manifest.finished)]) == sorted(self.tasks)
        else:
            assert set(who) == set(self.awaited[manifest.checkpoint_id]), "a manifest without all acks"
        self.writing = manifest

    def delete(self, keys: tuple[str, ...]) -> None:
        named = {key for names in self.manifests.values() for key in names}
        assert not named & set(keys), f"deleted {named & set(keys)}, which a manifest names"
        assert self.writing is None or not {f.key for a in self.writing.acks for f in a.files} & set(keys)
        self.files -= set(keys)

    def complete(self, checkpoint_id: int, request: CheckpointRequest) -> None:
        assert checkpoint_id in self.manifests
        self.over_ids.append(checkpoint_id)
        if request.kind is not CheckpointKind.SAVEPOINT:
            assert not self.completed_ids or checkpoint_id > self.completed_ids[-1], "completed out of order"
            self.completed_ids.append(checkpoint_id)
        self.failed.clear()
        self.close(request)

    def close(self, request: CheckpointRequest) -> None:
        if request.number:
            assert self.open_requests.pop(request.number) == request, "a request ended twice"
            self.ended[request.number] += 1

    def fail(self) -> None:
        is_counted = len(self.failed) > self.options.tolerable_failures
        assert is_counted or self.coordinator.tasks.final_id is not None, "the job fails for too little"
        if is_counted:
            self.failed.clear()
        self.has_failed = True

    # -- laws ------------------------------------------------------------------------------------

    def check(self) -> None:
        shot = self.coordinator.snapshot()
        assert len(self.failed) <= self.options.tolerable_failures, "too many failures, and the job goes on"
        assert shot.num_failed == len(self.failed)
        kept_ids = [each.checkpoint_id for each in shot.kept]
        assert kept_ids == sorted(kept_ids)
        assert len(kept_ids) <= self.num_retained
        counting = {each for each in self.manifests if each not in self.savepoints}
        assert counting == set(kept_ids), "the store has other checkpoints than are kept"
        for checkpoint_id, keys in self.manifests.items():
            assert set(keys) <= self.files, f"manifest {checkpoint_id} names what is not there"
        reachable = {key for keys in self.manifests.values() for key in keys}
        reachable |= {file.key for each in shot.pending for ack in each.acks for file in ack.files}
        reachable |= {file.key for ack in self.coordinator.tasks.final_acks.values() for file in ack.files}
        left = (self.files & self.delivered) - reachable - self.excused
        assert not left, f"nobody names and nobody deleted {left}"
        assert (shot.writing_id is not None) == (self.writing is not None)
        waiting = {request.number for request in shot.queued} | {each.request.number for each in shot.pending}
        assert set(self.open_requests) == waiting - {0}
        newest = max((each.checkpoint_id for each in shot.kept), default=0)
        for each in shot.pending:
            assert each.checkpoint_id > newest or each.request.kind is CheckpointKind.SAVEPOINT, "not subsumed"


def run(seed: int) -> World:
    print(f"{seed=}")
    world = World(seed)
    world.start()
    for _ in range(NUM_STEPS):
        world.step()
        world.check()
    return world


def run_all() -> list[World]:
    return [run(seed) for seed in SEEDS]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_laws_hold_after_each_step(seed: int) -> None:
    world = run(seed)
    assert world.run >= 1


def test_the_random_events_reach_everything() -> None:
    worlds = run_all()
    assert sum(len(world.completed_ids) for world in worlds) > 250
    assert sum(world.run for world in worlds) > 2 * len(worlds)
    assert sum(any("final" in key for key in keys) for world in worlds for keys in world.manifests.values()) > 10
    assert sum(len(world.savepoints & set(world.manifests)) for world in worlds) > 50
    assert sum(len(world.excused) > 0 for world in worlds) > 3


# -- coordinators that are broken --------------------------------------------------------------------


def deletes_by_name(_self: CheckpointCoordinator, keys: Iterable[str]) -> list[CoordinatorDecision]:
    return [Delete(doomed)] if (doomed := tuple(keys)) else []


def remembers_nothing(self: CheckpointsUnderWay, pending: PendingCheckpoint, *_: object) -> None:
    del self._pending[pending.checkpoint_id]


def remembers_no_savepoint(self: CheckpointsUnderWay, pending: PendingCheckpoint, *_: object) -> None:
    del self._pending[pending.checkpoint_id]
    self._over[pending.checkpoint_id] = frozenset()


ALWAYS = property(lambda _self: True)
MUTANTS: dict[str, tuple[type, str, object]] = {
    "a file that somebody names is deleted": (CheckpointCoordinator, "_delete", deletes_by_name),
    "what a late ack brings stays": (CheckpointsUnderWay, "end", remembers_nothing),
    "a late ack takes a savepoint's files": (CheckpointsUnderWay, "end", remembers_no_savepoint),
    "nothing is subsumed": (CheckpointCoordinator, "_subsume_older_than", lambda _self, _id: []),
    "two manifests are written at a time": (CheckpointsUnderWay, "writing", property(lambda _self: None)),
    "who is not there is asked": (LiveTasks, "can_be_cut", ALWAYS),
    "one ack is enough": (PendingCheckpoint, "is_fully_acknowledged", property(lambda self: bool(self.acks))),
    "a savepoint is subsumed": (PendingCheckpoint, "can_be_subsumed", ALWAYS),
    "nothing that is dropped is deleted": (CompletedCheckpoints, "add", lambda self, each: self._kept.append(each)),
    "everything counts as a failure": (CheckpointFailureReason, "is_counted", ALWAYS),
    "success does not set the count to 0": (CheckpointFailureManager, "completed", lambda _self: None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_coordinator_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, replacement = MUTANTS[name]
    monkeypatch.setattr(where, attribute, replacement)
    with pytest.raises((AssertionError, LocalUsageError, TypeError, KeyError)):
        run_all()


def test_a_manifest_that_is_given_up_while_it_is_written_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PENDING_TRANSITIONS[PendingState.WRITING], PendingEvent.SUSPEND, PendingState.ABORTED)
    with pytest.raises(AssertionError):
        run_all()
