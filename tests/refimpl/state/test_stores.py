"""The contract of a store, for every back end; and what each adds to it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from refimpl.drivers.file_store import FileStore
from refimpl.drivers.object_store import ObjectStore
from refimpl.errors import ConfigError, KeyExistsError, LocalUsageError, NoSuchKeyError, StoreError
from refimpl.state import Fault, FaultKind, JobStore, MemoryStore, SnapshotStore

BACK_ENDS: dict[str, Callable[[Path], SnapshotStore]] = {
    "memory": lambda _folder: MemoryStore(),
    "file": lambda folder: FileStore(folder / "store"),
    "file without fsync": lambda folder: FileStore(str(folder / "store"), fsync=False),
    "object": lambda _folder: ObjectStore(f"memory://{uuid.uuid4()}/checkpoints"),
    "a job's part": lambda folder: JobStore(FileStore(folder), "job/1 ü"),
}


@pytest.fixture(params=BACK_ENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SnapshotStore:
    return BACK_ENDS[request.param](tmp_path)


# -- the contract ----------------------------------------------------------------------------------


def test_what_was_put_can_be_got_whole_and_in_part(store: SnapshotStore) -> None:
    store.put("chk-1/a.state", [b"01234", b"", b"56789"])
    assert (store.get("chk-1/a.state"), store.size("chk-1/a.state")) == (b"0123456789", 10)
    assert store.get("chk-1/a.state", 3) == b"3456789"
    assert store.get("chk-1/a.state", 3, 4) == b"3456"
    assert (store.get("chk-1/a.state", 8, 10), store.get("chk-1/a.state", 10), store.get("chk-1/a.state", 99, 1)) == (
        b"89", b"", b"",
    )  # fmt: skip
    store.put("chk-1/empty", [])
    assert (store.get("chk-1/empty"), store.size("chk-1/empty")) == (b"", 0)


def test_a_file_is_written_once_unless_it_is_to_be_replaced(store: SnapshotStore) -> None:
    store.put("a", [b"first"])
    with pytest.raises(KeyExistsError):
        store.put("a", [b"second"])
    assert store.get("a") == b"first"
    store.put("a", [b"third"], replace=True)
    store.put("b", [b"new"], replace=True)
    assert (store.get("a"), store.get("b")) == (b"third", b"new")


def test_what_is_missing_is_named(store: SnapshotStore) -> None:
    for ask in (store.get, store.size):
        with pytest.raises(NoSuchKeyError, match="a/b: missing"):
            ask("a/b")
    store.put("a/b", [b""])
    for key in ("a", "a/b/c"):
        with pytest.raises(NoSuchKeyError):
            store.get(key)


def test_a_list_is_sorted_and_by_any_prefix(store: SnapshotStore) -> None:
    keys = ["chk-1/_metadata", "chk-1/a.state", "chk-10/_metadata", "chk-2/a", "leader-1.claim", "sp-x/deep/er"]
    for key in reversed(keys):
        store.put(key, [b"x"])
    assert list(store.list("")) == keys
    assert list(store.list("chk-1")) == keys[:3]
    assert list(store.list("chk-1/")) == keys[:2]
    assert list(store.list("sp-x/d")) == keys[-1:]
    assert (list(store.list("nothing")), list(store.list("no/such/folder"))) == ([], [])


def test_what_is_deleted_is_gone_and_may_be_put_again(store: SnapshotStore) -> None:
    for key in ("a/b", "a/c", "d"):
        store.put(key, [b"x"])
    store.delete(["a/b", "missing", "no/such", "d"])
    assert list(store.list("")) == ["a/c"]
    store.delete(["a/c"])
    assert list(store.list("")) == []
    store.put("a/b", [b"y"])
    assert store.get("a/b") == b"y"


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/..", ".hidden", "a/.b", "a\\b", "a\nb", "x" * 300])
def test_no_key_leads_out_of_the_store(store: SnapshotStore, key: str) -> None:
    if isinstance(store, JobStore) and not key:
        return  # what is the job's folder to the store behind it
    with pytest.raises(LocalUsageError):
        store.put(key, [b"x"])
    assert list(store.list("")) == []


def test_a_put_whose_parts_fail_leaves_nothing(store: SnapshotStore) -> None:
    def parts() -> Iterable[bytes]:
        yield b"half"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.put("a/b", parts())
    assert list(store.list("")) == []
    store.put("a/b", [b"whole"])


# -- memory, with faults ---------------------------------------------------------------------------


def test_each_fault_does_what_it_is_called() -> None:
    waited: list[int] = []
    kinds = [*FaultKind]
    store = MemoryStore([Fault(kind, within=kind.name, amount=2) for kind in kinds], waited.append)
    answers = []
    for kind in kinds:
        try:
            store.put(kind.name, [b"abcd"])
            answers.append("ok")
        except StoreError as error:
            answers.append(error.reason)
    assert dict(zip([kind.name for kind in kinds], answers, strict=True)) == {
        "FAIL": "put failed, as planned",
        "LOSE_ANSWER": "no answer, as planned",
        "NO_SPACE": "no space left",
        "SLOW": "ok",
        "TRUNCATE": "ok",
        "FLIP": "ok",
    }
    assert store.files == {"LOSE_ANSWER": b"abcd", "SLOW": b"abcd", "TRUNCATE": b"ab", "FLIP": b"abbd"}
    assert waited == [2]


def test_a_fault_comes_once_at_the_call_it_is_planned_for() -> None:
    store = MemoryStore([Fault(FaultKind.FAIL, "put", "a", number=2), Fault(FaultKind.FAIL, "list")])
    store.put("b", [b""])
    store.put("a1", [b""])
    with pytest.raises(StoreError):
        store.put("a2", [b""])
    store.put("a2", [b""])
    with pytest.raises(StoreError):
        store.list("")
    assert list(store.list("")) == ["a1", "a2", "b"]
    assert store.calls == ["put b", "put a1", "put a2", "put a2", "list ", "list "]


# -- local files -----------------------------------------------------------------------------------


def test_file_and_folders_are_synced_before_a_put_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []

    def fsync(file: int) -> None:
        link = Path(f"/proc/self/fd/{file}")
        name = link.readlink().name if link.exists() else ""
        synced.append("temporary" if name.startswith(".tmp-") else name)

    store = FileStore(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("refimpl.drivers.file_store._F_FULLFSYNC", None)
    store.put("job/chk-1/a", [b"x"])
    expected = [tmp_path.name, "job", "temporary", "chk-1"]
    assert synced == (expected if "".join(synced) else [""] * 4)


def test_temporaries_of_dead_runs_are_swept_and_never_listed(tmp_path: Path) -> None:
    (tmp_path / "chk-1").mkdir()
    for name in (".tmp-1-ab", ".tmp-2-cd", ".other"):
        (tmp_path / "chk-1" / name).write_bytes(b"half")
    store = FileStore(tmp_path, epoch=2)
    assert sorted(path.name for path in (tmp_path / "chk-1").iterdir()) == [".other", ".tmp-2-cd"]
    assert list(store.list("")) == []


def test_a_put_leaves_no_temporary(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("a", [b"x"])
    with pytest.raises(KeyExistsError):
        store.put("a", [b"y"])
    store.put("a", [b"z"], replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"file.*"):
        FileStore(tmp_path / "file" / "store")


def test_of_two_that_put_one_file_one_is_told(tmp_path: Path) -> None:
    """The second looks before the first has linked, as two processes may."""
    first, second = FileStore(tmp_path), FileStore(tmp_path)

    def parts() -> Iterable[bytes]:
        first.put("leader-1.claim", [b"first"])
        yield b"second"

    with pytest.raises(KeyExistsError):
        second.put("leader-1.claim", parts())
    assert first.get("leader-1.claim") == b"first"


# -- object stores ---------------------------------------------------------------------------------


def test_a_back_end_that_cannot_create_if_absent_leads_nobody() -> None:
    with pytest.raises(ConfigError, match="two leaders could write one file of http"):
        ObjectStore("http://127.0.0.1/bucket")
    with pytest.raises(ConfigError, match="kept by FileStore"):
        ObjectStore("file:///checkpoints")
    with pytest.raises(StoreError, match="opened to be read"):
        ObjectStore("memory://bucket", read_only=True).put("a", [b"x"])
