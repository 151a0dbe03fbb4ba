"""Whom a component knows, and how: who it is registered with, who has registered with it, and when it heard of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import Heartbeats
from refimpl.cluster.registration import Registration, RegistrationState

__all__ = ["PeerLink", "links_of_peers", "links_to_leaders"]


@dataclass(frozen=True, slots=True)
class PeerLink:
    """A peer as one component knows it: its address, and the epoch of the leadership, or life, that is meant.

    `state` is how far the registration with it is; `None` if it is the other that has registered. `silent_ms` is how
    long nothing was heard of it, `None` while nobody watches it.
    """

    address: str
    epoch: int
    state: RegistrationState | None
    silent_ms: float | None


def links_to_leaders(
    registrations: Iterable[Registration], heartbeats: Heartbeats, now_ms: float
) -> tuple[PeerLink, ...]:
    """The leaders that a component has heard of, in the order of its registrations."""
    found = []
    for each in registrations:
        if each.leader is not None:
            address, token = each.leader
            found.append(PeerLink(address, token.epoch, each.state, heartbeats.silent_ms(address, now_ms)))
    return tuple(found)


def links_of_peers(peers: Mapping[str, FencingToken], heartbeats: Heartbeats, now_ms: float) -> tuple[PeerLink, ...]:
    """Those that have registered with a component, the first one first."""
    return tuple(
        PeerLink(address, token.epoch, None, heartbeats.silent_ms(address, now_ms)) for address, token in peers.items()
    )
