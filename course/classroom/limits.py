"""How often somebody may ask: a bucket of tokens for each, and room for a bounded number of buckets."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

__all__ = ["Limit", "Limiter", "network_of"]


@dataclass(frozen=True, slots=True)
class Limit:
    """`burst` at once, and `per_second` of them in the long run."""

    burst: float
    per_second: float


class Limiter:
    """Buckets by key. A key that was not used for longest is forgotten first, so that keys cost bounded memory."""

    def __init__(self, limit: Limit, max_keys: int = 4_096) -> None:
        self._limit = limit
        self._max_keys = max_keys
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable, now: float, cost: float = 1.0) -> float:
        """Take from the key's bucket: 0.0 if it held enough, else nothing is taken, and in so many seconds it will."""
        held = self._held(key, now)
        wait_s = max(0.0, (cost - held) / self._limit.per_second)
        self._keep(key, held if wait_s else held - cost, now)
        return wait_s

    def wait_s(self, key: Hashable, now: float) -> float:
        """What `take` would answer; takes nothing."""
        return max(0.0, (1.0 - self._held(key, now)) / self._limit.per_second)

    def _held(self, key: Hashable, now: float) -> float:
        held, since = self._buckets.get(key, (self._limit.burst, now))
        return min(self._limit.burst, held + max(0.0, now - since) * self._limit.per_second)

    def _keep(self, key: Hashable, held: float, now: float) -> None:
        self._buckets[key] = (held, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)


def network_of(address: str) -> str:
    """Who asks, as far as an address says: whoever has one of IPv6 has all 2**64 of its network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found), 64), strict=False))
