"""A TaskManager's slots: whose each is, when it is offered, and when it is free again."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    REOFFER_MS,
    TICKET_MS,
    AllocationId,
    FailTasks,
    OfferSlots,
    SlotAnswer,
    SlotAvailable,
    SlotId,
    SlotState,
    SlotTable,
)
from refimpl.errors import LocalUsageError

A, B, OF_ANOTHER = AllocationId("job", 1, 1), AllocationId("job", 1, 2), AllocationId("other", 1, 1)
S0, S1 = SlotId("tm", 0), SlotId("tm", 1)


@pytest.fixture
def table() -> SlotTable:
    return SlotTable("tm", 2)


def active(table: SlotTable, *tasks: str) -> SlotTable:
    table.request(0, A, 0)
    table.offer_answered([A], [], 1)
    for task in tasks:
        assert table.add_task(A, task)
    return table


def test_a_slot_is_offered_and_accepted(table: SlotTable) -> None:
    """Flink: TaskExecutorTest#testSlotAcceptance (P114): of two that are offered one is accepted, the other freed."""
    assert table.request(0, A, 0) == (SlotAnswer(S0, A), [OfferSlots("job", ((A, S0),))])
    assert table.request(1, B, 0) == (SlotAnswer(S1, B), [OfferSlots("job", ((B, S1),))])
    assert table.offer_answered([A], [B], 5) == [SlotAvailable(S1, B)]
    assert (table.state_of(0), table.state_of(1)) == (SlotState.ACTIVE, SlotState.FREE)
    assert table.allocations_of("job") == (A,)
    assert table.next_deadline is None


def test_a_request_again_is_answered_alike_and_another_hears_whose_the_slot_is(table: SlotTable) -> None:
    table.request(0, A, 0)
    assert table.request(0, A, 3) == (SlotAnswer(S0, A), [OfferSlots("job", ((A, S0),))])
    assert table.request(0, OF_ANOTHER, 3) == (SlotAnswer(S0, A), [])
    assert table.request(1, A, 3)[0] == SlotAnswer(S0, A)  # the slot it has, and no second one
    assert table.state_of(1) is SlotState.FREE


def test_an_offer_without_an_answer_is_made_again_until_the_ticket_is_over(table: SlotTable) -> None:
    table.request(0, A, 0)
    assert table.on_timeout(REOFFER_MS - 1) == []
    assert table.on_timeout(REOFFER_MS) == [OfferSlots("job", ((A, S0),))]
    assert table.on_timeout(TICKET_MS) == [SlotAvailable(S0, A)]
    assert table.next_deadline is None


def test_a_freed_slot_waits_for_its_tasks(table: SlotTable) -> None:
    active(table, "t1", "t2")
    assert table.free(A, "the job has ended") == [FailTasks(("t1", "t2"), "the job has ended")]
    assert table.free(A, "again") == []
    assert not table.add_task(A, "t3")
    assert table.request(0, OF_ANOTHER, 2) == (SlotAnswer(S0, A), [])
    assert table.task_gone("t1") == []
    assert table.task_gone("t2") == [SlotAvailable(S0, A)]
    assert table.task_gone("t2") == []
    assert table.request(0, OF_ANOTHER, 3)[0] == SlotAnswer(S0, OF_ANOTHER)


def test_a_lost_job_master_costs_the_tasks_and_the_slot_is_offered_to_the_next(table: SlotTable) -> None:
    active(table, "t1")
    assert table.job_master_lost("job", "silent", 100) == [FailTasks(("t1",), "silent")]
    assert table.state_of(0) is SlotState.ALLOCATED
    assert table.task_gone("t1") == []
    assert table.job_master_found("other", 200) == []
    assert table.job_master_found("job", 200) == [OfferSlots("job", ((A, S0),))]
    assert table.offer_answered([A], [], 300) == []
    assert table.on_timeout(1e9) == []


def test_the_ticket_begins_when_the_job_master_is_lost(table: SlotTable) -> None:
    active(table)
    table.job_master_lost("job", "silent", 50_000)
    assert table.on_timeout(50_000 + TICKET_MS - 1) == []
    assert table.on_timeout(50_000 + TICKET_MS) == [SlotAvailable(S0, A)]


def test_whose_ticket_is_over_while_its_tasks_unwind_is_free_after_the_last(table: SlotTable) -> None:
    active(table, "t1")
    table.job_master_lost("job", "silent", 0)
    table.on_timeout(TICKET_MS)
    assert table.state_of(0) is SlotState.RELEASING
    assert table.report()[0].allocation == A
    assert table.task_gone("t1") == [SlotAvailable(S0, A)]


def test_a_task_that_comes_shows_that_the_slot_was_accepted(table: SlotTable) -> None:
    """Flink: TaskSlotTableTest#testTryMarkSlotActive."""
    table.request(0, A, 0)
    assert table.add_task(A, "t1")
    assert table.state_of(0) is SlotState.ACTIVE
    assert not table.add_task(B, "t2")
    assert table.offer_answered([A], [], 1) == []


@pytest.mark.parametrize(("now_ms", "is_freed"), [(9_999, False), (10_000, True)])
def test_what_the_job_master_does_not_name_is_freed_unless_it_was_just_offered(
    table: SlotTable, now_ms: float, is_freed: bool
) -> None:
    active(table)
    assert table.reconcile("job", [A], 1e9, 10_000) == []
    assert table.reconcile("other", [], 1e9, 10_000) == []
    assert table.reconcile("job", [], now_ms, 10_000) == ([SlotAvailable(S0, A)] if is_freed else [])


def test_answers_about_what_has_gone_change_nothing(table: SlotTable) -> None:
    table.request(0, A, 0)
    table.free(A, "cancelled")
    assert table.offer_answered([A], [B], 1) == []
    assert [each.allocation for each in table.report()] == [None, None]


def test_what_cannot_be_a_table_or_a_slot_is_refused(table: SlotTable) -> None:
    with pytest.raises(LocalUsageError, match="1 slot or more"):
        SlotTable("tm", 0)
    with pytest.raises(LocalUsageError, match="no slot 2"):
        table.request(2, A, 0)
