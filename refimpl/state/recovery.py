"""Which checkpoint a job goes on from, and who may say so.

A leader has an epoch, larger than all before it. It (1) puts its claim, (2) lists and reads what is there, (3) puts a
record of what it goes on from, (4) starts, with checkpoint ids above all that it has listed. Another leader that was
only paused may still put manifests. None of them counts: **a manifest of epoch d and checkpoint n counts if and only
if n is at most what each younger record says.** A leader whose claim has no record has started nothing.

Whoever has put a manifest lists the claims before it tells anybody. All of this needs of a store only that a put that
has returned is in the next list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refimpl.errors import (
    CorruptFileError,
    KeyExistsError,
    LeadershipLostError,
    NoSuchKeyError,
    RestoreRefusedError,
    StoreError,
)
from refimpl.state.layout import JobStore, checkpoint_id_of, claim_key, claimed_epoch, restored_key
from refimpl.state.manifest import CheckpointKind, Manifest
from refimpl.state.soundness import problems_of, read_manifest

__all__ = ["Leader", "Recovered", "counts", "manifest_keys", "restored_records"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a leader goes on from: the manifest and its key, or nothing; the first id it may use; what was bad.

    `savepoints` are the folders of all that are there, in part or whole.
    """

    manifest: Manifest | None
    key: str | None
    next_checkpoint_id: int
    problems: tuple[str, ...]
    savepoints: frozenset[str] = frozenset()


class Leader:
    """One leader's hold on the checkpoints of a job; `run` tells it from all others.

    Raises:
        LeadershipLostError: somebody has claimed this epoch, or a younger one.

    Flink:   CheckpointCoordinator, ZooKeeperCompletedCheckpointStore (runtime.checkpoint), 1.11.4
    Differs: Flink keeps what counts in ZooKeeper, under a lock of the leader's; here the store alone has to do.
    """

    def __init__(self, store: JobStore, epoch: int, run: str) -> None:
        self.store = store
        self.epoch = epoch
        self.run = run
        if not self._put_own(claim_key(epoch), {"run": run}):
            raise LeadershipLostError(f"epoch {epoch} of job {store.job} is claimed by somebody else")
        self.check()

    def check(self) -> None:
        """Refuse to go on if somebody else leads.

        Raises:
            LeadershipLostError: there is a younger claim.
            StoreError: the store did not answer, so nobody knows.
        """
        younger = [epoch for key in self.store.list("leader-") if (epoch := claimed_epoch(key) or 0) > self.epoch]
        if younger:
            raise LeadershipLostError(f"job {self.store.job} is led by epoch {max(younger)}, this is {self.epoch}")

    def recover(self, savepoint: str | None = None) -> Recovered:
        """The newest sound checkpoint that counts, or the savepoint whose manifest's key is given.

        Savepoints are the user's, who may remove them: nobody looks at one that is not asked for, unless a leader has
        gone on from it. It may be asked again after each failure; the record of the first time stays.

        Raises:
            RestoreRefusedError: there are some that count, and none is sound; or it is not known which count.
            StoreError: the store did not answer; to start from an older checkpoint would be wrong.
            LeadershipLostError: somebody else leads.

        Flink:   FLIP-203, 1.15; before, the newest of both
        """
        keys = self.store.list("")
        folders = frozenset(key[: key.index("/") + 1] for key in keys if key.startswith("sp-"))
        records = restored_records(self.store, keys)
        manifests, bad = _read(self.store, dict.fromkeys([*manifest_keys(keys), *([savepoint] if savepoint else ())]))
        numbers = [checkpoint_id_of(key) or 0 for key in keys] + [record or 0 for record in records.values()]
        next_id = max([*numbers, *(manifest.checkpoint_id for manifest in manifests.values())], default=0) + 1
        problems = [str(error) for key, error in bad.items() if savepoint is None or key == savepoint]
        for key in [savepoint] if savepoint else self._candidates(manifests, records):
            if (manifest := manifests.get(key)) is None:
                continue
            found = [str(problem) for problem in problems_of(self.store, manifest)]
            if not found:
                self._record(manifest.checkpoint_id)
                return Recovered(manifest, key, next_id, tuple(problems), folders)
            problems += found
        if savepoint is None and not any(records.values()):  # nobody has gone on from a savepoint
            problems = [each for each in problems if not each.startswith("sp-")]
        if problems:
            raise RestoreRefusedError(
                f"job {self.store.job} has checkpoints and none is sound; it does not start empty:", problems
            )
        self._record(None)
        return Recovered(None, None, next_id, (), folders)

    def _candidates(self, manifests: Mapping[str, Manifest], records: Mapping[int, int | None]) -> list[str]:
        """The keys of what a job may go on from without being asked to, the newest first."""
        chosen = [key for key, each in manifests.items() if each.job == self.store.job and _is_candidate(each, records)]
        return sorted(chosen, key=lambda key: (manifests[key].checkpoint_id, key), reverse=True)

    def complete(self, manifest: Manifest, key: str) -> None:
        """Make a checkpoint true: put its manifest, and see that this leader still leads. Then tell who waits for it.

        One that another leader's record speaks against is deleted again; before there is a record, that leader may
        have chosen it, so it stays, and whether it counts will be seen.

        Raises:
            StoreError: the manifest is not there; the checkpoint is not.
            LeadershipLostError: somebody else leads, or nobody knows whether the manifest is there: only a leader that
                recovers can tell.
        """
        raw = manifest.to_bytes()
        try:
            self.store.put(key, [raw])
        except StoreError as error:
            self._look(key, raw, error)
        try:
            self.check()
        except StoreError as error:
            raise LeadershipLostError(f"{key} is there, and nobody knows who leads: {error}") from error
        except LeadershipLostError:
            records = restored_records(self.store, self.store.list("leader-"))
            if not counts(manifest, records):
                self.store.delete([key])
            raise

    def _look(self, key: str, raw: bytes, error: StoreError) -> None:
        """Whether a put that failed was done all the same."""
        try:
            found = self.store.get(key)
        except NoSuchKeyError:
            raise error from None
        except StoreError as second:
            raise LeadershipLostError(f"nobody knows whether {key} is there: {error}; {second}") from second
        if found != raw and self._is_of_an_older_leader(found, key):
            raise StoreError(key, "a leader that had lost its lead has put another here") from error
        if found != raw:
            raise LeadershipLostError(f"{key} is not what this leader has put: {error}") from error

    def _is_of_an_older_leader(self, raw: bytes, key: str) -> bool:
        """Whether a manifest came too late: this leader's ids are above all it has seen, so it does not count."""
        try:
            return Manifest.from_bytes(raw, key).epoch < self.epoch
        except CorruptFileError:
            return False

    def _record(self, checkpoint_id: int | None) -> None:
        self.check()
        self._put_own(restored_key(self.epoch), {"checkpoint": checkpoint_id})

    def _put_own(self, key: str, values: Mapping[str, object]) -> bool:
        """Put a file of this leader's; whether it is there, if need be since an earlier call."""
        raw = json.dumps(values, sort_keys=True).encode() + b"\n"
        try:
            self.store.put(key, [raw])
        except KeyExistsError:
            return key == restored_key(self.epoch) or self.store.get(key) == raw
        except StoreError as error:
            try:
                if self.store.get(key) == raw:
                    return True
            except NoSuchKeyError:
                pass
            raise error from None
        return True


def counts(manifest: Manifest, records: Mapping[int, int | None]) -> bool:
    """Whether each younger leader has gone on from this checkpoint or a later one; one without a record is none."""
    return _counts_since(manifest.epoch, manifest.checkpoint_id, records)


def _counts_since(epoch: int, checkpoint_id: int, records: Mapping[int, int | None]) -> bool:
    younger = [record for each, record in records.items() if each > epoch]
    return all(record is not None and checkpoint_id <= record for record in younger)


def _is_candidate(manifest: Manifest, records: Mapping[int, int | None]) -> bool:
    """Whether it counts; a savepoint does from the leader on that was asked to go on from it."""
    if manifest.kind is not CheckpointKind.SAVEPOINT:
        return counts(manifest, records)
    begun = [epoch for epoch, record in records.items() if record == manifest.checkpoint_id]
    return bool(begun) and _counts_since(max(begun), manifest.checkpoint_id, records)


def restored_records(store: JobStore, keys: Iterable[str]) -> dict[int, int | None]:
    """By epoch, what each leader has gone on from; `None` if it started empty.

    Raises:
        RestoreRefusedError: a record is damaged: without it nobody knows which manifests count.
    """
    records: dict[int, int | None] = {}
    for key in keys:
        epoch = claimed_epoch(key, "restored")
        if epoch is None:
            continue
        try:
            values = json.loads(store.get(key))
            record = values["checkpoint"]
            if record is not None and type(record) is not int:
                raise TypeError(record)
        except (ValueError, KeyError, TypeError):
            raise RestoreRefusedError(f"{key}: is no record of a leader, so nobody knows what counts") from None
        records[epoch] = record
    return records


def manifest_keys(keys: Iterable[str]) -> list[str]:
    """Those of manifests, of checkpoints and savepoints."""
    return [key for key in keys if key.startswith(("chk-", "sp-")) and key.endswith("/_metadata")]


def _read(store: JobStore, keys: Iterable[str]) -> tuple[dict[str, Manifest], dict[str, CorruptFileError]]:
    """By key, the manifests that can be read, and what is wrong with the others."""
    manifests, bad = dict[str, Manifest](), dict[str, CorruptFileError]()
    for key in keys:
        try:
            manifests[key] = read_manifest(store, key)
        except CorruptFileError as error:
            bad[key] = error
    return manifests, bad
