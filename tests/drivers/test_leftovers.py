"""What dead attempts have left in a store goes; what a manifest names stays, whoever has put it."""

from __future__ import annotations

from pathlib import Path

import pytest

from refimpl.drivers.file_store import FileStore
from refimpl.drivers.leftovers import remove_checkpoints_of, remove_leftovers_of
from refimpl.state import MemoryStore
from refimpl.state.layout import JobStore, state_key
from refimpl.state.recovery import manifest_keys
from refimpl.state.soundness import read_manifest
from tests.test_checkpoints import completed, job, simulation


def left(num_checkpoints: int = 2) -> MemoryStore:
    """A store with checkpoints of a job that did not end."""
    store = MemoryStore()
    run = simulation(job(lambda _: None, num_records=400, checkpoints_retained=2), store)
    while len(completed(run)) < num_checkpoints:
        run.step()
    while run.recovery is not None and run.recovery.checkpoints.work:
        run.step(next(action for action in run.enabled() if str(action).startswith("store")))
    return store


def orphan(store: MemoryStore, epoch: int, number: int = 9) -> str:
    """Put the state of an attempt that a manifest will never name."""
    key = state_key(f"chk-{number}/", "window", 0, epoch << 16)
    JobStore(store, "job").put(key, [b"state"])
    return key


def test_only_states_of_these_leaders_that_no_manifest_names_are_removed() -> None:
    store = left()
    there = JobStore(store, "job")
    named = [file for key in manifest_keys(there.list("")) for file in read_manifest(there, key).files()]
    remove_leftovers_of(store, "job", 1)
    assert len(named) > 1
    assert set(named) <= set(there.list(""))
    before = dict(store.files)
    own, others = orphan(store, 1), orphan(store, 2)
    assert remove_leftovers_of(store, "job", 1) == [own]
    assert set(store.files) - set(before) == {f"job/{others}"}
    assert remove_leftovers_of(store, "job", 2) == [others]
    assert store.files == before


def test_when_a_job_has_finished_no_checkpoint_of_any_run_stays_and_every_savepoint_does() -> None:
    store = left()
    savepoint = JobStore(store, "job")
    savepoint.put("sp-friday/_metadata", [b"manifest"])
    savepoint.put("sp-friday/window-0-65536.state", [b"state"])
    JobStore(store, "other").put("chk-1/_metadata", [b"manifest"])
    orphan(store, 7)
    store.calls.clear()
    remove_checkpoints_of(store, "job")
    assert not [key for key in store.files if key.startswith("job/chk-")]
    assert {"job/sp-friday/_metadata", "job/sp-friday/window-0-65536.state", "other/chk-1/_metadata"} <= set(
        store.files
    )
    deleted = [call.endswith("/_metadata") for call in store.calls if call.startswith("delete")]
    assert deleted == sorted(deleted, reverse=True), "each manifest goes before its files"


@pytest.mark.parametrize("number", [0, 1])
def test_while_a_manifest_cannot_be_read_everything_stays(number: int) -> None:
    store = left()
    orphan(store, 1)
    manifests = [key for key in store.files if key.endswith("_metadata")]
    store.files[manifests[number]] = b"damaged"
    before = dict(store.files)
    assert remove_leftovers_of(store, "job", 1) == []
    assert store.files == before


def test_files_that_were_never_finished_go_with_their_folders(tmp_path: Path) -> None:
    store = FileStore(tmp_path, fsync=False)
    store.put("job/chk-1/a", [b"whole"])
    own, others = tmp_path / "job" / "chk-2", tmp_path / "other" / "chk-1"
    for folder in (own, others, tmp_path / "job" / "chk-1"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".tmp-0-00ff").write_bytes(b"half")
    remove_leftovers_of(store, "job", 1)
    assert not own.exists()
    assert store.list("job/") == ["job/chk-1/a"]
    assert [path.name for path in (tmp_path / "job" / "chk-1").iterdir()] == ["a"]
    assert (others / ".tmp-0-00ff").exists(), "another job may be writing it"
