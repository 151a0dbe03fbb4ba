"""The ResourceManager's slots: which wish gets which, and what it believes when TaskManagers say otherwise."""

from __future__ import annotations

from refimpl.cluster import (
    SLOT_ASK_TIMEOUT_MS,
    SLOT_REQUEST_TIMEOUT_MS,
    TASK_MANAGER_IDLE_TIMEOUT_MS,
    AllocationFailed,
    AllocationId,
    AskForSlot,
    ManagedSlotState,
    OnDemand,
    ReleaseWorker,
    SlotId,
    SlotManager,
    SlotStatus,
    StartWorkers,
)

A, B, C = (AllocationId("job", 1, number) for number in (1, 2, 3))
S0, S1 = SlotId("tm", 0), SlotId("tm", 1)


def manager(*allocations: AllocationId | None, slots_per_worker: int = 0) -> SlotManager:
    manager = SlotManager(OnDemand(slots_per_worker))
    if allocations:
        statuses = [SlotStatus(SlotId("tm", index), allocation) for index, allocation in enumerate(allocations)]
        assert manager.register("tm", statuses, 0) == []
    return manager


def states(manager: SlotManager) -> list[tuple[AllocationId | None, ManagedSlotState]]:
    return [(status.allocation, state) for status, state in manager.slots()]


FREE = (None, ManagedSlotState.FREE)


def taken(allocation: AllocationId) -> tuple[AllocationId, ManagedSlotState]:
    return allocation, ManagedSlotState.ALLOCATED


def asked(allocation: AllocationId) -> tuple[AllocationId, ManagedSlotState]:
    return allocation, ManagedSlotState.PENDING


def test_a_wish_is_given_the_next_free_slot_once() -> None:
    """Flink: SlotManagerImplTest#testDuplicatePendingSlotRequest."""
    slots = manager(None, None)
    assert slots.request(A, "jm", 0) == [AskForSlot(S0, A, "jm")]
    assert slots.request(A, "jm", 0) == []
    assert slots.request(B, "jm", 0) == [AskForSlot(S1, B, "jm")]
    assert slots.answered(S0, S0, A, 1) == []
    assert states(slots) == [taken(A), asked(B)]


def test_a_wish_waits_for_a_slot_and_gets_the_first_that_is_free() -> None:
    """Flink: SlotManagerImplTest#testFulfillingPendingSlotRequest, #testFreeSlot."""
    slots = manager(None)
    slots.request(A, "jm", 0)
    slots.answered(S0, S0, A, 0)
    assert slots.request(B, "jm", 1) == []
    assert slots.slot_available(S0, C, 2) == []
    assert slots.slot_available(S0, A, 2) == [AskForSlot(S0, B, "jm")]


def test_a_slot_that_another_job_has_sends_the_wish_to_the_next() -> None:
    """Flink: SlotManagerImplTest#testSlotRequestFailure."""
    slots = manager(None, None)
    slots.request(A, "jm", 0)
    assert slots.answered(S0, S0, C, 1) == [AskForSlot(S1, A, "jm")]
    assert states(slots) == [taken(C), asked(A)]


def test_a_wish_that_has_a_slot_elsewhere_leaves_the_one_it_asked_for() -> None:
    slots = manager(None, None)
    slots.request(A, "jm", 0)
    assert slots.answered(S0, S1, A, 1) == []
    assert states(slots) == [FREE, taken(A)]


def test_without_an_answer_the_wish_tries_again() -> None:
    """Flink: SlotManagerImpl.allocateSlot, whose question has a time, 1.11.4."""
    slots = manager(None)
    slots.request(A, "jm", 0)
    assert slots.on_timeout(SLOT_ASK_TIMEOUT_MS - 1) == []
    assert slots.on_timeout(SLOT_ASK_TIMEOUT_MS) == [AskForSlot(S0, A, "jm")]


def test_what_a_report_says_of_a_slot_counts_but_not_that_it_was_free_before_the_question_came() -> None:
    """Flink: SlotManagerImplTest#testReportAllocatedSlot, #testUpdateSlotReport."""
    slots = manager(None, None)
    slots.request(A, "jm", 0)
    assert slots.report("tm", [SlotStatus(S0), SlotStatus(S1, C)], 1) == []
    assert states(slots) == [asked(A), taken(C)]
    assert slots.report("tm", [SlotStatus(S0, B), SlotStatus(S1)], 2) == [AskForSlot(S1, A, "jm")]
    assert states(slots) == [taken(B), asked(A)]
    slots.answered(S1, S1, A, 3)
    assert slots.report("tm", [SlotStatus(S0, B), SlotStatus(S1)], 4) == []
    assert states(slots) == [taken(B), FREE]


def test_a_wish_that_a_report_has_served_before_it_was_told_asks_for_nothing() -> None:
    """A new ResourceManager hears of the slots first, of the wishes later."""
    slots = manager(A, None)
    assert slots.request(A, "jm", 5) == []
    assert slots.request(B, "jm", 5) == [AskForSlot(S1, B, "jm")]


def test_with_a_task_manager_its_jobs_are_told_and_its_wishes_go_on() -> None:
    """Flink: SlotManagerImplTest#testTaskManagerUnregistration, #testNotificationAboutFailedAllocation."""
    slots = manager(None, None)
    slots.request(A, "jm", 0)
    slots.answered(S0, S0, A, 0)
    slots.request(B, "jm", 0)
    other = SlotId("tm2", 0)
    assert slots.register("tm2", [SlotStatus(other)], 1) == []
    assert slots.task_manager_gone("tm", "silent", 2) == [
        AllocationFailed("jm", A, "silent"),
        AskForSlot(other, B, "jm"),
    ]
    assert slots.slot_available(S0, A, 3) == []


def test_a_wish_without_a_slot_fails_after_its_time_and_hears_what_there_is() -> None:
    """Flink: SlotManagerImplTest#testSlotRequestTimeout."""
    slots = manager(C)
    slots.request(A, "jm", 0)
    assert slots.next_deadline == SLOT_REQUEST_TIMEOUT_MS
    assert slots.on_timeout(SLOT_REQUEST_TIMEOUT_MS) == [
        AllocationFailed("jm", A, "of 1 slots in the cluster 1 are taken")
    ]
    assert slots.next_deadline is None


def test_who_waits_no_longer_is_not_served() -> None:
    slots = manager(C)
    slots.request(A, "jm", 0)
    assert slots.cancel(A, 1) == []
    assert slots.slot_available(S0, C, 2) == []


def test_what_a_lost_job_master_wished_for_is_dropped_and_what_it_has_is_not() -> None:
    slots = manager(None)
    slots.request(A, "jm", 0)
    slots.answered(S0, S0, A, 0)
    slots.request(B, "jm", 0)
    slots.request(C, "other", 0)
    assert slots.job_master_gone("jm", 1) == []
    assert slots.waiting == (C,)
    assert states(slots) == [taken(A)]
    assert slots.slot_available(S0, A, 2) == [AskForSlot(S0, C, "other")]


def test_what_a_job_master_says_it_waits_for_is_what_it_waits_for() -> None:
    slots = manager(C)
    slots.request(A, "jm", 0)
    assert slots.wishes_are([B], "jm", 1) == []
    assert slots.waiting == (B,)
    assert slots.slot_available(S0, C, 2) == [AskForSlot(S0, B, "jm")]
    assert slots.wishes_are([B], "jm", 3) == []


def test_workers_are_started_for_wishes_and_not_for_those_that_are_coming() -> None:
    """Flink: SlotManagerImpl.fulfillPendingSlotRequestWithPendingTaskManagerSlot, 1.11.4."""
    slots = manager(slots_per_worker=2)
    assert slots.request(A, "jm", 0) == [StartWorkers(1)]
    assert slots.request(B, "jm", 0) == []
    assert slots.request(C, "jm", 0) == [StartWorkers(1)]
    assert slots.workers_lost(1, 1) == [StartWorkers(1)]
    assert slots.register("tm", [SlotStatus(S0), SlotStatus(S1)], 2) == [
        AskForSlot(S0, A, "jm"),
        AskForSlot(S1, B, "jm"),
    ]


def test_an_idle_worker_is_released_only_where_another_could_be_started() -> None:
    """Flink: TaskManagerReleaseInSlotManagerTest."""
    assert manager(None).next_deadline is None
    slots = manager(None, A, slots_per_worker=2)
    assert slots.next_deadline is None
    slots.slot_available(S1, A, 100)
    assert slots.next_deadline == 100 + TASK_MANAGER_IDLE_TIMEOUT_MS
    slots.request(B, "jm", 200)
    assert slots.on_timeout(100 + TASK_MANAGER_IDLE_TIMEOUT_MS) == [AskForSlot(S0, B, "jm")]
    slots.answered(S0, S0, B, 40_000)
    slots.slot_available(S0, B, 50_000)
    assert slots.on_timeout(50_000 + TASK_MANAGER_IDLE_TIMEOUT_MS) == [
        ReleaseWorker("tm", TASK_MANAGER_IDLE_TIMEOUT_MS)
    ]
    assert slots.slots() == ()
