"""The ResourceManager: whose slots there are, and which job gets which."""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, AskForHeartbeat, HeartbeatDecision, HeartbeatTimes, PeerIsSilent
from refimpl.cluster.messages import (
    AnswerSlot,
    AskAlive,
    CancelSlot,
    GiveSlot,
    Message,
    Registered,
    RegisterJobMaster,
    RegisterTaskManager,
    RequestSlot,
    SlotFailed,
    SlotReport,
    SlotWasFreed,
    Wishes,
)
from refimpl.cluster.on_demand import OnDemand
from refimpl.cluster.peer_links import PeerLink, links_of_peers
from refimpl.cluster.slot_manager import (
    AllocationFailed,
    AskForSlot,
    ReleaseWorker,
    SlotManager,
    SlotManagerDecision,
    StartWorkers,
)

__all__ = ["ResourceManager"]


class ResourceManager(Endpoint):
    """The slots of a cluster under one leadership; it hears of jobs and TaskManagers from themselves.

    What a driver that can start workers has to do is in `worker_orders`.

    Flink:   ResourceManager (runtime.resourcemanager), 1.11.4
    """

    def __init__(
        self,
        address: str,
        token: FencingToken,
        on_demand: OnDemand | None = None,
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
    ) -> None:
        super().__init__(address, token)
        self.slots = SlotManager(on_demand)
        self.worker_orders: list[StartWorkers | ReleaseWorker] = []
        self._heartbeats = heartbeat.watching(asks=True)
        self._job_masters: dict[str, str] = {}  # the jobs of the addresses that lead one

    @property
    def next_deadline(self) -> float | None:
        ends = [self._heartbeats.next_deadline, self.slots.next_deadline]
        return min((end for end in ends if end is not None), default=None)

    def on_timeout(self, now_ms: float) -> None:
        self._watch(self._heartbeats.on_timeout(now_ms), now_ms)
        self._carry_out(self.slots.on_timeout(now_ms), now_ms)

    def workers_lost(self, number: int, now_ms: float) -> None:
        """So many of the workers that were ordered will not come."""
        self._carry_out(self.slots.workers_lost(number, now_ms), now_ms)

    def links(self, now_ms: float) -> tuple[PeerLink, ...]:
        return links_of_peers(self.peers, self._heartbeats, now_ms)

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        """The connection to a peer has ended, or it is silent: it is none any more."""
        if self.peers.pop(address, None) is None:
            return
        self._heartbeats.stop_watching(address)
        if self._job_masters.pop(address, None) is None:
            self._carry_out(self.slots.task_manager_gone(address, why, now_ms), now_ms)
        else:
            self._carry_out(self.slots.job_master_gone(address, now_ms), now_ms)

    def _handle(self, message: Message, sender: str, token: FencingToken, now_ms: float) -> None:
        if isinstance(message, RegisterTaskManager | RegisterJobMaster):
            self._register(message, sender, token, now_ms)
            return
        if self.peers.get(sender) != token:
            return  # of somebody who counts as gone: it will register again
        self._heartbeats.heard(sender, now_ms)
        match message:
            case RequestSlot(allocation):
                self._carry_out(self.slots.request(allocation, sender, now_ms), now_ms)
            case Wishes(allocations):
                self._carry_out(self.slots.wishes_are(allocations, sender, now_ms), now_ms)
            case CancelSlot(allocation):
                self._carry_out(self.slots.cancel(allocation, now_ms), now_ms)
            case AnswerSlot(asked, slot, allocation):
                self._carry_out(self.slots.answered(asked, slot, allocation, now_ms), now_ms)
            case SlotWasFreed(slot, allocation):
                self._carry_out(self.slots.slot_available(slot, allocation, now_ms), now_ms)
            case SlotReport(slots):
                self._carry_out(self.slots.report(sender, slots, now_ms), now_ms)

    def _register(
        self, message: RegisterTaskManager | RegisterJobMaster, sender: str, token: FencingToken, now_ms: float
    ) -> None:
        """The same again is the same; another life under the same name ends the one before."""
        if self._is_new_life(sender, token):
            self.peer_is_gone(sender, f"{sender} has begun anew", now_ms)
        is_known = sender in self.peers
        self.peers[sender] = token
        self._heartbeats.watch(sender, now_ms)
        self._send_to_peer(sender, Registered())
        if isinstance(message, RegisterJobMaster):
            self._job_masters[sender] = message.job_id
        elif is_known:
            self._carry_out(self.slots.report(sender, message.slots, now_ms), now_ms)
        else:
            self._carry_out(self.slots.register(sender, message.slots, now_ms), now_ms)

    def _watch(self, decisions: Iterable[HeartbeatDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case AskForHeartbeat(peer):
                    self._send_to_peer(peer, AskAlive())
                case PeerIsSilent(peer, silent_ms):
                    self.peer_is_gone(peer, f"{peer} was silent for {silent_ms:.0f} ms", now_ms)

    def _carry_out(self, decisions: Iterable[SlotManagerDecision], now_ms: float) -> None:
        for decision in decisions:
            match decision:
                case AskForSlot(slot, allocation, job_master):
                    if job_master in self.peers:
                        give = GiveSlot(slot, allocation, job_master, self.peers[job_master])
                        self._send_to_peer(slot.task_manager, give)
                case AllocationFailed(job_master, allocation, why):
                    self._send_to_peer(job_master, SlotFailed(allocation, why))
                case StartWorkers() | ReleaseWorker():
                    self.worker_orders.append(decision)
