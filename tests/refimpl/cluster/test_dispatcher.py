"""Jobs of a cluster: none is lost with its leader, and none is run again that is over."""

from __future__ import annotations

import random

import pytest

from refimpl.cluster import (
    CancelJob,
    Dispatcher,
    ForgetJob,
    JobRecordState,
    JobState,
    LeadJob,
    MemoryJobRegistry,
)
from refimpl.errors import LocalUsageError


def led(decisions: list[object]) -> list[str]:
    return [decision.record.job_id for decision in decisions if isinstance(decision, LeadJob)]


def test_a_job_is_stored_before_anybody_leads_it() -> None:
    """Flink: DispatcherTest#testJobSubmission."""
    registry = MemoryJobRegistry()
    (decision,) = Dispatcher(registry).submit("a", "what it is")
    assert isinstance(decision, LeadJob)
    assert registry.all()["a"] == decision.record
    assert (decision.record.job, decision.record.state) == ("what it is", JobRecordState.RUNNING)


def test_whoever_leads_next_goes_on_with_what_is_not_over() -> None:
    """Flink: DispatcherTest#testJobRecovery."""
    registry = MemoryJobRegistry()
    before = Dispatcher(registry)
    for job_id in "abc":
        before.submit(job_id, None)
    assert before.ended("b", JobState.FINISHED) == [ForgetJob("b", JobState.FINISHED)]
    assert before.ended("c", JobState.SUSPENDED) == []
    assert led(Dispatcher(registry).recover()) == ["a", "c"]


@pytest.mark.parametrize("is_over", [False, True])
def test_an_id_is_given_once(is_over: bool) -> None:
    """Flink: DispatcherTest#testDuplicateJobSubmissionWithRunningJobId, with those that are over too."""
    registry = MemoryJobRegistry()
    Dispatcher(registry).submit("a", None)
    if is_over:
        Dispatcher(registry).ended("a", JobState.FAILED, "why")
    with pytest.raises(LocalUsageError, match="over" if is_over else "begun"):
        Dispatcher(registry).submit("a", None)


def test_the_first_end_stays() -> None:
    dispatcher = Dispatcher(MemoryJobRegistry())
    dispatcher.submit("a", None)
    dispatcher.ended("a", JobState.FAILED, "why")
    assert dispatcher.ended("a", JobState.FINISHED) == []
    (record,) = dispatcher.jobs
    assert (record.end, record.why) == (JobState.FAILED, "why")
    assert dispatcher.cancel("a") == []


def test_what_is_no_job_or_no_end_is_refused() -> None:
    dispatcher = Dispatcher(MemoryJobRegistry())
    dispatcher.submit("a", None)
    assert dispatcher.cancel("a") == [CancelJob("a")]
    with pytest.raises(LocalUsageError, match="no job b; the jobs are: a"):
        dispatcher.cancel("b")
    with pytest.raises(LocalUsageError, match="no job b"):
        dispatcher.ended("b", JobState.FINISHED)
    with pytest.raises(LocalUsageError, match="is no end"):
        dispatcher.ended("a", JobState.RUNNING)


def test_through_any_changes_of_leader_each_job_ends_once() -> None:
    for seed in range(100):
        rng, registry, ends = random.Random(seed), MemoryJobRegistry(), []
        dispatcher, running = Dispatcher(registry), set()
        for number in range(40):
            match rng.choice(["submit", "end", "lead"]):
                case "submit":
                    running |= set(led(dispatcher.submit(str(number), None)))
                case "end" if running:
                    job_id = rng.choice(sorted(running))
                    ends += [
                        each.job_id
                        for each in dispatcher.ended(job_id, JobState.FINISHED)
                        if isinstance(each, ForgetJob)
                    ]
                    running.discard(job_id)
                case "lead":
                    dispatcher = Dispatcher(registry)
                    assert set(led(dispatcher.recover())) == running, f"seed {seed}"
        assert len(ends) == len(set(ends)), f"seed {seed}"
        assert set(registry.all()) == running | set(ends), f"seed {seed}"
