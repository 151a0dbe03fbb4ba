"""The jobs of a cluster on disk: stored before a client hears yes, and over before it hears how.

    JOB/stored    hash, line end, JSON: job id, number, hash and length of the code; line end, the code: a pickled job
    JOB/begun     hash, line end, JSON: job id
    JOB/over      hash, line end, JSON: job id, number, end, why

The number of a job that is stored is one more than that of the job stored before, and so for those that are over.

Rules of this file:
- Each file is made once, by whoever comes first, and changed by nobody. So a leader that was overtaken can neither
  take a job back to an earlier state nor give it a second end.
- A job is there as long as its first file is. That one is made first, and deleted first.
- A file that is not as it was written is named, and nothing is deleted: what was in it somebody has to say. Its job
  runs no more, and nobody says how it ended; the others go on.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from refimpl.cluster.dispatcher import JobRecord, JobRecordState
from refimpl.cluster.job_status import JobState
from refimpl.drivers.cluster.rpc.json_form import JsonForm
from refimpl.errors import CorruptFileError, KeyExistsError, LocalUsageError, RemoteProtocolError
from refimpl.state.store import SnapshotStore

__all__ = ["JOBS_KEPT", "JobFolder"]

JOBS_KEPT = 100
_HASH_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class _Stored:
    job_id: str
    number: int
    code_hash: str
    code_bytes: int


@dataclass(frozen=True, slots=True)
class _Begun:
    job_id: str


@dataclass(frozen=True, slots=True)
class _Over:
    job_id: str
    number: int
    end: JobState
    why: str


_FILES: Mapping[str, type[Any]] = {"stored": _Stored, "begun": _Begun, "over": _Over}
_FORMS = {name: JsonForm(kind) for name, kind in _FILES.items()}


class JobFolder:
    """A `JobRegistry` in `store`, for whoever leads the Dispatcher; the jobs in its records are bytes.

    Of jobs that are over, the `num_kept` that ended last are kept, for clients that ask how they ended.

    Flink:   RunningJobsRegistry, JobGraphStore, ArchivedExecutionGraphStore (runtime.highavailability,
             runtime.jobmanager, runtime.dispatcher), 1.11.4
    """

    def __init__(self, store: SnapshotStore, num_kept: int = JOBS_KEPT) -> None:
        self._store = store
        self._num_kept = num_kept
        self._read: dict[str, tuple[Any, bytes]] = {}  # by key; no file changes

    def put(self, record: JobRecord) -> None:
        """Write how far a job is. Durable when this returns; an end that was written before stays.

        Raises:
            LocalUsageError: a new job has the id of one that is there.
            StoreError: it failed, or nobody knows.
        """
        match record.state:
            case JobRecordState.PENDING:
                self._add(record)
            case JobRecordState.RUNNING:
                self._write(_key(record.job_id, "begun"), _Begun(record.job_id))
            case JobRecordState.DONE:
                assert record.end is not None, f"job {record.job_id} is over, and nobody says how"
                number = 1 + max(self._ends().values(), default=0)
                self._write(_key(record.job_id, "over"), _Over(record.job_id, number, record.end, record.why))
                self._forget_oldest()

    def all(self) -> Mapping[str, JobRecord]:
        """Every job, the oldest first. One with a damaged file is done and has no end; without a number it is last.

        Raises:
            StoreError: the store does not say.
        """
        keys = set(self._store.list(""))
        self._read = {key: read for key, read in self._read.items() if key in keys}
        jobs = [(number or math.inf, job_id) for job_id, number in self._numbers(keys).items()]
        return {job_id: self._record(job_id, keys) for _number, job_id in sorted(jobs)}

    # -- files ---------------------------------------------------------------------------------------------

    def _add(self, record: JobRecord) -> None:
        code = record.job
        if not isinstance(code, bytes):
            raise LocalUsageError(f"job {record.job_id} is stored as bytes, got {type(code).__name__}")
        keys = self._store.list("")
        if (key := _key(record.job_id, "stored")) in keys:
            raise LocalUsageError(f"there is a job {record.job_id} already; submit it under another id")
        self._store.delete([_key(record.job_id, "begun"), _key(record.job_id, "over")])  # of one that was forgotten
        number = 1 + max(self._numbers(keys).values(), default=0)
        stored = _Stored(record.job_id, number, hashlib.sha256(code).hexdigest(), len(code))
        if not self._write(key, stored, code):
            raise LocalUsageError(f"there is a job {record.job_id} already; submit it under another id")

    def _write(self, key: str, value: object, code: bytes = b"") -> bool:
        """Make a file, unless there is one."""
        body = _FORMS[key.rpartition("/")[2]].write(value)
        parts = [hashlib.sha256(body).hexdigest().encode(), b"\n", body]
        try:
            self._store.put(key, [*parts, b"\n", code] if key.endswith("/stored") else parts)
        except KeyExistsError:
            return False
        return True

    def _numbers(self, keys: Iterable[str]) -> dict[str, int]:
        """The number of each job that there is, from 1 on; 0 where it cannot be read."""
        numbers: dict[str, int] = {}
        for folder, _slash, name in (key.rpartition("/") for key in keys):
            if name == "stored":
                numbers[unquote(folder)] = 0
                with suppress(CorruptFileError):
                    numbers[unquote(folder)] = self._get(f"{folder}/{name}")[0].number
        return numbers

    def _ends(self) -> dict[str, int]:
        """The number of each job that is over and of which every file is as it was written."""
        over = [each.job_id for each in self.all().values() if each.end is not None]
        return {job_id: self._get(_key(job_id, "over"))[0].number for job_id in over}

    def _record(self, job_id: str, keys: set[str]) -> JobRecord:
        stored, begun, over = (_key(job_id, name) for name in _FILES)
        try:
            code = self._get(stored)[1]
            if begun in keys:
                self._get(begun)
            if over in keys:
                ended = self._get(over)[0]
                self._read[stored] = self._read[stored][0], b""  # nobody will run it again
                return JobRecord(job_id, b"", JobRecordState.DONE, ended.end, ended.why)
        except CorruptFileError as error:
            why = f"{error}; nothing was deleted, and the job runs no more"
            return JobRecord(job_id, b"", JobRecordState.DONE, None, why)
        return JobRecord(job_id, code, JobRecordState.RUNNING if begun in keys else JobRecordState.PENDING)

    def _get(self, key: str) -> tuple[Any, bytes]:
        """What is in a file, and the code behind it."""
        if key not in self._read:
            self._read[key] = _parsed(key, self._store.get(key))
        return self._read[key]

    def _forget_oldest(self) -> None:
        """What was submitted long ago may have ended just now, and somebody waits to hear how."""
        ends = self._ends()
        for job_id in sorted(ends, key=ends.__getitem__)[: max(0, len(ends) - self._num_kept)]:
            self._store.delete([_key(job_id, name) for name in _FILES])


def _parsed(key: str, raw: bytes) -> tuple[Any, bytes]:
    folder, _slash, name = key.rpartition("/")
    digest, body = raw[:_HASH_CHARACTERS], raw[_HASH_CHARACTERS + 1 :]
    body, _line_end, code = body.partition(b"\n") if name == "stored" else (body, b"", b"")
    if name not in _FORMS or raw[_HASH_CHARACTERS : _HASH_CHARACTERS + 1] != b"\n":
        raise CorruptFileError(key, "it is no file of a job")
    if not hmac.compare_digest(digest, hashlib.sha256(body).hexdigest().encode()):
        raise CorruptFileError(key, "its content does not have its hash")
    try:
        value = _FORMS[name].read(body)
    except RemoteProtocolError as error:
        raise CorruptFileError(key, str(error)) from error
    if value.job_id != unquote(folder):
        raise CorruptFileError(key, f"it is of job {value.job_id}")
    if isinstance(value, _Stored) and (len(code), hashlib.sha256(code).hexdigest()) != (
        value.code_bytes,
        value.code_hash,
    ):
        raise CorruptFileError(key, f"the job has {len(code)} B, and not the {value.code_bytes} B of its hash")
    return value, code


def _key(job_id: str, name: str) -> str:
    return f"{quote(job_id, safe='').replace('.', '%2E')}/{name}"
