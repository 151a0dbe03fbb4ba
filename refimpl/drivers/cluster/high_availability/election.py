"""Who leads: one that is granted a growing epoch, for as long as it renews its lease in time.

Rules of this file:
- No two clocks are compared. A leader stops when its own clock says that it has not renewed for `timeout_ms`; another
  one claims when *its* clock says that it has seen no renewal for as long. It cannot have seen one before it was made.
- A renewal counts if it was finished while the lease still held: who looks afterwards sees it.
- So a leader that was paused finds that it leads no longer by looking at its clock, before anybody has claimed.

What it did not see, between looking and acting, only the token that it acts under tells: see `Fence`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from refimpl.cluster.fencing import FencingToken
from refimpl.drivers.cluster.high_availability.leases import Lease, LeaseFolder
from refimpl.drivers.transport.few_warnings import logger
from refimpl.errors import LocalUsageError, StoreError

__all__ = ["LEASE_TIMEOUT_MS", "Granted", "LeaderElection", "Revoked"]

LEASE_TIMEOUT_MS = 3_000
_RENEWALS, _LOOKS = 3, 10  # in the time of a lease

_log = logger("sluice.drivers.cluster")


@dataclass(frozen=True, slots=True)
class Granted:
    """The leadership is this one's, under a token that nobody has had."""

    token: FencingToken


@dataclass(frozen=True, slots=True)
class Revoked:
    """The leadership under this token is over, or nobody can know that it is not."""

    token: FencingToken


@dataclass(frozen=True, slots=True)
class _Held:
    """A lease that this one has, until when, and when to renew it; in seconds of its clock."""

    lease: Lease
    until_s: float
    renew_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease of somebody, and when it was seen first as it is now."""

    lease: Lease
    since_s: float


class LeaderElection:
    """The candidate at `address` for the leadership over `name`. Whoever drives it calls `step`, and sees to the rest.

    Flink:   DefaultLeaderElectionService, ZooKeeperLeaderElectionDriver (runtime.leaderelection), 1.11.4
    """

    def __init__(
        self,
        leases: LeaseFolder,
        name: str,
        address: str,
        timeout_ms: int = LEASE_TIMEOUT_MS,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if timeout_ms < 1:
            raise LocalUsageError(f"a lease is for some time, got {timeout_ms} ms")
        self.name = name
        self.address = address
        self.next_deadline = clock_s()
        """When `step` wants to be called, in seconds of the clock."""
        self._leases = leases
        self._timeout_ms = timeout_ms
        self._clock_s = clock_s
        self._held: _Held | None = None
        self._seen: _Seen | None = None

    @property
    def leads(self) -> bool:
        """Whether the leadership is this one's at this moment. To be asked before each act, not only after `step`."""
        return self._held is not None and self._clock_s() < self._held.until_s

    def step(self) -> list[Granted | Revoked]:
        """Renew, or look whether there is something to claim. What it says has come to be true before it returns.

        Raises:
            CorruptFileError: it cannot be known who leads; this one does not.
        """
        return self._watch() if self._held is None else self._hold(self._held)

    def publish(self, token: FencingToken) -> bool:
        """Let everybody find who leads, now that it has begun; false if this is not the leadership of today.

        Raises:
            StoreError: it failed, or nobody knows.
        """
        held = self._held
        if held is None or held.lease.token != token or not self.leads:
            return False
        return self._renew(replace(held, lease=replace(held.lease, is_published=True)))

    def release(self) -> list[Revoked]:
        """Give the leadership up, so that nobody need wait for its end."""
        held, self._held = self._held, None
        if held is None:
            return []
        try:
            if self._clock_s() < held.until_s:
                self._leases.renew(replace(held.lease, is_released=True))
        except StoreError as error:
            _log.warning("the leadership over %s ends by itself, nobody could be told: %s", self.name, error)
        return [Revoked(held.lease.token)]

    # -- who leads -----------------------------------------------------------------------------------------

    def _hold(self, held: _Held) -> list[Granted | Revoked]:
        now_s = self._clock_s()
        is_over = now_s >= held.until_s
        if not is_over and now_s < held.renew_s:
            return []
        try:
            is_over = is_over or not self._renew(held)
        except StoreError as error:
            _log.warning("the leadership over %s was not renewed: %s", self.name, error)
            self.next_deadline = min(held.until_s, now_s + self._part_s(_LOOKS))
        if not is_over:
            return []
        self._held, self._seen = None, None
        self.next_deadline = now_s
        return [Revoked(held.lease.token)]

    def _renew(self, held: _Held) -> bool:
        """Write the lease again; whether that was in time, and nobody has claimed."""
        began_s = self._clock_s()
        lease = replace(held.lease, beat=held.lease.beat + 1)
        self._leases.renew(lease)
        is_newest = self._leases.newest_epoch(self.name) == lease.token.epoch
        if not is_newest or self._clock_s() >= held.until_s:
            return False
        self._has(lease, began_s)
        return True

    def _has(self, lease: Lease, began_s: float) -> None:
        self._held = _Held(lease, began_s + self._timeout_ms / 1000, began_s + self._part_s(_RENEWALS))
        self.next_deadline = self._held.renew_s

    # -- who does not --------------------------------------------------------------------------------------

    def _watch(self) -> list[Granted | Revoked]:
        looked_s = self._clock_s()
        self.next_deadline = looked_s + self._part_s(_LOOKS)
        try:
            lease = self._leases.newest(self.name)
        except BaseException:
            self._seen = None  # whatever it holds, its time begins when it can be read
            raise
        if lease is None:
            return self._claim(1)
        if self._seen is None or self._seen.lease != lease:
            self._seen = _Seen(lease, self._clock_s())
        silent_ms = (looked_s - self._seen.since_s) * 1000
        if lease.is_released or silent_ms >= lease.timeout_ms:
            return self._claim(lease.token.epoch + 1)
        return []

    def _claim(self, epoch: int) -> list[Granted | Revoked]:
        began_s = self._clock_s()
        token = FencingToken(epoch, secrets.token_bytes(16))
        lease = Lease(self.name, token, self.address, self._timeout_ms)
        if not self._leases.claim(lease):
            return []
        self._has(lease, began_s)
        if not self.leads:  # it has taken so long that another may have claimed meanwhile
            self._held = None
            return []
        return [Granted(token)]

    def _part_s(self, number: int) -> float:
        return self._timeout_ms / 1000 / number
