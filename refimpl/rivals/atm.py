"""Credit in ATM networks (N23): a sender counts what it has sent, a receiver says what it has forwarded.

A credit cell carries the absolute count, so one that is lost costs nothing once the next has come.

Source:  Kung, Blackwell, Chapman: Credit-based flow control for ATM networks, SIGCOMM 94 (N23, credit update protocol);
         Kung, Chang: Receiver-oriented adaptive buffer allocation in credit-based flow control, INFOCOM 95
Differs: a record is a cell. The adaptive formula of the 1994 paper was not at hand; shares are in proportion to recent
         use, as in the later one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil

from refimpl.errors import LocalUsageError
from refimpl.rivals.rival import FOREVER, Delayed, Levels
from refimpl.rivals.workload import NUM_BRANCHES, SINK, SOURCE

__all__ = ["N2", "AtmCredit", "CreditReceiver", "CreditSender", "allocate", "best_rate", "buffers_for"]

N2 = 10
"""Cells forwarded between two credit cells, as in the paper's examples."""


class CreditSender:
    """One virtual circuit at its sender: it may send while its balance is above 0."""

    def __init__(self, allocation: int) -> None:
        self.allocation = allocation
        self.num_sent = 0
        self.num_forwarded = 0

    @property
    def balance(self) -> int:
        return self.allocation - (self.num_sent - self.num_forwarded)

    def send(self) -> None:
        """Count a cell.

        Raises:
            LocalUsageError: there is no credit.
        """
        if self.balance <= 0:
            raise LocalUsageError(f"a circuit with {self.num_sent} cells sent has no credit")
        self.num_sent += 1

    def receive_credit(self, num_forwarded: int) -> None:
        """Take in a credit cell: an absolute count, so an older one that comes late changes nothing."""
        self.num_forwarded = max(self.num_forwarded, num_forwarded)


class CreditReceiver:
    """The same circuit at its receiver: after each `n2` cells it forwards it says how many there were in all."""

    def __init__(self, n2: int = N2) -> None:
        self.num_forwarded = 0
        self._n2 = n2

    def forward(self) -> int | None:
        """Count a cell that goes on; the answer is what the credit cell says, if one is due."""
        self.num_forwarded += 1
        return self.num_forwarded if self.num_forwarded % self._n2 == 0 else None


def buffers_for(rtt_ms: float, peak_per_s: float, n2: int = N2) -> int:
    """The allocation N2 + N3 that keeps a circuit at its peak: N3 cells are on their way in one round trip."""
    return n2 + ceil(rtt_ms * peak_per_s / 1000)


def best_rate(n2: int, n3: int, rtt_cells: float) -> float:
    """The part of a link that a circuit can fill, 1 at most; the round trip is in cells of the link."""
    return min(1.0, (n2 + n3) / (rtt_cells + n2))


def allocate(pool: int, used: Sequence[int], n2: int = N2) -> list[int]:
    """Share a receiver's pool among circuits in proportion to recent use, each at least `n2`, all of them the pool.

    Raises:
        LocalUsageError: the pool is too small for that.
    """
    if not used or pool < n2 * len(used):
        raise LocalUsageError(f"a pool of {pool} cells cannot give {n2} to each of {len(used)} circuits")
    rest, total = pool - n2 * len(used), sum(used)
    exact = [rest * each / total if total else rest / len(used) for each in used]
    shares = [int(each) for each in exact]
    by_remainder = sorted(range(len(used)), key=lambda circuit: (shares[circuit] - exact[circuit], circuit))
    for circuit in by_remainder[: rest - sum(shares)]:
        shares[circuit] += 1
    return [n2 + share for share in shares]


class AtmCredit:
    """A circuit for each branch: a loop of credits for each hop, or with `end_to_end` one over all of them."""

    def __init__(self, delay_ms: float, peak_per_s: float, *, end_to_end: bool = False) -> None:
        self.name = "ATM, end to end" if end_to_end else "ATM, per link"
        self._end_to_end = end_to_end
        num_links = SINK
        hops = 1 if not end_to_end else num_links
        self.allocation = buffers_for(2 * delay_ms * hops, peak_per_s)
        self.senders = {
            (stage, branch): CreditSender(self.allocation)
            for stage in range(1 if end_to_end else num_links)
            for branch in range(NUM_BRANCHES)
        }
        self.queues = {
            (stage, branch): deque[float]() for stage in range(1, SINK + 1) for branch in range(NUM_BRANCHES)
        }
        self._receivers = {key: CreditReceiver() for key in self.senders}
        self._credits: Delayed[tuple[tuple[int, int], int]] = Delayed(delay_ms * hops)
        self._num_on_the_wire = 0

    @property
    def buffers_needed(self) -> int:
        """Cells that all receivers must have room for: any of a circuit's may hold all that it was promised."""
        return self.allocation * SINK * NUM_BRANCHES

    @property
    def next_tick_ms(self) -> float:
        return self._credits.next_ms

    def on_tick(self, now_ms: float) -> None:
        for key, num_forwarded in self._credits.take(now_ms):
            self.senders[key].receive_credit(num_forwarded)

    def may_emit(self, branch: int, now_ms: float) -> float:
        return 0.0 if self.senders[SOURCE, branch].balance > 0 else FOREVER

    def can_enqueue(self, stage: int, branch: int) -> bool:
        sender = self.senders.get((stage, branch))
        return sender is None or sender.balance > 0

    def enqueue(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self._num_on_the_wire += 1
        if (stage, branch) in self.senders:
            self.senders[stage, branch].send()

    def arrive(self, stage: int, branch: int, record: float, now_ms: float) -> None:
        self._num_on_the_wire -= 1
        self.queues[stage, branch].append(record)
        most = self.allocation
        assert len(self.queues[stage, branch]) <= most, f"{self.name}: more than {most} cells at stage {stage}"

    def dequeue(self, stage: int, branch: int, now_ms: float) -> float | None:
        queue = self.queues[stage, branch]
        if not queue:
            return None
        loop = (SOURCE, branch) if self._end_to_end else (stage - 1, branch)
        if not self._end_to_end or stage == SINK:
            count = self._receivers[loop].forward()
            if count is not None:
                self._credits.put((loop, count), now_ms)
        return queue.popleft()

    def measure(self) -> Levels:
        return Levels(sum(map(len, self.queues.values())) + self._num_on_the_wire)
