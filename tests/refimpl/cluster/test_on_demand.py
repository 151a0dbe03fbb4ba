"""How many workers are started and which are ended, for every number of wishes, of those there and on their way."""

from __future__ import annotations

from itertools import product

import pytest

from refimpl.cluster import AllocationId, OnDemand, ReleaseWorker, SlotId, SlotManager, SlotStatus, StartWorkers
from refimpl.errors import ConfigError


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("slots", [0, 1, 2, 5])
def test_as_many_are_started_as_wishes_fill_and_never_more_than_the_most(slots: int, most: int | None) -> None:
    rule = OnDemand(slots, max_workers=most)
    for waiting, starting, there in product(range(12), range(5), range(5)):
        number = rule.num_to_start(waiting, starting, there)
        case = (waiting, starting, there, number)
        assert number >= 0, case
        if number:
            assert (starting + number - 1) * slots < waiting, case  # not one that nobody needs
            assert most is None or there + starting + number <= most, case
        elif slots and (most is None or there + starting < most):
            assert starting * slots >= waiting, case  # nobody waits in vain
        full = slots and (most is None or starting + number + there < most)
        assert not full or (starting + number) * slots >= waiting, case


def test_who_is_idle_for_the_time_is_ended_and_nobody_else() -> None:
    rule = OnDemand(2, idle_timeout_ms=100, name_prefix="worker-")
    idle = {"worker-1@h": 10.0, "worker-2@h": 50.0, "fixed@h": 0.0}
    assert rule.next_end(idle) == 110
    assert rule.to_end(idle, 109.9) == ()
    assert rule.to_end(idle, 110) == ("worker-1@h",)
    assert rule.to_end(idle, 1_000) == ("worker-1@h", "worker-2@h")
    assert rule.next_end({"fixed@h": 0.0}) is None
    assert OnDemand().to_end(idle, 1e9) == ()


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        (lambda: OnDemand(1, max_workers=0), "max_workers"),
        (lambda: OnDemand(-1), "slots_per_worker"),
        (lambda: OnDemand(1, 0), "idle_timeout_ms"),
        (lambda: OnDemand(1, float("nan")), "idle_timeout_ms"),
    ],
)
def test_what_cannot_be_is_refused(wrong: type[OnDemand], option: str) -> None:
    with pytest.raises(ConfigError) as refused:
        wrong()
    assert refused.value.option == option


def test_the_manager_keeps_to_the_most_and_replaces_who_is_lost() -> None:
    manager = SlotManager(OnDemand(1, idle_timeout_ms=100, max_workers=2, name_prefix="worker-"))
    wishes = [AllocationId("job", 1, number) for number in range(3)]
    assert manager.request(wishes[0], "jm", 0) == [StartWorkers(1)]
    assert manager.request(wishes[1], "jm", 0) == [StartWorkers(1)]
    assert manager.request(wishes[2], "jm", 0) == []  # two are on their way, and two are the most
    for number in (0, 1):
        slot = SlotId(f"worker-{number}", 0)
        manager.register(slot.task_manager, [SlotStatus(slot)], 0)
        assert manager.answered(slot, slot, wishes[number], 0) == []
    assert manager.waiting == (wishes[2],)
    lost = manager.task_manager_gone("worker-1", "killed", 10)
    assert lost[-1] == StartWorkers(1)
    slot = SlotId("worker-2", 0)
    manager.register("worker-2", [SlotStatus(slot)], 20)
    manager.answered(slot, slot, wishes[2], 20)
    manager.slot_available(slot, wishes[2], 30)
    assert manager.next_deadline == 130
    assert manager.on_timeout(129) == []
    assert manager.on_timeout(130) == [ReleaseWorker("worker-2", 100)]
    assert [status.slot.task_manager for status, _ in manager.slots()] == ["worker-0"]


def test_a_task_manager_that_came_by_itself_is_kept_and_does_not_count() -> None:
    manager = SlotManager(OnDemand(1, idle_timeout_ms=100, max_workers=1, name_prefix="worker-"))
    manager.register("fixed", [SlotStatus(SlotId("fixed", 0))], 0)
    assert manager.on_timeout(1_000) == []
    manager.request(AllocationId("job", 1, 1), "jm", 1_000)
    assert manager.request(AllocationId("job", 1, 2), "jm", 1_000) == [StartWorkers(1)]
