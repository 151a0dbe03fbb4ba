"""The leaders of a cluster as its lease folder has them, read on a thread of its own again and again."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.high_availability.leaders import Leadership
from refimpl.drivers.cluster.high_availability.leases import Lease, LeaseFolder
from refimpl.drivers.transport.few_warnings import logger
from refimpl.errors import CorruptFileError, StoreError

__all__ = ["StoredLeaders"]

_SECONDS_BETWEEN_LOOKS = 0.2
_NO_TIMEOUT_MS = 1

_log = logger("sluice.drivers.cluster")


class StoredLeaders:
    """Leaders that were published in `leases`. What is led by election is published there by who is elected.

    Who leads a job is published by `publish`: that it leads is for the store of its checkpoints to say, not for this.

    Flink:   DefaultLeaderRetrievalService (runtime.leaderretrieval), 1.11.4
    Differs: asked again and again; there ZooKeeper calls.
    """

    def __init__(self, leases: LeaseFolder) -> None:
        self._leases = leases
        self._known: Mapping[str, Leadership] = {}
        self._is_closed = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="leaders", daemon=True)
        self._thread.start()

    def publish(self, name: str, leadership: Leadership) -> None:
        address, token = leadership
        try:
            self._leases.claim(Lease(name, token, address, _NO_TIMEOUT_MS, is_published=True))
        except StoreError as error:
            _log.warning("nobody can find who leads %s: %s", name, error)

    def withdraw(self, name: str, token: FencingToken) -> None:
        try:
            if self._leases.newest_epoch(name) == token.epoch:
                self._leases.forget(name)
        except StoreError as error:
            _log.warning("that nobody leads %s any more is not known: %s", name, error)

    def all(self) -> Mapping[str, Leadership]:
        return self._known

    def close(self) -> None:
        """Look no more."""
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed.wait(_SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        """What cannot be read stays as it was."""
        found: dict[str, Leadership] = {}
        try:
            for name in self._leases.names():
                lease = self._leases.newest(name)
                if lease is not None and lease.is_published and not lease.is_released:
                    found[name] = (lease.address, lease.token)
        except (StoreError, CorruptFileError) as error:
            _log.warning("it cannot be known who leads: %s", error)
            return
        self._known = found
