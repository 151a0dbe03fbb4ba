"""Who leads what, for all to find: the addresses and tokens that leaders have published."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from refimpl.cluster.fencing import FencingToken

__all__ = ["DISPATCHER", "RESOURCE_MANAGER", "Leaders", "Leadership", "MemoryLeaders", "job_master_of"]

RESOURCE_MANAGER = "resource-manager"
DISPATCHER = "dispatcher"

Leadership = tuple[str, FencingToken]
"""The address of a leader, and its token."""


def job_master_of(job_id: str) -> str:
    """What the leadership over a job is called."""
    return f"job-{job_id}"


class Leaders(Protocol):
    """Where leaders are published.

    Flink:   LeaderRetrievalService, LeaderElectionService (runtime.leaderretrieval, runtime.leaderelection), 1.11.4
    """

    def publish(self, name: str, leadership: Leadership) -> None:
        """Let everybody find a leader."""

    def withdraw(self, name: str, token: FencingToken) -> None:
        """This leader leads no more; of another one nothing is touched."""

    def all(self) -> Mapping[str, Leadership]:
        """Those that were published last, by name."""


class MemoryLeaders:
    """Leaders of one process; whoever claims last leads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epochs: dict[str, int] = {}
        self._published: dict[str, Leadership] = {}

    def claim(self, name: str) -> FencingToken:
        """A new leadership, newer than all before."""
        with self._lock:
            epoch = self._epochs[name] = self._epochs.get(name, 0) + 1
        return FencingToken(epoch, name.encode().ljust(16, b".")[:16])

    def publish(self, name: str, leadership: Leadership) -> None:
        with self._lock:
            known = self._published.get(name)
            if known is None or known[1].epoch <= leadership[1].epoch:
                self._published[name] = leadership

    def withdraw(self, name: str, token: FencingToken) -> None:
        with self._lock:
            if name in self._published and self._published[name][1] == token:
                del self._published[name]

    def all(self) -> Mapping[str, Leadership]:
        with self._lock:
            return dict(self._published)
