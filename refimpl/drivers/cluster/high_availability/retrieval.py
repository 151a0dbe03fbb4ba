"""Who leads what, for those who want to speak with it."""

from __future__ import annotations

from dataclasses import dataclass

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.high_availability.leases import LeaseFolder
from refimpl.drivers.transport.few_warnings import logger
from refimpl.errors import CorruptFileError, StoreError

__all__ = ["LeaderIs", "LeaderRetrieval", "NobodyLeads"]

_log = logger("sluice.drivers.cluster")


@dataclass(frozen=True, slots=True)
class LeaderIs:
    """`name` is led by `address` under this token."""

    name: str
    address: str
    token: FencingToken


@dataclass(frozen=True, slots=True)
class NobodyLeads:
    """The leader of `name` has given it up, and no other has begun."""

    name: str


class LeaderRetrieval:
    """The leaders of the names that are watched. Each is told of once; one that is overtaken at once perhaps never.

    Flink:   DefaultLeaderRetrievalService (runtime.leaderretrieval), 1.11.4
    Differs: asked again and again; there ZooKeeper calls.
    """

    def __init__(self, leases: LeaseFolder) -> None:
        self._leases = leases
        self._told: dict[str, LeaderIs | NobodyLeads] = {}

    def watch(self, name: str) -> None:
        """Tell who leads this, from now on; watched again it is told again."""
        self._told[name] = NobodyLeads(name)

    def unwatch(self, name: str) -> None:
        """Say no more of it."""
        self._told.pop(name, None)

    def step(self) -> list[LeaderIs | NobodyLeads]:
        """What has changed. What cannot be read is no change."""
        changes = []
        for name, told in list(self._told.items()):
            try:
                found = self._look(name, told)
            except (CorruptFileError, StoreError) as error:
                _log.warning("it cannot be known who leads %s: %s", name, error)
                continue
            if found != told:
                self._told[name] = found
                changes.append(found)
        return changes

    def _look(self, name: str, told: LeaderIs | NobodyLeads) -> LeaderIs | NobodyLeads:
        lease = self._leases.newest(name)
        if lease is None or lease.is_released:
            return NobodyLeads(name)
        if not lease.is_published:
            return (
                told  # about to lead; who led before has yet to hear of it, perhaps, and is refused by those who have
            )
        return LeaderIs(name, lease.address, lease.token)
