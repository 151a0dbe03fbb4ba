"""Whatever byte of a checkpoint is flipped, and wherever a file is cut: verifying and restoring both notice."""

from __future__ import annotations

import random

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
