"""What a crash leaves, who leads, and what a job goes on from."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from refimpl.errors import LeadershipLostError, RestoreRefusedError, StoreError
from refimpl.state import Fault, FaultKind, JobStore, Leader, MemoryStore, manifest_keys
from tests.support.checkpoint_rig import Crash, CrashingStore, SmallJob, total_in, write_checkpoint


def keys(store: MemoryStore, what: str = "") -> list[str]:
    return [key.removeprefix("job/") for key in store.list("job/") if what in key]


def stored(epoch: int = 1, *totals: int) -> MemoryStore:
    """A store in which a leader has completed a checkpoint for each total, and none was swept."""
    store = MemoryStore()
    leader = Leader(JobStore(store, "job"), epoch, f"run-{epoch}")
    number = leader.recover().next_checkpoint_id
    for checkpoint_id, total in enumerate(totals, number):
        leader.complete(*write_checkpoint(leader.store, total, checkpoint_id, epoch))
    return store


def harm(store: MemoryStore, key: str, raw: bytes | None) -> None:
    if raw is None:
        del store.files[f"job/{key}"]
    else:
        store.files[f"job/{key}"] = raw


# -- what a crash leaves: a row of the table each ---------------------------------------------------


def crashed(fault: Fault) -> MemoryStore:
    """A store in which checkpoint 1 is complete, and checkpoint 2 has ended by a fault of the store."""
    store = MemoryStore([fault])
    job = SmallJob(store, 1)
    job.checkpoint()
    with pytest.raises((StoreError, LeadershipLostError)):
        job.checkpoint()
    return store


def test_a_crash_in_a_state_files_put_leaves_the_one_before() -> None:
    job = SmallJob(crashed(Fault(FaultKind.FAIL, within="chk-2/v-0")), 2)
    assert (job.recovered.key, job.total, job.recovered.problems) == ("chk-1/_metadata", 3, ())


def test_orphans_of_a_crash_after_some_state_files_are_deleted_by_the_next_leader_once_it_completed_one() -> None:
    store = crashed(Fault(FaultKind.NO_SPACE, within="chk-2/v-1"))
    assert keys(store, "chk-2") == ["chk-2/v-0-1.state"]
    job = SmallJob(store, 2)
    assert (job.total, keys(store, "chk-2")) == (3, ["chk-2/v-0-1.state"])
    job.checkpoint()
    assert keys(store, "chk-") == ["chk-3/_metadata", "chk-3/v-0-2.state", "chk-3/v-1-2.state"]


def test_without_its_manifest_a_checkpoint_never_was() -> None:
    store = crashed(Fault(FaultKind.FAIL, within="chk-2/_metadata"))
    assert len(keys(store, "chk-2")) == 2
    assert SmallJob(store, 2).recovered.key == "chk-1/_metadata"


def test_a_manifest_whose_answer_was_lost_is_complete() -> None:
    """To the leader that asks again, and to the one after a crash."""
    store = MemoryStore([Fault(FaultKind.LOSE_ANSWER, within="chk-1/_metadata")])
    job = SmallJob(store, 1)
    job.checkpoint()
    assert job.told == [("a", 1), ("b", 1)]
    assert SmallJob(store, 2).total == 3


def test_who_cannot_learn_whether_its_manifest_is_there_leads_no_more() -> None:
    store = MemoryStore(
        [Fault(FaultKind.LOSE_ANSWER, within="chk-1/_metadata"), Fault(FaultKind.FAIL, "get", "chk-1/_metadata")]
    )
    job = SmallJob(store, 1)
    with pytest.raises(LeadershipLostError, match="nobody knows whether chk-1/_metadata is there"):
        job.checkpoint()
    assert (job.told, SmallJob(store, 2).total) == ([], 3)


def test_what_is_complete_is_gone_on_from_whoever_was_told() -> None:
    """Nobody, or half of the sinks: no file says who."""
    store = MemoryStore()
    job = SmallJob(store, 1)
    job.leader.complete(*write_checkpoint(job.store, 3, 1, 1))
    assert SmallJob(store, 2).recovered.key == "chk-1/_metadata"


def test_a_crash_while_the_one_before_is_dropped_leaves_orphans_and_no_manifest_without_files() -> None:
    store = MemoryStore([Fault(FaultKind.FAIL, "delete", "chk-1/v-0")])
    job = SmallJob(store, 1)
    job.checkpoint()
    with pytest.raises(StoreError):
        job.checkpoint()
    assert keys(store, "chk-1") == ["chk-1/v-0-1.state", "chk-1/v-1-1.state"]
    job = SmallJob(store, 2)
    assert (job.recovered.key, job.recovered.problems) == ("chk-2/_metadata", ())
    job.checkpoint()
    assert keys(store, "chk-1") == []


def test_a_claim_without_a_record_is_of_a_leader_that_started_nothing() -> None:
    store = stored(1, 3)
    Leader(JobStore(store, "job"), 2, "run-2")
    store.faults = [Fault(FaultKind.FAIL, within="leader-3.restored")]
    with pytest.raises(StoreError):
        SmallJob(store, 3)
    job = SmallJob(store, 4)
    assert (job.recovered.key, keys(store, "leader")) == (
        "chk-1/_metadata",
        [
            "leader-1.claim",
            "leader-1.restored",
            "leader-2.claim",
            "leader-3.claim",
            "leader-4.claim",
            "leader-4.restored",
        ],
    )


def run(store: MemoryStore, epoch: int, at: int, is_done: bool) -> tuple[SmallJob | None, int]:
    crashing = CrashingStore(store, at, is_done)
    job = None
    try:
        job = SmallJob(crashing, epoch)
        for _ in range(3):
            job.checkpoint()
    except Crash:
        pass
    return job, crashing.num_calls


@pytest.mark.parametrize("is_done", [False, True])
def test_a_crash_at_any_call_of_the_store_loses_nothing_that_was_told(is_done: bool) -> None:
    _, num_calls = run(MemoryStore(), 1, 0, False)
    totals = set()
    for at in range(1, num_calls + 1):
        store = MemoryStore()
        first, _ = run(store, 1, at, is_done)
        told = max((number for _, number in first.told), default=0) if first else 0
        second = SmallJob(store, 2)
        manifest = second.recovered.manifest
        restored = manifest.checkpoint_id if manifest else 0
        assert restored >= told, f"call {at}: {told} was told, {restored} is gone on from"
        assert restored <= (first.next_id - 1 if first else 0), f"call {at}"
        assert (second.total, second.recovered.problems) == (3 * restored, ()), f"call {at}"
        second.checkpoint()
        newest = second.next_id - 1
        assert {key.split("/")[0] for key in keys(store, "chk-")} == {f"chk-{newest}"}, f"call {at}: orphans"
        totals.add(second.total)
    assert totals == {3, 6, 9, 12}, "crashes were at all stages"


@pytest.mark.parametrize("is_done", [False, True])
def test_a_crash_of_the_next_leader_at_any_call_changes_nothing(is_done: bool) -> None:
    at = 0
    while True:
        at += 1
        store = stored(1, 3, 6)
        crashing = CrashingStore(store, at, is_done)
        with contextlib.suppress(Crash):
            SmallJob(crashing, 2)
        assert SmallJob(store, 3).total == 6
        if crashing.num_calls < at:
            break
    assert at > 10


# -- which one -------------------------------------------------------------------------------------


def test_without_any_manifest_a_job_starts_empty() -> None:
    job = SmallJob(MemoryStore(), 1)
    assert (job.recovered.manifest, job.recovered.next_checkpoint_id, job.total) == (None, 1, 0)


@pytest.mark.parametrize(
    ("key", "change", "problem"),
    [
        ("chk-2/_metadata", lambda raw: raw[:-3], "chk-2/_metadata: manifest: checksum, or its end is missing"),
        ("chk-2/v-0-1.state", lambda raw: None, "chk-2/v-0-1.state: missing"),
        ("chk-2/v-0-1.state", lambda raw: raw[:-3], "chk-2/v-0-1.state: short by 3 bytes"),
        ("chk-2/v-1-1.state", lambda raw: raw + b"x", "chk-2/v-1-1.state: too long by 1 bytes"),
        (
            "chk-2/v-1-1.state",
            lambda raw: raw[:60] + bytes([raw[60] ^ 1]) + raw[61:],
            "chk-2/v-1-1.state: section 'seen' of operator 'count': checksum",
        ),
    ],
)
def test_the_newest_sound_one_is_taken_and_each_bad_one_is_named_and_left(key, change, problem) -> None:  # type: ignore[no-untyped-def]  # a function for each row
    store = stored(1, 3, 6)
    harmed = change(store.files[f"job/{key}"])
    harm(store, key, harmed)
    job = SmallJob(store, 2)
    assert (job.recovered.key, job.total, job.recovered.problems) == ("chk-1/_metadata", 3, (problem,))
    assert job.recovered.next_checkpoint_id == 3, "its id is not used again"
    assert store.files.get(f"job/{key}") == harmed


def test_if_none_is_sound_the_job_does_not_start_empty() -> None:
    store = stored(1, 3, 6)
    harm(store, "chk-2/_metadata", b"")
    harm(store, "chk-1/v-0-1.state", None)
    with pytest.raises(RestoreRefusedError, match="none is sound; it does not start empty") as refused:
        SmallJob(store, 2)
    assert refused.value.problems == (
        "chk-2/_metadata: manifest: checksum, or its end is missing", "chk-1/v-0-1.state: missing",
    )  # fmt: skip
    assert "leader-2.restored" not in keys(store)


@pytest.mark.parametrize("call", ["list", "get", "size"])
def test_a_store_that_does_not_answer_is_no_reason_to_take_an_older_one(call: str) -> None:
    store = stored(1, 3, 6)
    leader = Leader(JobStore(store, "job"), 2, "run-2")
    store.faults = [Fault(FaultKind.FAIL, call, "chk-2" if call != "list" else "")]
    with pytest.raises(StoreError):
        leader.recover()
    recovered = leader.recover()
    assert recovered.manifest is not None
    assert recovered.manifest.checkpoint_id == 2


def test_the_same_checkpoint_may_be_gone_on_from_again() -> None:
    job = SmallJob(stored(1, 3), 2)
    again = job.leader.recover()
    assert (again.key, total_in(job.store, again.manifest)) == ("chk-1/_metadata", 3)
    job.checkpoint()
    assert job.leader.recover().key == "chk-2/_metadata"


def test_a_savepoint_is_gone_on_from_if_it_is_asked_for_and_from_then_on() -> None:
    store = stored(1, 3)
    job = SmallJob(store, 2)
    job.leader.complete(*write_checkpoint(job.store, 9, 5, 2, folder="sp-friday/"))
    job = SmallJob(store, 3)
    assert (job.recovered.key, job.total, job.next_id) == ("chk-1/_metadata", 3, 6)
    job.checkpoint()
    leader = Leader(job.store, 4, "run-4")
    asked = leader.recover("sp-friday/_metadata")
    assert (asked.key, asked.next_checkpoint_id) == ("sp-friday/_metadata", 7)
    assert leader.recover().key == "sp-friday/_metadata", "the same leader, after a failure"
    job = SmallJob(store, 5)
    assert job.recovered.key == "sp-friday/_metadata", "what came after it counts no more"
    job.checkpoint()
    assert SmallJob(store, 6).recovered.key == "chk-7/_metadata"


def test_a_damaged_savepoint_keeps_nobody_from_starting_who_has_not_gone_on_from_it() -> None:
    store = MemoryStore()
    leader = Leader(JobStore(store, "job"), 1, "run-1")
    leader.recover()
    leader.complete(*write_checkpoint(leader.store, 9, 5, 1, folder="sp-friday/"))
    sound = store.files["job/sp-friday/_metadata"]
    harm(store, "sp-friday/_metadata", b"")
    with pytest.raises(RestoreRefusedError, match="sp-friday/_metadata"):
        Leader(leader.store, 2, "run-2").recover("sp-friday/_metadata")
    assert Leader(leader.store, 3, "run-3").recover().manifest is None
    harm(store, "sp-friday/_metadata", sound)
    asked = Leader(leader.store, 4, "run-4").recover("sp-friday/_metadata")
    assert (asked.manifest is not None, asked.next_checkpoint_id) == (True, 6)
    harm(store, "sp-friday/_metadata", b"")
    with pytest.raises(RestoreRefusedError, match="sp-friday/_metadata"):
        Leader(leader.store, 5, "run-5").recover()


def test_at_another_parallelism_it_is_the_same_state() -> None:
    store = JobStore(stored(1, 50), "job")
    recovered = Leader(store, 2, "run-2").recover()
    assert [total_in(store, recovered.manifest, parallelism) for parallelism in (1, 2, 3, 8)] == [50] * 4


# -- who leads -------------------------------------------------------------------------------------


def test_an_epoch_is_claimed_once() -> None:
    store = JobStore(MemoryStore([Fault(FaultKind.LOSE_ANSWER, within="leader-3.claim")]), "job")
    Leader(store, 3, "run-a")
    with pytest.raises(LeadershipLostError, match="epoch 3 of job job is claimed by somebody else"):
        Leader(store, 3, "run-b")
    with pytest.raises(LeadershipLostError, match="is led by epoch 3, this is 2"):
        Leader(store, 2, "run-c")


def test_what_a_paused_leader_completes_does_not_count_and_is_told_to_nobody() -> None:
    store = MemoryStore()
    paused = SmallJob(store, 1)
    paused.checkpoint()
    younger = SmallJob(store, 2)
    with pytest.raises(LeadershipLostError):
        paused.checkpoint()
    assert paused.told == [("a", 1), ("b", 1)]
    assert "chk-2/_metadata" not in keys(store), "the record of the younger one speaks against it"
    assert younger.total == 3
    assert SmallJob(store, 3).recovered.key == "chk-1/_metadata"


def test_a_paused_leaders_manifest_that_was_left_does_not_count() -> None:
    store = MemoryStore()
    paused = SmallJob(store, 1)
    paused.checkpoint()
    SmallJob(store, 2)
    manifest, key = write_checkpoint(paused.store, 99, 7, 1)
    paused.store.put(key, [manifest.to_bytes()])  # and crashes before it lists the claims
    job = SmallJob(store, 3)
    assert (job.recovered.key, job.next_id) == ("chk-1/_metadata", 8)
    job.checkpoint()
    assert manifest_keys(keys(store)) == ["chk-8/_metadata"]


def test_after_a_leader_that_started_empty_nothing_older_counts() -> None:
    store = MemoryStore()
    paused = Leader(JobStore(store, "job"), 1, "run-1")
    assert SmallJob(store, 2).recovered.manifest is None
    manifest, key = write_checkpoint(paused.store, 99, 1, 1)
    paused.store.put(key, [manifest.to_bytes()])
    assert SmallJob(store, 3).recovered.manifest is None


def test_a_manifest_that_the_younger_leader_may_have_chosen_is_not_deleted() -> None:
    """It has claimed and not yet said what it goes on from."""
    store = MemoryStore()
    paused = SmallJob(store, 1)
    younger = Leader(paused.store, 2, "run-2")
    with pytest.raises(LeadershipLostError):
        paused.checkpoint()
    assert younger.recover().key == "chk-1/_metadata"


def test_of_two_leaders_with_one_id_the_second_is_refused() -> None:
    store = MemoryStore()
    job = SmallJob(store, 1)
    manifest, key = write_checkpoint(job.store, 3, 1, 1)
    job.store.put(key, [replace(manifest, run="another").to_bytes()])
    with pytest.raises(LeadershipLostError, match="chk-1/_metadata is not what this leader has put"):
        job.leader.complete(manifest, key)


def test_a_damaged_record_of_a_leader_is_named() -> None:
    store = stored(1, 3)
    harm(store, "leader-1.restored", b"{")
    with pytest.raises(RestoreRefusedError, match=r"leader-1\.restored: is no record of a leader"):
        SmallJob(store, 2)


def test_a_manifest_that_a_paused_leader_has_put_costs_the_next_one_a_checkpoint_and_not_its_lead() -> None:
    store = MemoryStore()
    paused = SmallJob(store, 1)
    paused.checkpoint()
    leader = SmallJob(store, 2)
    late, key = write_checkpoint(paused.store, 9, paused.next_id, 1)
    paused.store.put(key, [late.to_bytes()])  # and then it is paused once more
    assert leader.next_id == paused.next_id
    with pytest.raises(StoreError, match="had lost its lead"):
        leader.checkpoint()
    leader.checkpoint()
    assert SmallJob(store, 3).total == leader.total
