"""A small leader that takes checkpoints of a job of two subtasks, and stores that end it at any call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from refimpl.producer.key_groups import key_group_of, key_group_range
from refimpl.records.types import LONG
from refimpl.state import (
    CheckpointKind,
    JobStore,
    KeyedStateBackend,
    Leader,
    Manifest,
    OperatorPlan,
    OperatorRecord,
    OperatorStates,
    Recovered,
    SnapshotStore,
    SubtaskState,
    assign,
    checkpoint_folder,
    manifest_key,
    read_share,
    state_key,
    sweep,
)

UID = "count"
MAX_PARALLELISM = 8
PARALLELISM = 2


class Crash(BaseException):
    """The process is gone."""


class CrashingStore(SnapshotStore):
    """A store whose caller is gone at the call of this number, from 1: before it is done, or after."""

    def __init__(self, store: SnapshotStore, at: int, is_done: bool) -> None:
        self.num_calls = 0
        self._store = store
        self._at = at
        self._is_done = is_done

    def _call(self, call: Callable[[], Any]) -> Any:
        self.num_calls += 1
        if self.num_calls == self._at and not self._is_done:
            raise Crash
        answer = call()
        if self.num_calls == self._at:
            raise Crash
        return answer

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        self._call(lambda: self._store.put(key, parts, replace=replace))

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        return bytes(self._call(lambda: self._store.get(key, start, length)))

    def size(self, key: str) -> int:
        return int(self._call(lambda: self._store.size(key)))

    def list(self, prefix: str) -> Sequence[str]:
        return list(self._call(lambda: self._store.list(prefix)))

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._call(lambda key=key: self._store.delete([key]))


def write_checkpoint(
    store: JobStore, total: int, checkpoint_id: int, epoch: int, folder: str | None = None
) -> tuple[Manifest, str]:
    """Put the state files of a checkpoint that has counted to `total`; its manifest is still to be put."""
    where = folder or checkpoint_folder(checkpoint_id)
    files, states = [], ()
    for subtask in range(PARALLELISM):
        own = key_group_range(subtask, MAX_PARALLELISM, PARALLELISM)
        held = OperatorStates(KeyedStateBackend(), {})
        for key in range(total):
            if key_group_of(key, MAX_PARALLELISM) in own:
                held.keyed.table("seen", LONG, LONG).put(key, checkpoint_id, key * 3)
        held.by_no_key.list_state("offsets", LONG).update(range(subtask, 3))
        state = SubtaskState.of(state_key(where, "v", subtask, epoch), held.snapshot(UID, own, MAX_PARALLELISM))
        store.put(state.file.key, state.parts)
        files.append(state.file)
        states = state.states[UID]
    operator = OperatorRecord(UID, "Count", MAX_PARALLELISM, PARALLELISM, states, tuple(files))
    kind = CheckpointKind.CHECKPOINT if folder is None else CheckpointKind.SAVEPOINT
    return Manifest(store.job, "run", epoch, checkpoint_id, kind, 0, 5, (operator,)), manifest_key(where)


def total_in(store: JobStore, manifest: Manifest | None, parallelism: int = PARALLELISM) -> int:
    """How far the job had counted, as the subtasks that go on from it find out."""
    if manifest is None:
        return 0
    total = 0
    for share in assign(manifest.operators, [OperatorPlan(UID, MAX_PARALLELISM, parallelism)])[UID]:
        states = OperatorStates(KeyedStateBackend(), {})
        states.restore(read_share(store, UID, share))
        table = states.keyed.table("seen", LONG, LONG)
        assert all(value == key * 3 for key, _, value in table.items()), "values are of other keys"
        total += len(table)
    return total


class SmallJob:
    """A job under one leader: it counts on from where it was, and tells two sinks what is complete."""

    def __init__(self, store: SnapshotStore, epoch: int) -> None:
        self.store = JobStore(store, "job")
        self.epoch = epoch
        self.told: list[tuple[str, int]] = []
        self.leader = Leader(self.store, epoch, f"run-{epoch}")
        self.recovered: Recovered = self.leader.recover()
        self.total = total_in(self.store, self.recovered.manifest)
        self.next_id = self.recovered.next_checkpoint_id

    def checkpoint(self, retained: int = 1) -> None:
        """Count three on, and take a checkpoint of that."""
        self.total += 3
        number, self.next_id = self.next_id, self.next_id + 1
        manifest, key = write_checkpoint(self.store, self.total, number, self.epoch)
        self.leader.complete(manifest, key)
        for sink in ("a", "b"):
            self.told.append((sink, number))
        sweep(self.leader, number, retained)
