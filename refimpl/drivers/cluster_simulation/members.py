"""The members of a simulated cluster: who lives, who leads, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from refimpl.cluster.dispatcher import Dispatcher
from refimpl.cluster.endpoint import Endpoint
from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.job_master import JobMaster
from refimpl.cluster.leader import LeaderContender, Publish, StartLeading
from refimpl.cluster.messages import Message
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.cluster.snapshot import MemberKind, MemberState
from refimpl.cluster.task_executor import TaskExecutor
from refimpl.drivers.cluster_checkpoints import ClusterCheckpoints
from refimpl.drivers.cluster_simulation.task_manager import SimulatedTaskManager
from refimpl.drivers.simulation.control_wire import ControlMessage, ControlWire
from refimpl.drivers.store_calls import StoreWork
from refimpl.errors import LocalUsageError
from refimpl.laws.fencing import FencingLaw

__all__ = ["DISPATCHER", "RESOURCE_MANAGER", "Member", "Members", "job_master_of"]

DISPATCHER, RESOURCE_MANAGER = "dispatcher", "resource-manager"


def job_master_of(job_id: str) -> str:
    """The address of whoever leads a job."""
    return f"job-master of {job_id}"


@dataclass(slots=True)
class Member:
    """One life, or leadership, at an address."""

    address: str
    kind: MemberKind
    token: FencingToken
    endpoint: Endpoint | None = None
    dispatcher: Dispatcher | None = None
    task_manager: SimulatedTaskManager | None = None
    checkpoints: ClusterCheckpoints | None = None
    job_id: str | None = None
    is_paused: bool = False
    call: StoreWork | None = None

    @property
    def name(self) -> str:
        """What tells it from whoever was, or will be, at the same address."""
        return f"{self.address}#{self.token.epoch}"

    @property
    def next_deadline(self) -> float | None:
        return None if self.endpoint is None or self.is_paused else self.endpoint.next_deadline

    def next_call(self) -> StoreWork | None:
        """The call of the store that it waits for; None while it is paused."""
        if self.is_paused:
            return None
        if self.call is None and self.task_manager is not None and self.task_manager.calls:
            self.call = self.task_manager.calls.popleft()
        if self.call is None and self.checkpoints is not None:
            self.call = self.checkpoints.next_call()
        return self.call


@dataclass(slots=True)
class Members:
    """All members, and the wire on which they speak; `make` gives a member of an address, which leads if it has to.

    Of a leader that is gone or paused another takes the place after `lease_ms`. Whoever was connected to a member that
    has crashed hears of it within `max_notice_ms`, if anybody tells.
    """

    wire: ControlWire
    clock: Callable[[], float]
    make: Callable[[str, FencingToken], Member]
    random: Random
    lease_ms: float = 5.0
    max_notice_ms: float = 5.0
    alive: dict[str, Member] = field(default_factory=dict)
    zombies: list[Member] = field(default_factory=list)
    vacant: dict[str, float] = field(default_factory=dict)  # from when on somebody may lead there
    gone: set[str] = field(default_factory=set)
    law: FencingLaw = field(default_factory=FencingLaw)
    _contenders: dict[str, LeaderContender] = field(default_factory=dict)
    _epochs: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Member]:
        yield from self.alive.values()
        yield from self.zombies

    def named(self, name: str) -> Member:
        """The member of this name."""
        return next(each for each in self if each.name == name)

    def state_of(self, member: Member) -> MemberState:
        """Whether a member lives, stands still, or believes to lead."""
        if member.is_paused:
            return MemberState.PAUSED
        return MemberState.ALIVE if self.alive.get(member.address) is member else MemberState.ZOMBIE

    # -- lives -----------------------------------------------------------------------------------------

    def contend(self, address: str) -> None:
        """Somebody would lead here from now on."""
        self.gone.discard(address)
        if address not in self.alive:
            self.vacant.setdefault(address, self.clock())

    def begin(self, address: str) -> Member:
        """The next life of a TaskManager."""
        self.gone.discard(address)
        return self._enter(address, self._next_token(address))

    def elect(self, address: str) -> Member:
        """Give the lead to whoever contends; whoever had it and was paused does not know."""
        del self.vacant[address]
        before = self.alive.pop(address, None)
        if before is not None:
            self.zombies.append(before)
        contender = self._contenders.setdefault(address, LeaderContender(address))
        token = self._next_token(address)
        for decision in contender.grant(token):
            if isinstance(decision, Publish):
                starts = contender.confirmed(decision.token)
                assert starts == [StartLeading(token)], f"{address} was granted {token}, and does {starts}"
        return self._enter(address, token)

    def crash(self, address: str, *, is_noticed: bool = True) -> Member:
        """End a member; what it has said is still on its way.

        Raises:
            LocalUsageError: there is none.
        """
        member = self.present(address)
        del self.alive[address]
        self.gone.add(address)
        if is_noticed:
            for each in self.alive.values():
                if each.endpoint is not None:
                    self._tell_of_the_end(each, member)
        return member

    def leave(self, member: Member) -> None:
        """A member goes that is not needed any more."""
        self.alive.pop(member.address, None)

    def pause(self, address: str) -> None:
        """Let a member stand still; a leader loses the lead without knowing.

        Raises:
            LocalUsageError: there is none.
        """
        member = self.present(address)
        member.is_paused = True
        if member.kind is not MemberKind.TASK_MANAGER:
            self.vacant[address] = self.clock() + self.lease_ms

    def resume(self, address: str) -> None:
        """Let all that were paused at an address go on; one that still leads keeps the lead."""
        for each in self:
            if each.address == address and each.is_paused:
                each.is_paused = False
                if self.alive.get(address) is each:
                    self.vacant.pop(address, None)

    def present(self, address: str) -> Member:
        """Who is at an address.

        Raises:
            LocalUsageError: nobody is.
        """
        if address not in self.alive:
            raise LocalUsageError(f"there is no {address}; there are {', '.join(sorted(self.alive)) or 'none'}")
        return self.alive[address]

    # -- messages --------------------------------------------------------------------------------------

    def post(self, member: Member) -> None:
        """Put what a member has to say on its way."""
        for envelope in [] if member.endpoint is None else member.endpoint.messages_to_send():
            what = type(envelope.message).__name__
            line = f"{envelope.receiver} from {member.address}"
            self.wire.send(line, what, partial(self._deliver, envelope))

    def first_in_line(self) -> list[ControlMessage]:
        """What can arrive next: of each sender to each receiver that is not paused the oldest."""
        paused = {each.address for each in self.alive.values() if each.is_paused}
        return [each for each in self.wire.first_in_line if each.task.split(" from ")[0] not in paused]

    def _deliver(self, envelope: Envelope[Message]) -> None:
        member = self.alive.get(envelope.receiver)
        if member is None or member.endpoint is None:
            return
        refusal = member.endpoint.receive(envelope, self.clock())
        self.law.note(member.endpoint, envelope, is_handled=refusal is None)

    def _enter(self, address: str, token: FencingToken) -> Member:
        member = self.alive[address] = self.make(address, token)
        for each in self.alive.values():
            if each is not member:
                self._tell_of_leader(each, member)
                self._tell_of_leader(member, each)
        return member

    def _tell_of_leader(self, listener: Member, leader: Member) -> None:
        """Let somebody hear, after a while, who leads."""
        endpoint, token, job_id = listener.endpoint, leader.token, leader.job_id

        def hear() -> None:
            now_ms = self.clock()
            if self.alive.get(listener.address) is not listener:
                return
            if leader.kind is MemberKind.RESOURCE_MANAGER and isinstance(endpoint, TaskExecutor | JobMaster):
                endpoint.resource_manager_is(leader.address, token, now_ms)
            elif job_id is not None and isinstance(endpoint, TaskExecutor):
                endpoint.job_master_is(job_id, leader.address, token, now_ms)

        leads = leader.kind in (MemberKind.RESOURCE_MANAGER, MemberKind.JOB_MASTER)
        if leads and isinstance(endpoint, TaskExecutor | JobMaster):
            line = f"{listener.address} from election"
            self.wire.send(line, f"that {leader.name} leads", hear, may_be_lost=False)

    def _tell_of_the_end(self, listener: Member, member: Member) -> None:
        """Let somebody hear, after a while, that its connection to a member has ended."""

        def hear() -> None:
            endpoint = listener.endpoint
            if self.alive.get(listener.address) is not listener or not isinstance(
                endpoint, TaskExecutor | JobMaster | ResourceManager
            ):
                return
            if endpoint.peers.get(member.address, member.token) == member.token:
                endpoint.peer_is_gone(member.address, f"the connection to {member.address} has ended", self.clock())

        line = f"{listener.address} from {member.address}"
        self.wire.send(line, f"that {member.name} is gone", hear, may_be_lost=False)

    def _next_token(self, address: str) -> FencingToken:
        epoch = self._epochs[address] = self._epochs.get(address, 0) + 1
        return FencingToken(epoch, self.random.randbytes(16))
