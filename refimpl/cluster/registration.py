"""How a component gets known to a leader, and stays so: asked again until it answers, and anew when it is another.

new leader          ask, after 100 ms without an answer again, then after 200, 400 … up to 30 s
it refuses          ask again after 30 s
it fails            ask again after 10 s
it answers          registered, until another leads or this one is lost
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.cluster.fencing import FencingToken
from refimpl.transitions import next_state

__all__ = [
    "ERROR_DELAY_MS",
    "FIRST_TIMEOUT_MS",
    "MAX_TIMEOUT_MS",
    "REFUSED_DELAY_MS",
    "REGISTRATION_TRANSITIONS",
    "AskToRegister",
    "CloseConnection",
    "Registration",
    "RegistrationDecision",
    "RegistrationEvent",
    "RegistrationState",
]

FIRST_TIMEOUT_MS = 100.0
MAX_TIMEOUT_MS = 30_000.0
ERROR_DELAY_MS = 10_000.0
REFUSED_DELAY_MS = 30_000.0


class RegistrationState(Enum):
    """How far a component is with its leader."""

    IDLE = "without a leader"
    TRYING = "trying"
    WAITING = "waiting to try again"
    REGISTERED = "registered"


class RegistrationEvent(Enum):
    """What can happen to a registration."""

    NEW_LEADER = "hear of another leader"
    SUCCEED = "be accepted"
    REFUSE = "be refused"
    FAIL = "hear of an error"
    DEADLINE = "wait no longer"
    LOSE = "lose its leader"
    NO_LEADER = "hear that nobody leads"


_S, _E = RegistrationState, RegistrationEvent
_HEARD_LATE = (_E.SUCCEED, _E.REFUSE, _E.FAIL)

REGISTRATION_TRANSITIONS: dict[RegistrationState, dict[RegistrationEvent, RegistrationState]] = {
    _S.IDLE: {
        _E.NEW_LEADER: _S.TRYING,
        **dict.fromkeys(_HEARD_LATE, _S.IDLE),
        _E.LOSE: _S.IDLE,
        _E.NO_LEADER: _S.IDLE,
    },
    _S.TRYING: {
        _E.NEW_LEADER: _S.TRYING,
        _E.SUCCEED: _S.REGISTERED,
        _E.REFUSE: _S.WAITING,
        _E.FAIL: _S.WAITING,
        _E.DEADLINE: _S.TRYING,
        _E.LOSE: _S.TRYING,
        _E.NO_LEADER: _S.IDLE,
    },
    _S.WAITING: {
        _E.NEW_LEADER: _S.TRYING,
        **dict.fromkeys(_HEARD_LATE, _S.WAITING),
        _E.DEADLINE: _S.TRYING,
        _E.LOSE: _S.WAITING,
        _E.NO_LEADER: _S.IDLE,
    },
    _S.REGISTERED: {
        _E.NEW_LEADER: _S.TRYING,
        **dict.fromkeys(_HEARD_LATE, _S.REGISTERED),
        _E.LOSE: _S.TRYING,
        _E.NO_LEADER: _S.IDLE,
    },
}


@dataclass(frozen=True, slots=True)
class AskToRegister:
    """Send the leader at `address`, of this token, a registration."""

    address: str
    token: FencingToken


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """This leadership is not the one to deal with any more: forget what it has said."""

    address: str
    token: FencingToken


RegistrationDecision = AskToRegister | CloseConnection


class Registration:
    """A component's registration with whoever leads; times are the driver's, in ms.

    Answers name the token of who gives them: one of an earlier leader is no answer.

    Flink:   RetryingRegistration, RegisteredRpcConnection (runtime.registration), 1.11.4
    """

    def __init__(self, who: str) -> None:
        self.state = RegistrationState.IDLE
        self.leader: tuple[str, FencingToken] | None = None
        self.next_deadline: float | None = None
        self._who = who
        self._timeout_ms = FIRST_TIMEOUT_MS

    @property
    def is_registered(self) -> bool:
        return self.state is RegistrationState.REGISTERED

    def leader_is(self, address: str, token: FencingToken, now_ms: float) -> list[RegistrationDecision]:
        """Somebody leads. Told twice, or of one that is older than the one known, it is no news."""
        if self.leader is not None and not self._is_news(token, self.leader[1]):
            return []
        decisions = self._close()
        self.leader = (address, token)
        self._go_on(RegistrationEvent.NEW_LEADER)
        return decisions + self._begin(now_ms)

    def nobody_leads(self) -> list[RegistrationDecision]:
        """The leader is gone and none has come; one older than it is still no news afterwards."""
        decisions = self._close()
        self._go_on(RegistrationEvent.NO_LEADER)
        self.next_deadline = None
        return decisions

    def accepted(self, token: FencingToken) -> bool:
        """The leader knows this component now; true once, and only for the leader that was asked."""
        if not self._is_asked(token):
            return False
        self._go_on(RegistrationEvent.SUCCEED)
        self.next_deadline = None
        return True

    def refused(self, token: FencingToken, now_ms: float) -> None:
        """The leader does not want this component."""
        self._wait(token, RegistrationEvent.REFUSE, now_ms + REFUSED_DELAY_MS)

    def failed(self, token: FencingToken, now_ms: float) -> None:
        """The question could not be sent, or answered."""
        self._wait(token, RegistrationEvent.FAIL, now_ms + ERROR_DELAY_MS)

    def lost(self, token: FencingToken, now_ms: float) -> list[RegistrationDecision]:
        """The connection to the leader has ended, or nothing was heard of it for too long: ask the same one again."""
        if not self.is_registered or self.leader is None or token != self.leader[1]:
            return []
        decisions = self._close()
        self._go_on(RegistrationEvent.LOSE)
        return decisions + self._begin(now_ms)

    def on_timeout(self, now_ms: float) -> list[RegistrationDecision]:
        """Ask again, if it is time."""
        if self.next_deadline is None or now_ms < self.next_deadline:
            return []
        was_trying = self.state is RegistrationState.TRYING
        self._go_on(RegistrationEvent.DEADLINE)
        if not was_trying:
            return self._begin(now_ms)
        self._timeout_ms = min(2 * self._timeout_ms, MAX_TIMEOUT_MS)
        return self._ask(now_ms)

    def _is_news(self, token: FencingToken, known: FencingToken) -> bool:
        """Whether `token` is newer, or is back after nobody was said to lead."""
        return token.epoch > known.epoch or (token == known and self.state is RegistrationState.IDLE)

    def _is_asked(self, token: FencingToken) -> bool:
        return self.state is RegistrationState.TRYING and self.leader is not None and self.leader[1] == token

    def _wait(self, token: FencingToken, event: RegistrationEvent, until_ms: float) -> None:
        if self._is_asked(token):
            self._go_on(event)
            self.next_deadline = until_ms

    def _begin(self, now_ms: float) -> list[RegistrationDecision]:
        self._timeout_ms = FIRST_TIMEOUT_MS
        return self._ask(now_ms)

    def _ask(self, now_ms: float) -> list[RegistrationDecision]:
        if self.leader is None:
            return []
        self.next_deadline = now_ms + self._timeout_ms
        return [AskToRegister(*self.leader)]

    def _close(self) -> list[RegistrationDecision]:
        """What is said to the driver when the known leader is no longer registered with."""
        if not self.is_registered or self.leader is None:
            return []
        return [CloseConnection(*self.leader)]

    def _go_on(self, event: RegistrationEvent) -> None:
        self.state = next_state(REGISTRATION_TRANSITIONS, self.state, event, f"the registration of {self._who}")
