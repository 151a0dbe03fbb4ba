"""What is kept, and what is deleted: by what manifests lead to, manifests first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refimpl.errors import LeadershipLostError, StoreError
from refimpl.state import Fault, FaultKind, Leader, MemoryStore, checkpoint_id_of, sweep
from tests.support.checkpoint_rig import SmallJob, write_checkpoint


def ids(store: MemoryStore) -> list[int]:
    return sorted({checkpoint_id_of(key.removeprefix("job/")) or 0 for key in store.list("job/chk-")})


@pytest.mark.parametrize("retained", [1, 2, 3])
def test_the_newest_are_kept(retained: int) -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(5):
        job.checkpoint(retained)
    assert ids(store) == [*range(6 - retained, 6)]


def test_manifests_go_before_files() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(3):
        job.checkpoint(9)
    store.calls.clear()
    swept = sweep(job.leader, 3, 1)
    deleted = [call for call in store.calls if call.startswith("delete")]
    assert deleted == [f"delete job/{key}" for key in (*swept.manifests, *swept.files)]
    assert swept.manifests == ("chk-1/_metadata", "chk-2/_metadata")
    assert len(swept.files) == 4


def test_what_a_restore_reads_is_kept() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(4):
        job.checkpoint(9)
    sweep(job.leader, 4, 1, also=[2])
    assert ids(store) == [2, 4]


def test_a_file_of_an_older_checkpoint_is_kept_as_long_as_a_manifest_names_it() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    first, key = write_checkpoint(job.store, 3, 1, 1)
    job.leader.complete(first, key)
    second, key = write_checkpoint(job.store, 3, 2, 1)
    (operator,) = second.operators
    shared = replace(operator, subtasks=(first.operators[0].subtasks[0], operator.subtasks[1]))
    job.leader.complete(replace(second, operators=(shared,)), key)
    sweep(job.leader, 2, 1)
    assert [key.removeprefix("job/") for key in store.list("job/chk-")] == [
        "chk-1/v-0-1.state", "chk-2/_metadata", "chk-2/v-1-1.state",
    ]  # fmt: skip


def test_what_is_still_being_written_is_left_alone() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    job.checkpoint()
    write_checkpoint(job.store, 6, 2, 1)
    sweep(job.leader, 1, 1)
    assert ids(store) == [1, 2]


def test_savepoints_are_the_users() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    job.leader.complete(*write_checkpoint(job.store, 3, 1, 1, folder="sp-a/"))
    saved = store.list("job/sp-a/")
    job.next_id = 2
    for _ in range(3):
        job.checkpoint()
    assert (len(saved), store.list("job/sp-a/")) == (3, saved)


def test_a_leader_that_is_none_any_more_deletes_nothing() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(3):
        job.checkpoint(9)
    Leader(job.store, 2, "run-2")
    with pytest.raises(LeadershipLostError):
        sweep(job.leader, 3, 1)
    assert ids(store) == [1, 2, 3]


def test_a_manifest_that_cannot_be_read_just_now_stops_all_deletion() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(3):
        job.checkpoint(9)
    store.faults = [Fault(FaultKind.FAIL, "get", "chk-3/_metadata")]
    with pytest.raises(StoreError):
        sweep(job.leader, 3, 1)
    assert ids(store) == [1, 2, 3]
    sweep(job.leader, 3, 1)
    assert ids(store) == [3]


def test_a_damaged_manifest_that_is_older_leads_to_nothing_and_goes() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    for _ in range(3):
        job.checkpoint(9)
    store.files["job/chk-2/_metadata"] = b"damaged"
    sweep(job.leader, 3, 2)
    assert ids(store) == [1, 3], "the newest two that can be read"


def test_last_snapshots_that_wait_for_a_manifest_stay_as_long_as_their_attempt_is_at_work() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    job.checkpoint()
    last = [f"chk-0/count-0-{attempt}.state" for attempt in (1, 2)]
    for key in last:
        job.store.put(key, [b"state"])
    swept = sweep(job.leader, 1, 1, at_work=[2])
    assert swept.files == (last[0],)
    assert last[1] in job.store.list("")
