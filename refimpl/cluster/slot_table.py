"""The slots of one TaskManager: whose each is, and whether that job has said that it wants it.

A slot is given to a job by the ResourceManager, offered to its JobMaster, and active from the moment that accepts. A
slot that is given and not active is kept for ten seconds only, by its *ticket*: time enough for a JobMaster that has
just come back to be offered what the one before it had.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from enum import Enum

from refimpl.cluster.slots import AllocationId, SlotId, SlotStatus
from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state

__all__ = [
    "REOFFER_MS",
    "SLOT_TRANSITIONS",
    "TICKET_MS",
    "FailTasks",
    "OfferSlots",
    "SlotAnswer",
    "SlotAvailable",
    "SlotEvent",
    "SlotState",
    "SlotTable",
    "SlotTableDecision",
]

TICKET_MS = 10_000.0
REOFFER_MS = 1_000.0


class SlotState(Enum):
    """What a TaskManager knows of one of its slots."""

    FREE = "free"
    ALLOCATED = "given to a job"
    ACTIVE = "used by a job"
    RELEASING = "waiting for its last tasks"


class SlotEvent(Enum):
    """What can happen to a slot."""

    ALLOCATE = "be given to a job"
    ACTIVATE = "be accepted"
    FREE_EMPTY = "be freed without tasks in it"
    FREE_USED = "be freed with tasks in it"
    LOSE_JOB_MASTER = "lose its JobMaster"
    LAST_TASK_GONE = "lose its last task"


_S, _E = SlotState, SlotEvent

SLOT_TRANSITIONS: dict[SlotState, dict[SlotEvent, SlotState]] = {
    _S.FREE: {_E.ALLOCATE: _S.ALLOCATED, _E.FREE_EMPTY: _S.FREE, _E.LOSE_JOB_MASTER: _S.FREE},
    _S.ALLOCATED: {
        _E.ACTIVATE: _S.ACTIVE,
        _E.FREE_EMPTY: _S.FREE,
        _E.FREE_USED: _S.RELEASING,
        _E.LOSE_JOB_MASTER: _S.ALLOCATED,
        _E.LAST_TASK_GONE: _S.ALLOCATED,  # those that its lost JobMaster had started
    },
    _S.ACTIVE: {
        _E.ACTIVATE: _S.ACTIVE,
        _E.FREE_EMPTY: _S.FREE,
        _E.FREE_USED: _S.RELEASING,
        _E.LOSE_JOB_MASTER: _S.ALLOCATED,
        _E.LAST_TASK_GONE: _S.ACTIVE,
    },
    _S.RELEASING: {
        _E.FREE_USED: _S.RELEASING,
        _E.LOSE_JOB_MASTER: _S.RELEASING,
        _E.LAST_TASK_GONE: _S.FREE,
    },
}


@dataclass(frozen=True, slots=True)
class OfferSlots:
    """Offer the JobMaster of a job these slots, then say which it has accepted and rejected."""

    job_id: str
    offers: tuple[tuple[AllocationId, SlotId], ...]


@dataclass(frozen=True, slots=True)
class SlotAvailable:
    """Tell the ResourceManager that a slot is free, which `allocation` had until now."""

    slot: SlotId
    allocation: AllocationId


@dataclass(frozen=True, slots=True)
class FailTasks:
    """End these tasks; say `task_gone` of each when it has unwound."""

    tasks: tuple[Hashable, ...]
    why: str


SlotTableDecision = OfferSlots | SlotAvailable | FailTasks


@dataclass(frozen=True, slots=True)
class SlotAnswer:
    """What the ResourceManager is told: `slot` is now, or was already, that of `allocation`."""

    slot: SlotId
    allocation: AllocationId


@dataclass(slots=True)
class _Slot:
    id: SlotId
    state: SlotState = SlotState.FREE
    allocation: AllocationId | None = None
    tasks: list[Hashable] = field(default_factory=list)
    ticket_ends_ms: float | None = None
    reoffer_at_ms: float | None = None
    offered_ms: float = 0.0

    def go_on(self, event: SlotEvent) -> None:
        self.state = next_state(SLOT_TRANSITIONS, self.state, event, self.id)


class SlotTable:
    """The slots `0 … num_slots - 1` of `task_manager`; times are the driver's, in ms.

    Flink:   TaskSlotTableImpl, TaskSlot, TaskExecutor.requestSlot, offerSlotsToJobManager (runtime.taskexecutor),
             1.11.4
    Differs: a slot that was offered within the last heartbeat is not freed when the JobMaster does not name it.
    """

    def __init__(self, task_manager: str, num_slots: int, ticket_ms: float = TICKET_MS) -> None:
        if num_slots < 1 or ticket_ms <= 0:
            raise LocalUsageError(
                f"a TaskManager has 1 slot or more and tickets of some time, got {num_slots}, {ticket_ms}"
            )
        self._slots = [_Slot(SlotId(task_manager, index)) for index in range(num_slots)]
        self._ticket_ms = ticket_ms

    # -- what there is -----------------------------------------------------------------------------------

    def report(self) -> tuple[SlotStatus, ...]:
        """All slots, for the ResourceManager; one whose tasks still unwind is not free yet."""
        return tuple(SlotStatus(each.id, each.allocation) for each in self._slots)

    def state_of(self, index: int) -> SlotState:
        return self._slots[index].state

    def tasks_of(self, index: int) -> tuple[Hashable, ...]:
        return tuple(self._slots[index].tasks)

    def allocations_of(self, job_id: str) -> tuple[AllocationId, ...]:
        """The slots that a job has here, or is to have."""
        return tuple(each.allocation for each in self._of(job_id) if each.allocation is not None)

    # -- the ResourceManager -----------------------------------------------------------------------------

    def request(
        self, index: int, allocation: AllocationId, now_ms: float
    ) -> tuple[SlotAnswer, list[SlotTableDecision]]:
        """The ResourceManager gives a slot to a job. The answer says whose slot it is, or which slot the job has.

        Raises:
            LocalUsageError: there is no such slot.
        """
        if not 0 <= index < len(self._slots):
            raise LocalUsageError(f"there is no slot {index}, only {len(self._slots)} of them")
        slot = self._find(allocation) or self._slots[index]
        if slot.allocation is None:
            slot.go_on(_E.ALLOCATE)
            slot.allocation, slot.ticket_ends_ms = allocation, now_ms + self._ticket_ms
        if slot.allocation is None or slot.allocation != allocation or slot.state is not _S.ALLOCATED:
            return SlotAnswer(slot.id, slot.allocation), []
        return SlotAnswer(slot.id, allocation), self._offer([slot], now_ms)

    # -- the JobMaster -----------------------------------------------------------------------------------

    def job_master_found(self, job_id: str, now_ms: float) -> list[SlotTableDecision]:
        """A JobMaster has registered: it is offered what its job was given here."""
        return self._offer([each for each in self._of(job_id) if each.state is _S.ALLOCATED], now_ms)

    def offer_answered(
        self, accepted: Collection[AllocationId], rejected: Collection[AllocationId], now_ms: float
    ) -> list[SlotTableDecision]:
        """The JobMaster has said which of the offered slots it takes. Of what has gone since nothing follows."""
        for slot in map(self._find, accepted):
            if slot is not None and slot.state in (_S.ALLOCATED, _S.ACTIVE):
                self._activate(slot)
        decisions: list[SlotTableDecision] = []
        for allocation in rejected:
            decisions += self.free(allocation, "the JobMaster does not want the slot")
        return decisions

    def free(self, allocation: AllocationId, why: str) -> list[SlotTableDecision]:
        """Nobody wants this slot any more; tasks in it are ended first."""
        slot = self._find(allocation)
        if slot is None:
            return []
        was_releasing = slot.state is _S.RELEASING
        slot.ticket_ends_ms = slot.reoffer_at_ms = None
        if slot.tasks:
            slot.go_on(_E.FREE_USED)
            return [] if was_releasing else [FailTasks(tuple(slot.tasks), why)]
        slot.go_on(_E.FREE_EMPTY)
        return self._freed(slot)

    def job_master_lost(self, job_id: str, why: str, now_ms: float) -> list[SlotTableDecision]:
        """The job has nobody who leads it: its tasks end, its slots are kept for as long as their tickets last."""
        decisions: list[SlotTableDecision] = []
        for slot in self._of(job_id):
            slot.go_on(_E.LOSE_JOB_MASTER)
            if slot.state is not _S.ALLOCATED:
                continue
            slot.ticket_ends_ms, slot.reoffer_at_ms = now_ms + self._ticket_ms, None
            if slot.tasks:
                decisions.append(FailTasks(tuple(slot.tasks), why))
        return decisions

    def reconcile(
        self, job_id: str, known: Collection[AllocationId], now_ms: float, grace_ms: float
    ) -> list[SlotTableDecision]:
        """The JobMaster has said which slots it knows of: others of its job that are active are freed.

        One that was offered less than `grace_ms` ago may have crossed with what it says.
        """
        decisions: list[SlotTableDecision] = []
        for slot in self._of(job_id):
            is_old = now_ms - slot.offered_ms >= grace_ms
            if slot.state is _S.ACTIVE and slot.allocation is not None and slot.allocation not in known and is_old:
                decisions += self.free(slot.allocation, "the JobMaster does not know of the slot")
        return decisions

    # -- tasks -------------------------------------------------------------------------------------------

    def add_task(self, allocation: AllocationId, task: Hashable) -> bool:
        """A task comes into a slot; who sends one has accepted the slot, whether or not that was heard."""
        slot = self._find(allocation)
        if slot is None or slot.state not in (_S.ALLOCATED, _S.ACTIVE):
            return False
        self._activate(slot)
        slot.tasks.append(task)
        return True

    def task_gone(self, task: Hashable) -> list[SlotTableDecision]:
        """A task has unwound, however it ended."""
        slot = next((each for each in self._slots if task in each.tasks), None)
        if slot is None:
            return []
        slot.tasks.remove(task)
        if slot.tasks:
            return []
        slot.go_on(_E.LAST_TASK_GONE)
        return self._freed(slot) if slot.state is _S.FREE else []

    # -- time --------------------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        ends = [end for each in self._slots for end in (each.ticket_ends_ms, each.reoffer_at_ms) if end is not None]
        return min(ends, default=None)

    def on_timeout(self, now_ms: float) -> list[SlotTableDecision]:
        """Free the slots whose ticket is over, and offer again those of which nothing was heard."""
        decisions: list[SlotTableDecision] = []
        for slot in self._slots:
            if slot.allocation and slot.ticket_ends_ms is not None and now_ms >= slot.ticket_ends_ms:
                decisions += self.free(slot.allocation, "no JobMaster has accepted the slot in time")
        due = [each for each in self._slots if each.reoffer_at_ms is not None and now_ms >= each.reoffer_at_ms]
        return decisions + self._offer(due, now_ms)

    # -- helpers -----------------------------------------------------------------------------------------

    def _of(self, job_id: str) -> list[_Slot]:
        return [each for each in self._slots if each.allocation is not None and each.allocation.job_id == job_id]

    def _find(self, allocation: AllocationId) -> _Slot | None:
        return next((each for each in self._slots if each.allocation == allocation), None)

    def _offer(self, slots: list[_Slot], now_ms: float) -> list[SlotTableDecision]:
        offers: dict[str, list[tuple[AllocationId, SlotId]]] = {}
        for slot in slots:
            if slot.allocation is not None:
                slot.offered_ms, slot.reoffer_at_ms = now_ms, now_ms + REOFFER_MS
                offers.setdefault(slot.allocation.job_id, []).append((slot.allocation, slot.id))
        return [OfferSlots(job_id, tuple(each)) for job_id, each in offers.items()]

    def _activate(self, slot: _Slot) -> None:
        slot.go_on(_E.ACTIVATE)
        slot.ticket_ends_ms = slot.reoffer_at_ms = None

    def _freed(self, slot: _Slot) -> list[SlotTableDecision]:
        """Tell the ResourceManager whose the slot was, and forget it."""
        allocation, slot.allocation = slot.allocation, None
        return [] if allocation is None else [SlotAvailable(slot.id, allocation)]
