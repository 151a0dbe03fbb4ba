"""Whether a peer lives: any message of it is a sign of life, and a long silence is its end, told once.

One of the two asks every 10 s, with what it believes of the other in the question, and the other answers with what is.
So heartbeats also mend what a lost message has left different on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refimpl.errors import LocalUsageError
from refimpl.transitions import next_state

__all__ = [
    "FLINKS_HEARTBEAT",
    "HEARTBEAT_INTERVAL_MS",
    "HEARTBEAT_TIMEOUT_MS",
    "HEARTBEAT_TRANSITIONS",
    "AskForHeartbeat",
    "HeartbeatDecision",
    "HeartbeatEvent",
    "HeartbeatState",
    "HeartbeatTimes",
    "Heartbeats",
    "PeerIsSilent",
]

HEARTBEAT_INTERVAL_MS = 10_000.0
HEARTBEAT_TIMEOUT_MS = 50_000.0


@dataclass(frozen=True, slots=True)
class HeartbeatTimes:
    """How often a component asks others whether they live, and after which silence they count as gone; in ms.

    Flink:   HeartbeatManagerOptions (heartbeat.interval, heartbeat.timeout), 1.11.4
    """

    interval_ms: float = HEARTBEAT_INTERVAL_MS
    timeout_ms: float = HEARTBEAT_TIMEOUT_MS

    def watching(self, asks: bool) -> Heartbeats:
        """A watch with these times.

        Raises:
            LocalUsageError: they do not go together.
        """
        return Heartbeats(asks, self.interval_ms, self.timeout_ms)


FLINKS_HEARTBEAT = HeartbeatTimes()


class HeartbeatState(Enum):
    """What is known of a peer."""

    RUNNING = "alive"
    TIMED_OUT = "silent for too long"
    CANCELLED = "no longer watched"


class HeartbeatEvent(Enum):
    """What can happen to the watch over a peer."""

    HEAR = "be heard"
    SILENCE = "be silent for too long"
    STOP = "be watched no longer"


_S, _E = HeartbeatState, HeartbeatEvent

HEARTBEAT_TRANSITIONS: dict[HeartbeatState, dict[HeartbeatEvent, HeartbeatState]] = {
    _S.RUNNING: {_E.HEAR: _S.RUNNING, _E.SILENCE: _S.TIMED_OUT, _E.STOP: _S.CANCELLED},
    _S.TIMED_OUT: dict.fromkeys(_E, _S.TIMED_OUT),
    _S.CANCELLED: dict.fromkeys(_E, _S.CANCELLED),
}


@dataclass(frozen=True, slots=True)
class AskForHeartbeat:
    """Ask this peer whether it lives, with what is believed of it."""

    peer: str


@dataclass(frozen=True, slots=True)
class PeerIsSilent:
    """Nothing was heard of this peer for `silent_ms`: from now on it counts as gone."""

    peer: str
    silent_ms: float


HeartbeatDecision = AskForHeartbeat | PeerIsSilent


@dataclass(slots=True)
class _Watch:
    """One peer that is watched: what it is, and when it was heard last."""

    state: HeartbeatState
    heard_ms: float


class Heartbeats:
    """The watch over all peers of one component. Who `asks` does so every `interval_ms`; times are the driver's, in ms.

    Flink:   HeartbeatManagerImpl, HeartbeatManagerSenderImpl, HeartbeatMonitorImpl (runtime.heartbeat), 1.11.4
    Differs: every message of a peer counts, there only heartbeats and answers to them.
    """

    def __init__(
        self, asks: bool, interval_ms: float = HEARTBEAT_INTERVAL_MS, timeout_ms: float = HEARTBEAT_TIMEOUT_MS
    ) -> None:
        if not 0 < interval_ms < timeout_ms:
            raise LocalUsageError(
                f"a heartbeat's interval lies above 0 and below its timeout, got {interval_ms} and {timeout_ms} ms"
            )
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._asks = asks
        self._ask_at_ms: float | None = None
        self._watches: dict[str, _Watch] = {}

    @property
    def peers(self) -> tuple[str, ...]:
        """Those that live, as far as is known."""
        return tuple(peer for peer, watch in self._watches.items() if watch.state is HeartbeatState.RUNNING)

    def watch(self, peer: str, now_ms: float) -> None:
        """Watch a peer from now on; one that was silent, or is another under the same name, begins anew."""
        if self._asks and not self.peers:
            self._ask_at_ms = now_ms + self._interval_ms
        self._watches[peer] = _Watch(HeartbeatState.RUNNING, now_ms)

    def stop_watching(self, peer: str) -> None:
        """Whatever comes of this peer, or does not, is nothing to anybody; a peer nobody watched is fine."""
        watch = self._watches.pop(peer, None)
        if watch is not None:
            watch.state = next_state(HEARTBEAT_TRANSITIONS, watch.state, HeartbeatEvent.STOP, peer)

    def heard(self, peer: str, now_ms: float) -> bool:
        """A message of a peer has come, of any kind; false if nobody watches it, or it counts as gone."""
        watch = self._watches.get(peer)
        if watch is None:
            return False
        watch.state = next_state(HEARTBEAT_TRANSITIONS, watch.state, HeartbeatEvent.HEAR, peer)
        if watch.state is not HeartbeatState.RUNNING:
            return False
        watch.heard_ms = now_ms
        return True

    def silent_ms(self, peer: str, now_ms: float) -> float | None:
        """How long nothing was heard of a peer; `None` of one that nobody watches, or that counts as gone."""
        watch = self._watches.get(peer)
        return now_ms - watch.heard_ms if watch is not None and watch.state is HeartbeatState.RUNNING else None

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        ends = [self._watches[peer].heard_ms + self._timeout_ms for peer in self.peers]
        if self._ask_at_ms is not None and self.peers:
            ends.append(self._ask_at_ms)
        return min(ends, default=None)

    def on_timeout(self, now_ms: float) -> list[HeartbeatDecision]:
        """Tell once of each peer that was silent for too long, and ask the others if it is time."""
        decisions: list[HeartbeatDecision] = []
        for peer in self.peers:
            watch = self._watches[peer]
            if watch.heard_ms + self._timeout_ms <= now_ms:  # a difference may round to less
                watch.state = next_state(HEARTBEAT_TRANSITIONS, watch.state, HeartbeatEvent.SILENCE, peer)
                decisions.append(PeerIsSilent(peer, now_ms - watch.heard_ms))
        if self._ask_at_ms is not None and now_ms >= self._ask_at_ms:
            decisions += [AskForHeartbeat(peer) for peer in self.peers]
            self._ask_at_ms = now_ms + self._interval_ms
        return decisions
