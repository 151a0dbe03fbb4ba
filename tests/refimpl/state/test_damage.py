"""Whatever byte of a checkpoint is flipped, and wherever a file is cut: verifying and restoring both notice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from refimpl.errors import CorruptFileError, RestoreRefusedError
from refimpl.state import JobStore, Leader, MemoryStore, problems_of, read_manifest
from tests.support.checkpoint_rig import total_in, write_checkpoint

SEEDS = range(300)


def checkpoint() -> MemoryStore:
    store = MemoryStore()
    leader = Leader(JobStore(store, "job"), 1, "run")
    leader.recover()
    leader.complete(*write_checkpoint(leader.store, 12, 1, 1))
    return store


CHECKPOINT = checkpoint()


def harmed(seed: int) -> tuple[MemoryStore, str]:
    """The checkpoint with one file changed, and what was done to it."""
    draw = random.Random(seed)
    store = MemoryStore()
    store.files = dict(CHECKPOINT.files)
    key = draw.choice([key for key in store.files if "chk-1/" in key])
    raw = bytearray(store.files[key])
    position = draw.randrange(len(raw))
    if draw.random() < 0.3:
        del raw[position:]
        what = f"cut to {position} bytes"
    else:
        raw[position] ^= draw.randrange(1, 256)
        what = f"byte {position} is {raw[position]}"
    store.files[key] = bytes(raw)
    return store, f"seed {seed}, {key}: {what}"


@pytest.mark.parametrize("seed", SEEDS)
def test_any_byte_and_any_cut_is_noticed(seed: int) -> None:
    store, what = harmed(seed)
    print(what)
    job = JobStore(store, "job")
    with pytest.raises(CorruptFileError, match=r"^chk-1/"):
        raise next(problems_of(job, read_manifest(job, "chk-1/_metadata")), AssertionError("nothing was noticed"))
    with pytest.raises(RestoreRefusedError):
        Leader(job, 2, "run-2").recover()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restore_that_trusts_the_manifest_notices_what_it_reads(seed: int) -> None:
    """The TaskManager's own look: what was sound when the leader looked may be harmed when it is read."""
    store, what = harmed(seed)
    print(what)
    job = JobStore(store, "job")
    manifest = read_manifest(JobStore(CHECKPOINT, "job"), "chk-1/_metadata")
    if "_metadata" in what:
        assert total_in(job, manifest) == 12
        return
    with pytest.raises(CorruptFileError, match=r"^chk-1/"):
        total_in(job, manifest)


# -- every file, in every way ------------------------------------------------------------------------


def two_checkpoints() -> MemoryStore:
    store = MemoryStore()
    leader = Leader(JobStore(store, "job"), 1, "run")
    leader.recover()
    for checkpoint_id in (1, 2):
        leader.complete(*write_checkpoint(leader.store, 12 * checkpoint_id, checkpoint_id, 1))
    return store


TWO = two_checkpoints()
NEWEST = sorted(key.removeprefix("job/") for key in TWO.files if key.startswith("job/chk-2/"))

Damage = Callable[[bytes], bytes | None]


def ways() -> Iterator[tuple[str, Damage]]:
    """A file is gone, is cut at each tenth, or has one byte wrong: the first, one in the middle, the last."""
    yield "missing", lambda raw: None
    for tenth in range(10):
        yield f"cut at {tenth} tenths", lambda raw, tenth=tenth: raw[: len(raw) * tenth // 10]
    for name, part in (("first", 0), ("middle", 1), ("last", 2)):

        def flip(raw: bytes, part: int = part) -> bytes:
            position = (len(raw) - 1) * part // 2
            return raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]

        yield f"{name} byte flipped", flip


def damaged(files: dict[str, bytes], key: str, damage: Damage) -> dict[str, bytes]:
    raw = damage(files[key])
    others = {name: content for name, content in files.items() if name != key}
    return others if raw is None else {**others, key: raw}


@pytest.mark.parametrize(("way", "damage"), [*ways()], ids=[name for name, _ in ways()])
@pytest.mark.parametrize("key", NEWEST)
def test_the_newest_sound_one_is_taken_the_file_is_named_and_nothing_is_deleted(
    key: str, way: str, damage: Damage
) -> None:
    store = MemoryStore()
    store.files = dict(there := damaged(TWO.files, f"job/{key}", damage))
    recovered = Leader(JobStore(store, "job"), 2, "run-2").recover()
    assert recovered.key == "chk-1/_metadata"
    if (key, way) == ("chk-2/_metadata", "missing"):
        assert recovered.problems == (), "without a manifest it is no checkpoint, but what a crash has left"
    else:
        problem = next(each for each in recovered.problems if each.startswith(key))
        assert len(problem.removeprefix(key)) > len(": "), "and why"
    assert store.files.items() >= there.items()


@pytest.mark.parametrize(("way", "damage"), [*ways()], ids=[name for name, _ in ways()])
@pytest.mark.parametrize("what", ["_metadata", ".state"])
def test_where_none_is_sound_the_job_does_not_start_and_nothing_is_deleted(what: str, way: str, damage: Damage) -> None:
    store = MemoryStore()
    store.files = dict(TWO.files)
    harmed = sorted(key for key in store.files if key.endswith(what))
    for key in harmed:
        store.files = damaged(store.files, key, damage)
    there = dict(store.files)
    if what == "_metadata" and way == "missing":
        assert Leader(JobStore(store, "job"), 2, "run-2").recover().manifest is None, "there is no checkpoint"
        return
    with pytest.raises(RestoreRefusedError, match="does not start empty") as refused:
        Leader(JobStore(store, "job"), 2, "run-2").recover()
    for key in harmed:
        assert any(each.startswith(key.removeprefix("job/")) for each in refused.value.problems)
    assert store.files.items() >= there.items()
