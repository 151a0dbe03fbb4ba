"""A job that begins with the savepoint of another."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace

from refimpl.drivers.restore_point import RestorePoint, check_uids
from refimpl.errors import KeyExistsError, LeadershipLostError, LocalUsageError
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.state.layout import JobStore, claimed_epoch, manifest_key, savepoint_folder
from refimpl.state.recovery import Leader, manifest_keys
from refimpl.state.soundness import read_manifest
from refimpl.state.store import SnapshotStore

__all__ = ["begin_with_savepoint"]

_PART_BYTES = 1 << 20


def begin_with_savepoint(store: SnapshotStore, job_id: str, graph: ExecutionGraph, of: str, name: str) -> None:
    """Let job `job_id`, which has not been submitted yet, begin with savepoint `name` of job `of`.

    It gets a copy of its own. Then this process leads the job for a moment, and goes on from there: so does whoever
    leads next. Its epoch is above all of the other job's, so that no attempt has the number of one of those.

    Raises:
        LocalUsageError: there is no such savepoint, or the store has something of a job `job_id`.
        RestoreRefusedError: the savepoint is damaged, or this job cannot go on from it.
        LeadershipLostError: somebody else begins a job of this id.
        StoreError: the store did not answer.

    Flink:   SavepointRestoreSettings (runtime.jobgraph), 1.11.4
    Differs: the job graph of Flink has the path, and the JobMaster reads it there; a copy here is the new job's alone.
    """
    theirs, own = JobStore(store, of), JobStore(store, job_id)
    keys, key = theirs.list(""), manifest_key(savepoint_folder(name))
    if key not in keys:
        there = [each[len("sp-") : each.index("/")] for each in manifest_keys(keys) if each.startswith("sp-")]
        has = f"it has {', '.join(sorted(there)) or 'none'}" if keys else "no job of that id has kept anything here"
        raise LocalUsageError(f"job {of} has no savepoint {name!r}; {has}")
    if own.list(""):
        raise LocalUsageError(f"there has been a job {job_id} already; what begins with a savepoint needs a new id")
    manifest = read_manifest(theirs, key)
    check_uids(graph)
    RestorePoint(job_id, 0, manifest).check(graph)
    leader = Leader(own, 1 + max(claimed_epoch(each) or 0 for each in keys), secrets.token_hex(8))
    try:
        for each in manifest.files():
            own.put(each, _parts(theirs, each))
        own.put(key, [replace(manifest, job=job_id).to_bytes()])
        leader.recover(key)
    except (KeyExistsError, LeadershipLostError):  # the id is somebody else's by now, and so is what is there
        raise
    except BaseException:
        own.delete(own.list(""))
        raise


def _parts(store: JobStore, key: str) -> Iterator[bytes]:
    size = store.size(key)
    for start in range(0, size, _PART_BYTES):
        yield store.get(key, start, min(_PART_BYTES, size - start))
