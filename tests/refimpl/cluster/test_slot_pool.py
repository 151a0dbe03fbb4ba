"""A job's slots: who gets one, which, and what becomes of wishes and slots that nobody serves or uses."""

from __future__ import annotations

from refimpl.cluster import (
    SLOT_IDLE_TIMEOUT_MS,
    SLOT_REQUEST_TIMEOUT_MS,
    AllocationId,
    AskResourceManager,
    CancelSlotRequest,
    NoSlot,
    OfferAnswer,
    ReturnSlot,
    SlotAssigned,
    SlotId,
    SlotPool,
    SlotPoolDecision,
    SlotsLost,
)

ID = [AllocationId("job", 7, number) for number in range(10)]
S = [SlotId("tm", index) for index in range(4)]


def pool() -> SlotPool:
    pool = SlotPool("job", 7)
    pool.resource_manager_found()
    pool.task_manager_found("tm")
    return pool


def offered(pool: SlotPool, number: int, slot: SlotId, now_ms: float = 0) -> list[SlotPoolDecision]:
    answer, decisions = pool.offer(slot.task_manager, [(ID[number], slot)], now_ms)
    assert answer == OfferAnswer((ID[number],))
    return decisions


def test_a_wish_is_asked_for_and_served_by_its_own_slot() -> None:
    slots = pool()
    assert slots.request("a", 0) == [AskResourceManager(ID[1])]
    assert slots.request("b", 0) == [AskResourceManager(ID[2])]
    assert offered(slots, 2, S[0]) == [SlotAssigned("b", ID[2], S[0])]
    assert slots.waiting == {"a": ID[1]}


def test_without_a_resource_manager_wishes_wait_for_one_and_are_asked_of_each_new_one() -> None:
    slots = SlotPool("job", 7)
    assert slots.request("a", 0) == []
    assert slots.resource_manager_found() == [AskResourceManager(ID[1])]
    assert slots.resource_manager_found() == []
    slots.resource_manager_lost()
    assert slots.request("b", 0) == []
    assert slots.resource_manager_found() == [AskResourceManager(ID[1]), AskResourceManager(ID[2])]


def test_a_slot_nobody_asked_for_serves_the_oldest_and_its_wish_is_cancelled() -> None:
    """Flink: SlotPoolImplTest#testOrphanedAllocationCanBeRemapped: no request is left that nobody waits for."""
    slots = pool()
    slots.request("a", 0)
    slots.request("b", 0)
    assert offered(slots, 9, S[0]) == [SlotAssigned("a", ID[9], S[0]), CancelSlotRequest(ID[1])]
    assert offered(slots, 2, S[1]) == [SlotAssigned("b", ID[2], S[1])]


def test_an_offer_again_is_accepted_again_and_the_same_id_for_another_slot_is_not() -> None:
    """Flink: SlotPoolImplTest#testOfferSlot."""
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    assert slots.offer("tm", [(ID[1], S[0]), (ID[1], S[1])], 1) == (OfferAnswer((ID[1],), (ID[1],)), [])
    assert slots.offer("stranger", [(ID[2], SlotId("stranger", 0))], 1)[0] == OfferAnswer((), (ID[2],))
    assert slots.offer("tm", [(ID[2], SlotId("tm2", 0))], 1)[0] == OfferAnswer((), (ID[2],))


def test_the_best_free_slot_is_that_of_before_then_a_near_one() -> None:
    """Flink: PreviousAllocationSlotSelectionStrategyTest, LocationPreferenceSlotSelectionStrategyTest."""
    slots = pool()
    slots.task_manager_found("far")
    slots.offer("far", [(ID[1], SlotId("far", 0))], 0)
    slots.offer("tm", [(ID[2], S[0]), (ID[3], S[1])], 0)
    assert slots.request("a", 0, before=ID[1], near=["tm"]) == [SlotAssigned("a", ID[1], SlotId("far", 0))]
    assert slots.request("b", 0, before=ID[1], near=["tm"]) == [SlotAssigned("b", ID[2], S[0])]
    assert slots.request("c", 0) == [SlotAssigned("c", ID[3], S[1])]


def test_a_released_slot_serves_who_waits_and_then_cancels_what_it_had_asked_for() -> None:
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    slots.request("b", 1)
    assert slots.release(ID[1], 2) == [SlotAssigned("b", ID[1], S[0]), CancelSlotRequest(ID[2])]
    assert slots.release(ID[1], 3) == []
    assert slots.release(ID[1], 3) == []


def test_a_slot_that_nobody_uses_goes_back_after_its_time() -> None:
    """Flink: SlotPoolImplTest#testCheckIdleSlot."""
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    slots.release(ID[1], 100)
    assert slots.next_deadline == 100 + SLOT_IDLE_TIMEOUT_MS
    assert slots.on_timeout(99 + SLOT_IDLE_TIMEOUT_MS) == []
    assert slots.on_timeout(100 + SLOT_IDLE_TIMEOUT_MS) == [ReturnSlot(ID[1], S[0])]
    assert slots.slots == ()
    assert slots.next_deadline is None


def test_a_wish_that_waits_too_long_or_cannot_be_served_fails_and_says_what_there_is() -> None:
    slots = pool()
    slots.request("a", 0)
    slots.request("b", 0)
    offered(slots, 1, S[0])
    cancelled, none = slots.on_timeout(SLOT_REQUEST_TIMEOUT_MS)
    assert cancelled == CancelSlotRequest(ID[2])
    assert isinstance(none, NoSlot)
    assert none.wish == "b"
    assert "tm[0] for a" in none.why
    assert "300000 ms" in none.why
    slots.request("c", 0)
    (none,) = slots.failed(ID[3], "no TaskManager")
    assert isinstance(none, NoSlot)
    assert none.wish == "c"
    assert "no TaskManager" in none.why
    assert slots.waiting == {}


def test_who_waits_no_longer_takes_its_wish_back() -> None:
    slots = pool()
    slots.request("a", 0)
    assert slots.cancel("a") == [CancelSlotRequest(ID[1])]
    assert slots.cancel("a") == []
    assert offered(slots, 1, S[0]) == []  # it was on its way: kept as a free one
    assert slots.request("b", 1) == [SlotAssigned("b", ID[1], S[0])]


def test_with_a_task_manager_all_its_slots_are_lost_and_only_those_in_use_are_told() -> None:
    slots = pool()
    slots.task_manager_found("tm2")
    slots.request("a", 0)
    offered(slots, 1, S[0])
    offered(slots, 5, S[1])
    offered(slots, 6, SlotId("tm2", 0))
    assert slots.allocations_at("tm") == (ID[1], ID[5])
    assert slots.task_manager_lost("tm", "silent") == [SlotsLost((ID[1],), "silent")]
    assert [each.slot.task_manager for each in slots.slots] == ["tm2"]
    assert slots.offer("tm", [(ID[1], S[0])], 1)[0] == OfferAnswer((), (ID[1],))


def test_what_a_task_manager_does_not_name_is_lost() -> None:
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    offered(slots, 5, S[1])
    assert slots.reconcile("tm", [ID[1], ID[5]], "why") == []
    assert slots.reconcile("tm", [ID[5]], "why") == [SlotsLost((ID[1],), "why")]
    assert [each.slot for each in slots.slots] == [S[1]]


def test_a_slot_that_the_resource_manager_calls_gone_is_lost() -> None:
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    assert slots.failed(ID[1], "its TaskManager is gone") == [SlotsLost((ID[1],), "its TaskManager is gone")]


def test_at_the_end_all_goes_back_and_for_another_leader_nothing_does() -> None:
    slots = pool()
    slots.request("a", 0)
    slots.request("b", 0)
    offered(slots, 1, S[0])
    assert slots.close() == [CancelSlotRequest(ID[2]), ReturnSlot(ID[1], S[0])]
    slots = pool()
    slots.request("a", 0)
    offered(slots, 1, S[0])
    slots.suspend()
    assert (slots.slots, slots.waiting, slots.next_deadline) == ((), {}, None)
    assert slots.offer("tm", [(ID[1], S[0])], 1)[0] == OfferAnswer((), (ID[1],))
