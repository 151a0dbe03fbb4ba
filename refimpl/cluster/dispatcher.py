"""The Dispatcher: jobs come in here, and it is who knows which there are, whoever leads.

Before the client hears yes a job is stored, and before it hears how the job has ended that is stored too. So whoever
leads next neither loses a job nor runs one again that is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from refimpl.cluster.job_status import JobState
from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state

__all__ = [
    "JOB_RECORD_TRANSITIONS",
    "CancelJob",
    "Dispatcher",
    "DispatcherDecision",
    "ForgetJob",
    "JobRecord",
    "JobRecordEvent",
    "JobRecordState",
    "JobRegistry",
    "LeadJob",
    "MemoryJobRegistry",
]


class JobRecordState(Enum):
    """What is stored of a job."""

    PENDING = "stored"
    RUNNING = "begun"
    DONE = "over"


class JobRecordEvent(Enum):
    """What is written of a job."""

    LEAD = "have a leader"
    END = "come to an end"


_S, _E = JobRecordState, JobRecordEvent

JOB_RECORD_TRANSITIONS: dict[JobRecordState, dict[JobRecordEvent, JobRecordState]] = {
    _S.PENDING: {_E.LEAD: _S.RUNNING, _E.END: _S.DONE},  # cancelled before anybody led it
    _S.RUNNING: {_E.LEAD: _S.RUNNING, _E.END: _S.DONE},
    _S.DONE: {_E.END: _S.DONE},
}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job: what it is made of (`job`, whatever the driver makes of it), how far it is, and how it ended."""

    job_id: str
    job: object
    state: JobRecordState = JobRecordState.PENDING
    end: JobState | None = None
    why: str = ""

    def after(self, event: JobRecordEvent) -> JobRecord:
        return replace(self, state=next_state(JOB_RECORD_TRANSITIONS, self.state, event, f"job {self.job_id}"))


class JobRegistry(Protocol):
    """Where records are kept, for whoever leads: `put` returns when it is durable, `all` has every one.

    Flink:   RunningJobsRegistry, JobGraphStore (runtime.highavailability, runtime.jobmanager), 1.11.4
    """

    def put(self, record: JobRecord) -> None: ...

    def all(self) -> Mapping[str, JobRecord]: ...


class MemoryJobRegistry:
    """Records that last as long as the process."""

    def __init__(self) -> None:
        self._records: dict[str, JobRecord] = {}

    def put(self, record: JobRecord) -> None:
        """Keep a record in place of an older one of the same job."""
        self._records[record.job_id] = record

    def all(self) -> Mapping[str, JobRecord]:
        """Every record, the oldest first."""
        return dict(self._records)


@dataclass(frozen=True, slots=True)
class LeadJob:
    """Let somebody lead this job, and run it."""

    record: JobRecord


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Tell whoever leads this job to end it."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ForgetJob:
    """Remove what was kept for a restart of this job, by its retention: it is over."""

    job_id: str
    end: JobState


DispatcherDecision = LeadJob | CancelJob | ForgetJob


class Dispatcher:
    """One leadership over the jobs of a cluster.

    Flink:   Dispatcher (runtime.dispatcher), 1.11.4
    Differs: the result of a job stays in the registry, so that a client can ask for it after a change of leader too.
    """

    def __init__(self, registry: JobRegistry) -> None:
        self._registry = registry

    @property
    def jobs(self) -> tuple[JobRecord, ...]:
        """All jobs, over or not, the oldest first."""
        return tuple(self._registry.all().values())

    def recover(self) -> list[DispatcherDecision]:
        """Take over from whoever led before: every job that is not over goes on."""
        return [self._lead(record) for record in self.jobs if record.state is not JobRecordState.DONE]

    def submit(self, job_id: str, job: object) -> list[DispatcherDecision]:
        """A new job; when this returns it will not be lost.

        Raises:
            LocalUsageError: there is, or was, a job of this id.
        """
        if (known := self._registry.all().get(job_id)) is not None:
            raise LocalUsageError(
                f"there is a job {job_id} already, which is {known.state.value}; submit it under another id"
            )
        record = JobRecord(job_id, job)
        self._registry.put(record)
        return [self._lead(record)]

    def cancel(self, job_id: str) -> list[DispatcherDecision]:
        """End a job; one that is over stays as it is.

        Raises:
            LocalUsageError: there is no such job.
        """
        if self._record(job_id).state is JobRecordState.DONE:
            return []
        return [CancelJob(job_id)]

    def ended(self, job_id: str, end: JobState, why: str = "") -> list[DispatcherDecision]:
        """Whoever led a job says how it ended. What is suspended has not; and the first end that was stored stays.

        Raises:
            LocalUsageError: there is no such job, or that is no end.
        """
        record = self._record(job_id)
        if not end.is_terminal:
            raise LocalUsageError(f"job {job_id} is {end.value}, and that is no end")
        if end is JobState.SUSPENDED or record.state is JobRecordState.DONE:
            return []
        self._registry.put(replace(record.after(JobRecordEvent.END), end=end, why=why))
        return [ForgetJob(job_id, end)]

    def _lead(self, record: JobRecord) -> LeadJob:
        led = record.after(JobRecordEvent.LEAD)
        self._registry.put(led)
        return LeadJob(led)

    def _record(self, job_id: str) -> JobRecord:
        records = self._registry.all()
        if job_id not in records:
            known = ", ".join(records) or "none"
            raise LocalUsageError(f"there is no job {job_id}; the jobs are: {known}")
        return records[job_id]
