"""TaskManagers on demand: as many as are missing, none twice."""

from __future__ import annotations

from refimpl.cluster.on_demand import OnDemand
from refimpl.cluster.slot_manager import ReleaseWorker, SlotManager, StartWorkers
from refimpl.cluster.slots import AllocationId, SlotId, SlotStatus
from refimpl.drivers.cluster.components.workers import START_RETRY_MS, Workers


class Places:
    """A launcher with room for so many, in which they are what the test says."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.names: list[str] = []
        self.all_names: list[str] = []

    def start(self, name: str) -> None:
        if len(self.names) >= self.room:
            raise OSError("no room")
        self.names.append(name)
        self.all_names.append(name)

    def stop(self, name: str) -> None:
        if name in self.names:
            self.names.remove(name)

    def stop_aside(self, name: str) -> None:
        self.stop(name)

    def list(self) -> list[str]:
        return list(self.names)


def test_orders_are_carried_out_and_no_name_comes_twice() -> None:
    places = Places(10)
    workers = Workers(places, epoch=4)
    workers.carry_out([StartWorkers(2)], 0)
    assert places.names == ["worker-4-1", "worker-4-2"]
    workers.carry_out([ReleaseWorker("worker-4-1@127.0.0.1:1", 30_000), StartWorkers(1)], 0)
    assert places.names == ["worker-4-2", "worker-4-3"]
    assert workers.num_lost(["worker-4-2@h:1", "worker-4-3@h:2"], 0) == 0
    places.stop("worker-4-2")  # which has registered: its silence says so
    assert workers.num_lost([], 10 * START_RETRY_MS) == 0


def test_who_does_not_come_is_lost_after_a_while_and_once() -> None:
    places = Places(2)
    workers = Workers(places, epoch=1)
    workers.carry_out([StartWorkers(3)], 0)
    assert workers.num_lost([], 0) == 0
    assert workers.next_deadline == START_RETRY_MS
    places.stop("worker-1-1")
    assert workers.num_lost([], 1_000) == 0
    assert workers.num_lost([], START_RETRY_MS) == 1
    assert workers.num_lost([], 1_000 + START_RETRY_MS) == 1
    assert workers.num_lost([], 100 * START_RETRY_MS) == 0
    assert workers.next_deadline is None


def test_a_resource_manager_gets_its_slots_though_workers_fail() -> None:
    """Whatever is lost is ordered again, and no more than that."""
    places, slots = Places(1), SlotManager(OnDemand(1))
    workers = Workers(places, epoch=1)
    orders = []
    for number in (1, 2):
        orders += slots.request(AllocationId("job", 1, number), "jm", 0)
    registered: list[str] = []
    for turn in range(10):
        now_ms = turn * START_RETRY_MS
        if turn == 4:
            places.room = 2
        workers.carry_out([each for each in orders if isinstance(each, StartWorkers)], now_ms)
        orders = []
        for name in places.names:
            if (address := f"{name}@h:1") not in registered:
                registered.append(address)
                orders += slots.register(address, [SlotStatus(SlotId(address, 0))], now_ms)
        if lost := workers.num_lost(registered, now_ms):
            orders += slots.workers_lost(lost, now_ms)
    assert len(places.all_names) == 2
    assert slots.waiting == ()
