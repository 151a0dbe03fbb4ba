"""Whether a component leads: three states, and an election that is a service outside.

Between being granted the leadership and leading lies the confirmation: only when its address and token are published
for all to find does a leader begin. And who is told that it leads no longer stops at once, without asking anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.fencing import FencingToken
from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state

__all__ = [
    "LEADER_TRANSITIONS",
    "LeaderContender",
    "LeaderDecision",
    "LeaderEvent",
    "LeaderState",
    "Publish",
    "StartLeading",
    "StopLeading",
]


class LeaderState(Enum):
    """What a contender is."""

    FOLLOWER = "a follower"
    CONFIRMING = "about to lead"
    LEADER = "the leader"


class LeaderEvent(Enum):
    """What the election says."""

    GRANT = "be granted a newer epoch"
    GRANT_OLD = "be granted an epoch that is not newer"
    CONFIRM = "hear that its own token is published"
    CONFIRM_OTHER = "hear that another token is published"
    REVOKE = "lose the leadership"


_S, _E = LeaderState, LeaderEvent

LEADER_TRANSITIONS: dict[LeaderState, dict[LeaderEvent, LeaderState]] = {
    _S.FOLLOWER: {
        _E.GRANT: _S.CONFIRMING,
        _E.GRANT_OLD: _S.FOLLOWER,
        _E.CONFIRM: _S.FOLLOWER,  # it came after the leadership had gone
        _E.CONFIRM_OTHER: _S.FOLLOWER,
        _E.REVOKE: _S.FOLLOWER,
    },
    _S.CONFIRMING: {
        _E.GRANT: _S.CONFIRMING,
        _E.GRANT_OLD: _S.CONFIRMING,
        _E.CONFIRM: _S.LEADER,
        _E.CONFIRM_OTHER: _S.CONFIRMING,
        _E.REVOKE: _S.FOLLOWER,
    },
    _S.LEADER: {
        _E.GRANT: _S.CONFIRMING,
        _E.GRANT_OLD: _S.LEADER,
        _E.CONFIRM: _S.LEADER,
        _E.CONFIRM_OTHER: _S.LEADER,
        _E.REVOKE: _S.FOLLOWER,
    },
}


@dataclass(frozen=True, slots=True)
class Publish:
    """Let everybody find `address` with `token`, then say `confirmed`."""

    address: str
    token: FencingToken


@dataclass(frozen=True, slots=True)
class StartLeading:
    """Begin, under this token."""

    token: FencingToken


@dataclass(frozen=True, slots=True)
class StopLeading:
    """End at once whatever was begun under this token."""

    token: FencingToken


LeaderDecision = Publish | StartLeading | StopLeading


class LeaderContender:
    """One component at `address` that wants to lead.

    Flink:   LeaderContender, DefaultLeaderElectionService, ZooKeeperLeaderElectionService (runtime.leaderelection),
             1.11.4
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.state = LeaderState.FOLLOWER
        self.token: FencingToken | None = None
        self._newest_epoch = -1

    def grant(self, token: FencingToken) -> list[LeaderDecision]:
        """The election gives the leadership; a grant that was overtaken by a newer one is no news."""
        if token.epoch <= self._newest_epoch:
            self._go_on(LeaderEvent.GRANT_OLD)
            return []
        decisions = self._stop()
        self._go_on(LeaderEvent.GRANT)
        self.token, self._newest_epoch = token, token.epoch
        return [*decisions, Publish(self.address, token)]

    def confirmed(self, token: FencingToken) -> list[LeaderDecision]:
        """This token is published; it counts if it is the one that was granted last."""
        was_leader = self.state is LeaderState.LEADER
        self._go_on(LeaderEvent.CONFIRM if token == self.token else LeaderEvent.CONFIRM_OTHER)
        if was_leader or self.state is not LeaderState.LEADER:
            return []
        return [StartLeading(token)]

    def revoke(self) -> list[LeaderDecision]:
        """The leadership is gone, or cannot be known to be there any more."""
        decisions = self._stop()
        self._go_on(LeaderEvent.REVOKE)
        self.token = None
        return decisions

    def _stop(self) -> list[LeaderDecision]:
        if self.state is not LeaderState.LEADER:
            return []
        if self.token is None:
            raise LocalUsageError(f"{self.address} leads without a token")
        return [StopLeading(self.token)]

    def _go_on(self, event: LeaderEvent) -> None:
        self.state = next_state(LEADER_TRANSITIONS, self.state, event, self.address)
