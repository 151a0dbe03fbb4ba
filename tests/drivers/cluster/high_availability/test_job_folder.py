"""The jobs of a cluster on disk: none is lost, none runs twice, and what is damaged is named and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from refimpl.cluster.dispatcher import Dispatcher, JobRecord, JobRecordState, LeadJob
from refimpl.cluster.job_status import JobState
from refimpl.drivers.cluster.high_availability.job_folder import JobFolder
from refimpl.drivers.file_store import FileStore
from refimpl.errors import LocalUsageError, StoreError
from refimpl.state.store import Fault, FaultKind, MemoryStore

NEW = JobRecord("job", b"\x00code\n")


def led(store: MemoryStore | FileStore) -> list[tuple[str, object]]:
    """The jobs that whoever leads next goes on with."""
    decisions = Dispatcher(JobFolder(store)).recover()
    return [(each.record.job_id, each.record.job) for each in decisions if isinstance(each, LeadJob)]


def test_jobs_outlive_their_leader_in_order_and_those_that_are_over_do_not_run_again(tmp_path: Path) -> None:
    dispatcher = Dispatcher(JobFolder(FileStore(tmp_path)))
    ids = ["z", "a", "job/1", "..", "Ü b"]
    for number, job_id in enumerate(ids):
        dispatcher.submit(job_id, bytes([number]))
    dispatcher.ended("a", JobState.FAILED, "user code")
    dispatcher.ended("z", JobState.SUSPENDED)
    assert led(FileStore(tmp_path)) == [(job_id, bytes([n])) for n, job_id in enumerate(ids) if job_id != "a"]
    again = Dispatcher(JobFolder(FileStore(tmp_path)))
    assert [each.job_id for each in again.jobs] == ids
    assert again.jobs[1] == JobRecord("a", b"", JobRecordState.DONE, JobState.FAILED, "user code")
    for job_id in ids:
        with pytest.raises(LocalUsageError, match="there is a job"):
            again.submit(job_id, b"other")


@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER])
def test_a_client_hears_yes_only_of_a_job_that_is_stored(kind: FaultKind) -> None:
    store = MemoryStore([Fault(kind)])
    with pytest.raises(StoreError):
        Dispatcher(JobFolder(store)).submit("job", b"code")
    assert led(store) == ([] if kind is FaultKind.FAIL else [("job", b"code")])


def test_a_leader_that_was_overtaken_can_take_nothing_back() -> None:
    store = MemoryStore()
    old, new = JobFolder(store), JobFolder(store)
    old.put(NEW)
    running = replace(NEW, state=JobRecordState.RUNNING)
    over = replace(NEW, state=JobRecordState.DONE, end=JobState.FINISHED)
    new.put(running)
    new.put(over)
    old.put(running)
    old.put(replace(over, end=JobState.FAILED, why="late"))
    with pytest.raises(LocalUsageError):
        old.put(NEW)
    for jobs in (old, new, JobFolder(store)):
        assert jobs.all() == {"job": replace(over, job=b"")}


def test_those_that_ended_last_are_kept_and_all_that_are_not_over() -> None:
    store = MemoryStore()
    for number in range(7):
        JobFolder(store).put(JobRecord(str(number), b""))
    for number in (2, 5, 4, 0, 3):  # 0 was there first, and is over late
        JobFolder(store, num_kept=2).put(JobRecord(str(number), b"", JobRecordState.DONE, JobState.FINISHED))
    jobs = JobFolder(store)
    assert list(jobs.all()) == ["0", "1", "3", "6"]
    jobs.put(JobRecord("2", b"again"))
    assert list(JobFolder(store).all().items())[-1] == ("2", JobRecord("2", b"again"))


def test_a_job_that_was_forgotten_by_half_is_none_and_its_id_is_free() -> None:
    store = MemoryStore()
    jobs = JobFolder(store)
    jobs.put(NEW)
    jobs.put(replace(NEW, state=JobRecordState.DONE, end=JobState.FINISHED))
    store.delete(["job/stored"])
    assert jobs.all() == {}
    jobs.put(NEW)
    assert jobs.all() == {"job": NEW}


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize("name", ["stored", "begun", "over"])
@pytest.mark.parametrize(
    "damage",
    [lambda raw: b"", lambda raw: raw[:-1], lambda raw: raw + b"x", lambda raw: b"x" + raw[1:], lambda raw: raw[:64]],
)
def test_what_is_damaged_is_named_and_nothing_is_deleted(name: str, damage: Damage) -> None:
    store = MemoryStore()
    jobs = JobFolder(store)
    jobs.put(NEW)
    jobs.put(replace(NEW, state=JobRecordState.RUNNING))
    jobs.put(replace(NEW, state=JobRecordState.DONE, end=JobState.FINISHED))
    jobs.put(JobRecord("other", b"code"))
    store.files[f"job/{name}"] = damage(store.files[f"job/{name}"])
    there = dict(store.files)
    assert led(store) == [("other", b"code")], "the others go on"
    record = JobFolder(store).all()["job"]
    assert (record.state, record.end) == (JobRecordState.DONE, None)
    assert f"job/{name}: " in record.why
    JobFolder(store, num_kept=0).put(JobRecord("other", b"", JobRecordState.DONE, JobState.FINISHED))
    JobFolder(store).put(JobRecord("third", b"code"))
    assert sorted(JobFolder(store).all()) == ["job", "third"]
    assert {key: raw for key, raw in store.files.items() if key.startswith("job/")} == {
        key: raw for key, raw in there.items() if key.startswith("job/")
    }
    with pytest.raises(LocalUsageError, match="there is a job job already"):
        JobFolder(store).put(NEW)


def test_a_file_of_another_job_is_named() -> None:
    store = MemoryStore()
    JobFolder(store).put(NEW)
    store.files["other/stored"] = store.files["job/stored"]
    assert "other/stored: it is of job job" in JobFolder(store).all()["other"].why
    assert led(store) == [("job", NEW.job)]


def test_every_byte_of_a_stored_job_is_checked() -> None:
    store = MemoryStore()
    JobFolder(store).put(NEW)
    whole = store.files["job/stored"]
    for at in range(len(whole)):
        store.files["job/stored"] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        assert "job/stored: " in JobFolder(store).all()["job"].why
        assert led(store) == []
