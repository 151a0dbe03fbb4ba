"""A ResourceManager among the components of a process."""

from __future__ import annotations

from collections.abc import Mapping

from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, HeartbeatTimes
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.drivers.cluster.component_loop import ComponentLoop
from refimpl.drivers.cluster.leaders import RESOURCE_MANAGER, Leadership
from refimpl.drivers.cluster.rpc_address import rpc_address

__all__ = ["LeadingResourceManager"]


class LeadingResourceManager:
    """The one that leads under `token`, in the process of `loop`."""

    def __init__(self, token: FencingToken, loop: ComponentLoop, heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT) -> None:
        self.endpoint = ResourceManager(rpc_address(RESOURCE_MANAGER, loop.place), token, heartbeat=heartbeat)

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        """It leads, and follows nobody."""

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        self.endpoint.peer_is_gone(address, why, now_ms)

    def step(self, now_ms: float) -> None:
        """Slots without a launcher come by themselves."""
