"""All slots of a cluster, as the ResourceManager sees them, and the wishes of all jobs for one.

What it knows of a slot is what a TaskManager has told it last. It gives a slot to a wish by asking the TaskManager,
which knows better: it may say that another job has the slot, and then the wish tries the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.on_demand import OnDemand
from refimpl.cluster.slot_pool import SLOT_REQUEST_TIMEOUT_MS
from refimpl.cluster.slots import AllocationId, SlotId, SlotStatus
from refimpl.transitions import next_state

__all__ = [
    "MANAGED_SLOT_TRANSITIONS",
    "SLOT_ASK_TIMEOUT_MS",
    "AllocationFailed",
    "AskForSlot",
    "ManagedSlotEvent",
    "ManagedSlotState",
    "ReleaseWorker",
    "SlotManager",
    "SlotManagerDecision",
    "StartWorkers",
]

SLOT_ASK_TIMEOUT_MS = 10_000.0


class ManagedSlotState(Enum):
    """What the ResourceManager believes of a slot."""

    FREE = "free"
    PENDING = "asked for"
    ALLOCATED = "given to a job"


class ManagedSlotEvent(Enum):
    """What can happen to a slot, as the ResourceManager hears of it."""

    ASK = "be asked for"
    TAKEN = "be said to be a job's"
    NOT_TAKEN = "be said to be nobody's"
    UNANSWERED = "get no answer"


_S, _E = ManagedSlotState, ManagedSlotEvent

MANAGED_SLOT_TRANSITIONS: dict[ManagedSlotState, dict[ManagedSlotEvent, ManagedSlotState]] = {
    _S.FREE: {_E.ASK: _S.PENDING, _E.TAKEN: _S.ALLOCATED, _E.NOT_TAKEN: _S.FREE},
    _S.PENDING: {
        _E.TAKEN: _S.ALLOCATED,
        _E.NOT_TAKEN: _S.PENDING,  # said before the question came
        _E.UNANSWERED: _S.FREE,
    },
    _S.ALLOCATED: {_E.TAKEN: _S.ALLOCATED, _E.NOT_TAKEN: _S.FREE},
}


@dataclass(frozen=True, slots=True)
class AskForSlot:
    """Ask the TaskManager to give this slot to this wish, whose JobMaster is at `job_master`."""

    slot: SlotId
    allocation: AllocationId
    job_master: str


@dataclass(frozen=True, slots=True)
class AllocationFailed:
    """Tell the JobMaster at `job_master` that what it has, or will get, under this id is nothing; `why` in words."""

    job_master: str
    allocation: AllocationId
    why: str


@dataclass(frozen=True, slots=True)
class StartWorkers:
    """Start this many TaskManagers more."""

    number: int


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """End this TaskManager: nobody has used it for `idle_ms`."""

    task_manager: str
    idle_ms: float


SlotManagerDecision = AskForSlot | AllocationFailed | StartWorkers | ReleaseWorker


@dataclass(slots=True)
class _Slot:
    id: SlotId
    state: ManagedSlotState = ManagedSlotState.FREE
    allocation: AllocationId | None = None
    ask_ends_ms: float = 0.0

    def go_on(self, event: ManagedSlotEvent) -> None:
        self.state = next_state(MANAGED_SLOT_TRANSITIONS, self.state, event, self.id)


@dataclass(slots=True)
class _Wish:
    allocation: AllocationId
    job_master: str
    deadline_ms: float
    is_served: bool = False


class SlotManager:
    """The slots of every TaskManager that is registered; times are the driver's, in ms.

    Where somebody can start TaskManagers they are asked for when wishes are more than slots, and released when idle,
    by the rule `on_demand`. Else a wish waits for a slot until its time is over.

    Flink:   SlotManagerImpl (runtime.resourcemanager.slotmanager), 1.11.4
    Differs: slots are all alike. The JobMaster of a wish is kept while its slot is used, to be told when that is gone;
             there the ResourceManager looks it up by job.
    """

    def __init__(
        self,
        on_demand: OnDemand | None = None,
        request_timeout_ms: float = SLOT_REQUEST_TIMEOUT_MS,
    ) -> None:
        self._on_demand = on_demand or OnDemand()
        self._request_timeout_ms = request_timeout_ms
        self._slots: dict[SlotId, _Slot] = {}
        self._wishes: dict[AllocationId, _Wish] = {}
        self._idle_since_ms: dict[str, float] = {}
        self._num_starting = 0

    # -- what there is -----------------------------------------------------------------------------------

    def slots(self) -> tuple[tuple[SlotStatus, ManagedSlotState], ...]:
        """Every slot with whose it is, or is asked for."""
        return tuple((SlotStatus(each.id, each.allocation), each.state) for each in self._slots.values())

    @property
    def waiting(self) -> tuple[AllocationId, ...]:
        """The wishes that have no slot, and for which none is asked; the oldest first."""
        asked = {each.allocation for each in self._slots.values()}
        return tuple(key for key, wish in self._wishes.items() if not wish.is_served and key not in asked)

    # -- jobs --------------------------------------------------------------------------------------------

    def request(self, allocation: AllocationId, job_master: str, now_ms: float) -> list[SlotManagerDecision]:
        """A job wishes for a slot. The same wish again is the same, perhaps of a JobMaster at another address."""
        known = self._wishes.get(allocation)
        if known is not None:
            known.job_master = job_master
            return []
        served = self._holder(allocation) is not None  # a report has said so, before this ResourceManager was asked
        self._wishes[allocation] = _Wish(allocation, job_master, now_ms + self._request_timeout_ms, served)
        return self._serve(now_ms)

    def cancel(self, allocation: AllocationId, now_ms: float) -> list[SlotManagerDecision]:
        """A job waits no longer. A slot that was asked for meanwhile is its TaskManager's to tell of."""
        wish = self._wishes.get(allocation)
        if wish is not None and not wish.is_served:
            del self._wishes[allocation]
        return self._serve(now_ms)

    def wishes_are(
        self, allocations: Sequence[AllocationId], job_master: str, now_ms: float
    ) -> list[SlotManagerDecision]:
        """All that a JobMaster waits for: what was not heard of is asked for, what is not among them is dropped."""
        decisions: list[SlotManagerDecision] = []
        for wish in list(self._wishes.values()):
            if wish.job_master == job_master and not wish.is_served and wish.allocation not in allocations:
                del self._wishes[wish.allocation]
        for allocation in allocations:
            decisions += self.request(allocation, job_master, now_ms)
        return decisions

    def job_master_gone(self, job_master: str, now_ms: float) -> list[SlotManagerDecision]:
        """Nobody waits for what this JobMaster has wished for; what it has got is its TaskManagers' to tell of."""
        return self.wishes_are((), job_master, now_ms) + self._serve(now_ms)

    # -- TaskManagers ------------------------------------------------------------------------------------

    def register(self, task_manager: str, report: Sequence[SlotStatus], now_ms: float) -> list[SlotManagerDecision]:
        """A TaskManager is there, with these slots; another life of it under the same name has to be gone before."""
        for status in report:
            self._slots.setdefault(status.slot, _Slot(status.slot))
        if self._on_demand.is_worker(task_manager):
            self._num_starting = max(0, self._num_starting - 1)
        return self.report(task_manager, report, now_ms)

    def report(self, task_manager: str, report: Sequence[SlotStatus], now_ms: float) -> list[SlotManagerDecision]:
        """A TaskManager says, unasked, whose its slots are."""
        for status in report:
            slot = self._slots.get(status.slot)
            if slot is None:
                continue
            if status.allocation is not None:
                self._taken(slot, status.allocation)
            elif slot.state is not _S.PENDING:
                self._not_taken(slot)
        self._note_idle(task_manager, now_ms)
        return self._serve(now_ms)

    def answered(
        self, asked: SlotId, slot: SlotId, allocation: AllocationId, now_ms: float
    ) -> list[SlotManagerDecision]:
        """A TaskManager has answered: `slot` is that of `allocation`.

        If that is another wish than the one it was asked for, the latter tries another slot. If it is another slot,
        the one that was asked for is still nobody's.
        """
        told, first = self._slots.get(slot), self._slots.get(asked)
        if first is not None and asked != slot and first.state is _S.PENDING:
            first.go_on(_E.UNANSWERED)
            first.allocation = None
        if told is not None:
            self._taken(told, allocation)
            self._note_idle(slot.task_manager, now_ms)
        return self._serve(now_ms)

    def slot_available(self, slot: SlotId, allocation: AllocationId, now_ms: float) -> list[SlotManagerDecision]:
        """A TaskManager has freed a slot, which this wish had. Old news of an earlier wish change nothing."""
        known = self._slots.get(slot)
        if known is None or known.allocation != allocation:
            return []
        if known.state is _S.PENDING:
            known.go_on(_E.UNANSWERED)
            known.allocation = None
        else:
            self._not_taken(known)
        self._note_idle(slot.task_manager, now_ms)
        return self._serve(now_ms)

    def task_manager_gone(self, task_manager: str, why: str, now_ms: float) -> list[SlotManagerDecision]:
        """All its slots are gone: who had one is told, who waited for one tries another."""
        decisions: list[SlotManagerDecision] = []
        for slot in [each for each in self._slots.values() if each.id.task_manager == task_manager]:
            del self._slots[slot.id]
            wish = self._wishes.get(slot.allocation) if slot.allocation is not None else None
            if wish is not None and wish.is_served and self._holder(wish.allocation) is None:
                del self._wishes[wish.allocation]
                decisions.append(AllocationFailed(wish.job_master, wish.allocation, why))
        self._idle_since_ms.pop(task_manager, None)
        return decisions + self._serve(now_ms)

    # -- time --------------------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        ends = [each.deadline_ms for each in self._wishes.values() if not each.is_served]
        ends += [each.ask_ends_ms for each in self._slots.values() if each.state is _S.PENDING]
        if (idle_ends_ms := self._on_demand.next_end(self._idle_since_ms)) is not None:
            ends.append(idle_ends_ms)
        return min(ends, default=None)

    def on_timeout(self, now_ms: float) -> list[SlotManagerDecision]:
        """Give up what has waited too long; ask elsewhere where nobody has answered; release who is idle."""
        decisions: list[SlotManagerDecision] = []
        for slot in self._slots.values():
            if slot.state is _S.PENDING and now_ms >= slot.ask_ends_ms:
                slot.go_on(_E.UNANSWERED)
                slot.allocation = None
        decisions += self._serve(now_ms)
        for wish in [each for each in self._wishes.values() if not each.is_served and now_ms >= each.deadline_ms]:
            del self._wishes[wish.allocation]
            decisions.append(AllocationFailed(wish.job_master, wish.allocation, self._why_none()))
        for task_manager in self._on_demand.to_end(self._idle_since_ms, now_ms):
            decisions.append(ReleaseWorker(task_manager, now_ms - self._idle_since_ms[task_manager]))
            self._drop(task_manager)
        return decisions

    def workers_lost(self, number: int, now_ms: float) -> list[SlotManagerDecision]:
        """So many of those that were to be started will not come."""
        self._num_starting = max(0, self._num_starting - number)
        return self._serve(now_ms)

    # -- helpers -----------------------------------------------------------------------------------------

    def _serve(self, now_ms: float) -> list[SlotManagerDecision]:
        """Ask for a free slot for each wish that waits, and for workers if there are too few."""
        decisions: list[SlotManagerDecision] = []
        waiting = list(self.waiting)
        for slot in self._slots.values():
            if not waiting:
                break
            if slot.state is _S.FREE:
                wish = self._wishes[waiting.pop(0)]
                slot.go_on(_E.ASK)
                slot.allocation, slot.ask_ends_ms = wish.allocation, now_ms + SLOT_ASK_TIMEOUT_MS
                self._idle_since_ms.pop(slot.id.task_manager, None)
                decisions.append(AskForSlot(slot.id, wish.allocation, wish.job_master))
        there = {each.task_manager for each in self._slots if self._on_demand.is_worker(each.task_manager)}
        if missing := self._on_demand.num_to_start(len(waiting), self._num_starting, len(there)):
            self._num_starting += missing
            decisions.append(StartWorkers(missing))
        return decisions

    def _taken(self, slot: _Slot, allocation: AllocationId) -> None:
        """A slot is this wish's; the wish that it was asked for, or had it, if another, is without one again."""
        if slot.allocation is not None and slot.allocation != allocation:
            self._lose(slot.allocation)
        slot.go_on(_E.TAKEN)
        slot.allocation = allocation
        wish = self._wishes.get(allocation)
        if wish is not None:
            wish.is_served = True

    def _not_taken(self, slot: _Slot) -> None:
        slot.go_on(_E.NOT_TAKEN)
        if slot.allocation is not None:
            allocation, slot.allocation = slot.allocation, None
            if self._holder(allocation) is None:
                self._wishes.pop(allocation, None)  # served, used and given back

    def _lose(self, allocation: AllocationId) -> None:
        wish = self._wishes.get(allocation)
        if wish is not None and wish.is_served:
            self._wishes.pop(allocation)

    def _holder(self, allocation: AllocationId) -> _Slot | None:
        """The slot that was said to be this wish's."""
        held = (each for each in self._slots.values() if each.allocation == allocation)
        return next((each for each in held if each.state is _S.ALLOCATED), None)

    def _note_idle(self, task_manager: str, now_ms: float) -> None:
        own = [each for each in self._slots.values() if each.id.task_manager == task_manager]
        if own and all(each.state is _S.FREE for each in own):
            self._idle_since_ms.setdefault(task_manager, now_ms)
        else:
            self._idle_since_ms.pop(task_manager, None)

    def _drop(self, task_manager: str) -> None:
        self._slots = {key: each for key, each in self._slots.items() if key.task_manager != task_manager}
        del self._idle_since_ms[task_manager]

    def _why_none(self) -> str:
        num_taken = sum(each.state is not _S.FREE for each in self._slots.values())
        return f"of {len(self._slots)} slots in the cluster {num_taken} are taken"
