"""The slots of one job, as its JobMaster has them: used, free for a while, or still wished for.

Each wish for a slot goes to the ResourceManager under an allocation id of its own. What comes back is an offer of a
TaskManager. `SlotMatching` says whom it serves: the wish it was asked for, else the one that has waited longest. The id
of a wish that was served in another way is cancelled, so that no slot comes for nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from refimpl.cluster.slot_matching import SlotMatching
from refimpl.cluster.slots import AllocationId, SlotId

__all__ = [
    "SLOT_IDLE_TIMEOUT_MS",
    "SLOT_REQUEST_TIMEOUT_MS",
    "AskResourceManager",
    "CancelSlotRequest",
    "NoSlot",
    "OfferAnswer",
    "PooledSlot",
    "ReturnSlot",
    "SlotAssigned",
    "SlotPool",
    "SlotPoolDecision",
    "SlotsLost",
]

SLOT_REQUEST_TIMEOUT_MS = 300_000.0
SLOT_IDLE_TIMEOUT_MS = 50_000.0


@dataclass(frozen=True, slots=True)
class AskResourceManager:
    """Ask for a slot under this id."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class CancelSlotRequest:
    """Tell the ResourceManager that nobody waits for this id any more."""

    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class SlotAssigned:
    """Wish `wish` has its slot."""

    wish: Hashable
    allocation: AllocationId
    slot: SlotId


@dataclass(frozen=True, slots=True)
class NoSlot:
    """Wish `wish` will have none; `why` in words."""

    wish: Hashable
    why: str


@dataclass(frozen=True, slots=True)
class ReturnSlot:
    """Tell the TaskManager to free this slot."""

    allocation: AllocationId
    slot: SlotId


@dataclass(frozen=True, slots=True)
class SlotsLost:
    """Whoever was in these slots has lost them, with all that ran there."""

    allocations: tuple[AllocationId, ...]
    why: str


SlotPoolDecision = AskResourceManager | CancelSlotRequest | SlotAssigned | NoSlot | ReturnSlot | SlotsLost


@dataclass(slots=True)
class PooledSlot:
    """A slot that the job has: for `wish`, or for nobody since `free_since_ms`."""

    allocation: AllocationId
    slot: SlotId
    wish: Hashable | None = None
    free_since_ms: float = 0.0


@dataclass(slots=True)
class _Wish:
    """Somebody who waits for a slot, under the id that will bring it."""

    wish: Hashable
    allocation: AllocationId
    since_ms: float
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class OfferAnswer:
    """Which of the offered slots the job takes."""

    accepted: tuple[AllocationId, ...] = ()
    rejected: tuple[AllocationId, ...] = ()


@dataclass(slots=True)
class _Counter:
    """The ids of one leadership."""

    job_id: str
    epoch: int
    number: int = 0

    def next(self) -> AllocationId:
        self.number += 1
        return AllocationId(self.job_id, self.epoch, self.number)


@dataclass(slots=True)
class SlotPool:
    """The slots of job `job_id` under the leadership of `epoch`; times are the driver's, in ms.

    `matching` says which slot serves which request; the pool knows who has asked, until when, and whom to tell.

    Flink:   SlotPoolImpl, SchedulerImpl (runtime.jobmaster.slotpool), 1.11.4
    Differs: slots are all alike, so every one fits. A wish that was served by a slot of an older id cancels its own
             at the ResourceManager; there the slot comes, and goes back when it has been idle.
    """

    job_id: str
    epoch: int
    request_timeout_ms: float = SLOT_REQUEST_TIMEOUT_MS
    idle_timeout_ms: float = SLOT_IDLE_TIMEOUT_MS
    matching: SlotMatching = field(default_factory=SlotMatching)
    _ids: _Counter = field(init=False)
    _slots: dict[AllocationId, PooledSlot] = field(default_factory=dict, init=False)
    _wishes: dict[AllocationId, _Wish] = field(default_factory=dict, init=False)
    _task_managers: set[str] = field(default_factory=set, init=False)
    _has_resource_manager: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._ids = _Counter(self.job_id, self.epoch)

    # -- what there is -----------------------------------------------------------------------------------

    @property
    def slots(self) -> tuple[PooledSlot, ...]:
        """All slots of the job, used or not."""
        return tuple(self._slots.values())

    @property
    def waiting(self) -> dict[Hashable, AllocationId]:
        """The wishes without a slot, the oldest first, with the ids under which they are asked for."""
        return {each.wish: each.allocation for each in self._wishes.values()}

    def allocations_at(self, task_manager: str) -> tuple[AllocationId, ...]:
        """What the job has there; the payload of a heartbeat to that TaskManager."""
        return tuple(each.allocation for each in self._slots.values() if each.slot.task_manager == task_manager)

    # -- wishes ------------------------------------------------------------------------------------------

    def request(
        self, wish: Hashable, now_ms: float, before: AllocationId | None = None, near: Sequence[str] = ()
    ) -> list[SlotPoolDecision]:
        """Somebody wants a slot; one that is free is taken at once.

        Best is the slot of `before`, then one at a TaskManager in `near`, where the inputs are, then any.
        """
        allocation = self._ids.next()
        served_by = self.matching.request(allocation, before, near)
        if served_by is not None:
            return [self._assign(self._slots[served_by], wish)]
        waiting = self._wishes[allocation] = _Wish(wish, allocation, now_ms)
        return self._ask(waiting)

    def cancel(self, wish: Hashable) -> list[SlotPoolDecision]:
        """Somebody who waits for a slot does not any more."""
        waiting = next((each for each in self._wishes.values() if each.wish == wish), None)
        if waiting is None:
            return []
        self._take_out(waiting)
        return [CancelSlotRequest(waiting.allocation)] if waiting.is_asked else []

    def release(self, allocation: AllocationId, now_ms: float) -> list[SlotPoolDecision]:
        """A slot is used no longer: it serves who has waited longest, or stays for a while."""
        slot = self._slots.get(allocation)
        if slot is None or slot.wish is None:
            return []
        slot.wish, slot.free_since_ms = None, now_ms
        return self._serve(slot, self.matching.release(allocation))

    # -- the ResourceManager -----------------------------------------------------------------------------

    def resource_manager_found(self) -> list[SlotPoolDecision]:
        """A ResourceManager has registered this job: it is asked for all that is missing, also what another was."""
        self._has_resource_manager = True
        return [decision for waiting in self._wishes.values() for decision in self._ask(waiting)]

    def resource_manager_lost(self) -> None:
        """Wishes wait for the next one."""
        self._has_resource_manager = False
        for waiting in self._wishes.values():
            waiting.is_asked = False

    def failed(self, allocation: AllocationId, why: str) -> list[SlotPoolDecision]:
        """The ResourceManager has nothing for this id, or what it gave is gone."""
        waiting = self._wishes.get(allocation)
        if waiting is not None:
            return [self._give_up(waiting, why)]
        return self._lose([allocation], why)

    # -- TaskManagers ------------------------------------------------------------------------------------

    def task_manager_found(self, task_manager: str) -> None:
        """Its offers count from now on."""
        self._task_managers.add(task_manager)

    def task_manager_lost(self, task_manager: str, why: str) -> list[SlotPoolDecision]:
        """All its slots are gone."""
        self._task_managers.discard(task_manager)
        return self._lose(self.allocations_at(task_manager), why)

    def reconcile(self, task_manager: str, there: Collection[AllocationId], why: str) -> list[SlotPoolDecision]:
        """A TaskManager has said which slots the job has there: others are gone."""
        return self._lose([each for each in self.allocations_at(task_manager) if each not in there], why)

    def offer(
        self, task_manager: str, offers: Iterable[tuple[AllocationId, SlotId]], now_ms: float
    ) -> tuple[OfferAnswer, list[SlotPoolDecision]]:
        """A TaskManager offers slots. Offered again, a slot is accepted again; the same id for two slots is not."""
        accepted: list[AllocationId] = []
        rejected: list[AllocationId] = []
        decisions: list[SlotPoolDecision] = []
        for allocation, slot_id in offers:
            known = self._slots.get(allocation)
            is_theirs = task_manager in self._task_managers and slot_id.task_manager == task_manager
            if not is_theirs or (known is not None and known.slot != slot_id):
                rejected.append(allocation)
            else:
                accepted.append(allocation)
                slot = self._slots.setdefault(allocation, PooledSlot(allocation, slot_id, None, now_ms))
                decisions += self._serve(slot, self.matching.offer(allocation, task_manager))
        return OfferAnswer(tuple(accepted), tuple(rejected)), decisions

    # -- time, and the end -------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        ends = [each.since_ms + self.request_timeout_ms for each in self._wishes.values()]
        ends += [each.free_since_ms + self.idle_timeout_ms for each in self._slots.values() if each.wish is None]
        return min(ends, default=None)

    def on_timeout(self, now_ms: float) -> list[SlotPoolDecision]:
        """Give up wishes that have waited too long, and give back slots that nobody has used for too long."""
        decisions: list[SlotPoolDecision] = []
        for waiting in list(self._wishes.values()):
            if waiting.since_ms + self.request_timeout_ms <= now_ms:  # the sum that is the deadline: see `Heartbeats`
                if waiting.is_asked:
                    decisions.append(CancelSlotRequest(waiting.allocation))
                decisions.append(self._give_up(waiting, f"no slot for it in {now_ms - waiting.since_ms:.0f} ms"))
        for slot in self.slots:
            if slot.wish is None and slot.free_since_ms + self.idle_timeout_ms <= now_ms:
                self._forget(slot)
                decisions.append(ReturnSlot(slot.allocation, slot.slot))
        return decisions

    def close(self) -> list[SlotPoolDecision]:
        """The job has ended: every slot goes back, and nobody waits any more."""
        decisions: list[SlotPoolDecision] = [
            CancelSlotRequest(each.allocation) for each in self._wishes.values() if each.is_asked
        ]
        decisions += [ReturnSlot(each.allocation, each.slot) for each in self._slots.values()]
        self.suspend()
        return decisions

    def suspend(self) -> None:
        """Another leads the job: forget all and free nothing, the TaskManagers keep the slots for that one."""
        for slot in self.slots:
            self._forget(slot)
        for waiting in list(self._wishes.values()):
            self._take_out(waiting)
        self._task_managers.clear()
        self._has_resource_manager = False

    # -- helpers -----------------------------------------------------------------------------------------

    def _ask(self, waiting: _Wish) -> list[SlotPoolDecision]:
        if not self._has_resource_manager or waiting.is_asked:
            return []
        waiting.is_asked = True
        return [AskResourceManager(waiting.allocation)]

    def _assign(self, slot: PooledSlot, wish: Hashable) -> SlotAssigned:
        slot.wish = wish
        return SlotAssigned(wish, slot.allocation, slot.slot)

    def _serve(self, slot: PooledSlot, request: AllocationId | None) -> list[SlotPoolDecision]:
        """Give a slot to the request that it serves; that needs no slot of its own any more."""
        if request is None:
            return []
        served = self._wishes.pop(request)
        decisions: list[SlotPoolDecision] = [self._assign(slot, served.wish)]
        if request != slot.allocation and served.is_asked:
            decisions.append(CancelSlotRequest(request))
        return decisions

    def _take_out(self, waiting: _Wish) -> None:
        del self._wishes[waiting.allocation]
        self.matching.withdraw(waiting.allocation)

    def _forget(self, slot: PooledSlot) -> None:
        del self._slots[slot.allocation]
        self.matching.remove(slot.allocation)

    def _give_up(self, waiting: _Wish, why: str) -> NoSlot:
        self._take_out(waiting)
        have = ", ".join(f"{each.slot} for {each.wish}" for each in self._slots.values()) or "none"
        return NoSlot(waiting.wish, f"{why}; the slots of {self.job_id} are {have}")

    def _lose(self, allocations: Iterable[AllocationId], why: str) -> list[SlotPoolDecision]:
        lost = [self._slots[each] for each in list(allocations) if each in self._slots]
        for slot in lost:
            self._forget(slot)
        used = tuple(each.allocation for each in lost if each.wish is not None)
        return [SlotsLost(used, why)] if used else []
