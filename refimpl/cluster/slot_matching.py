"""Which slot serves which request: the choice at the heart of a slot pool, apart from who asks and how long it waits.

A slot and a request both go by an allocation id. A request is asked for under its own id, and the slot that comes for
it bears that id; but it may be served by another slot before.
"""

from __future__ import annotations

from collections.abc import Collection

from refimpl.cluster.slots import AllocationId

__all__ = ["SlotMatching"]


class SlotMatching:
    """The slots and the waiting requests of one job: no slot serves two requests at a time.

    All slots are alike, so any slot can serve any request. No free slot stays free while a request waits.

    Flink:   SlotPoolImpl#tryFulfillSlotRequestOrMakeAvailable, #offerSlot, #pollMatchingPendingRequest,
             PreviousAllocationSlotSelectionStrategy (runtime.jobmaster.slotpool), 1.11.4
    Differs: slots there have sizes. Of slots that are as good the first offered is taken; there it is open which.
             Locality there is counted: host and TaskManager, input by input; here a TaskManager is near or not.
    """

    def __init__(self) -> None:
        self._task_managers: dict[AllocationId, str] = {}
        self._free: dict[AllocationId, bool] = {}
        self._waiting: list[AllocationId] = []

    def request(self, request: AllocationId, before: AllocationId | None, near: Collection[str]) -> AllocationId | None:
        """A slot is wanted: return the id of the free slot that serves the request, or None: the request waits.

        Best is the slot `before`, then one at a TaskManager in `near`, then any. Of several that are as good: the one
        that was offered first.
        """
        free = [slot for slot, is_free in self._free.items() if is_free]
        if not free:
            self._waiting.append(request)
            return None
        chosen = min(free, key=lambda slot: (slot != before, self._task_managers[slot] not in near))
        self._free[chosen] = False
        return chosen

    def offer(self, slot: AllocationId, task_manager: str) -> AllocationId | None:
        """A TaskManager offers a slot: return the id of the waiting request that it serves, or None: it stays free.

        It serves the request of its own id, if that waits, else the one that has waited longest. A slot that is known
        already was offered once more, since the answer was lost: None, and nothing changes.
        """
        if slot in self._free:
            return None
        self._task_managers[slot] = task_manager
        self._free[slot] = True
        return self._serve(slot)

    def release(self, slot: AllocationId) -> AllocationId | None:
        """A slot is used no longer: return the id of the request that has waited longest, or None: the slot is free.

        A slot that is not in use: None, and nothing changes.
        """
        if self._free.get(slot, True):
            return None
        self._free[slot] = True
        return self._serve(slot)

    def withdraw(self, request: AllocationId) -> None:
        """A request waits no longer, if it does: whoever wanted the slot wants it no more."""
        if request in self._waiting:
            self._waiting.remove(request)

    def remove(self, slot: AllocationId) -> None:
        """A slot is gone, free or in use, if it is known; its TaskManager was lost or has it back."""
        if slot in self._free:
            del self._free[slot], self._task_managers[slot]

    def _serve(self, slot: AllocationId) -> AllocationId | None:
        if not self._waiting:
            return None
        served = slot if slot in self._waiting else self._waiting[0]
        self._waiting.remove(served)
        self._free[slot] = False
        return served
