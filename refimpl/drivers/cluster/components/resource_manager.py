"""A ResourceManager among the components of a process."""

from __future__ import annotations

from collections.abc import Mapping

from refimpl.cluster.fencing import FencingToken
from refimpl.cluster.heartbeat import FLINKS_HEARTBEAT, HeartbeatTimes
from refimpl.cluster.on_demand import OnDemand
from refimpl.cluster.resource_manager import ResourceManager
from refimpl.drivers.cluster.components.component_loop import ComponentLoop
from refimpl.drivers.cluster.components.workers import WorkerLauncher, Workers
from refimpl.drivers.cluster.high_availability.leaders import RESOURCE_MANAGER, Leadership
from refimpl.drivers.cluster.rpc.address import rpc_address

__all__ = ["LeadingResourceManager"]


class LeadingResourceManager:
    """The ResourceManager that leads under `token`, in the process of `loop`.

    With a `launcher` workers come by `on_demand`; else TaskManagers come by themselves.
    """

    def __init__(
        self,
        token: FencingToken,
        loop: ComponentLoop,
        heartbeat: HeartbeatTimes = FLINKS_HEARTBEAT,
        on_demand: OnDemand | None = None,
        launcher: WorkerLauncher | None = None,
    ) -> None:
        self.endpoint = ResourceManager(rpc_address(RESOURCE_MANAGER, loop.place), token, on_demand, heartbeat)
        self._workers = None if launcher is None else Workers(launcher, token.epoch)

    def leaders_are(self, leaders: Mapping[str, Leadership], now_ms: float) -> None:
        """It leads, and follows nobody."""

    def peer_is_gone(self, address: str, why: str, now_ms: float) -> None:
        self.endpoint.peer_is_gone(address, why, now_ms)

    def step(self, now_ms: float) -> None:
        """Start and end the workers that are ordered; without a launcher TaskManagers come by themselves."""
        if self._workers is None:
            return
        if lost := self._workers.num_lost(self.endpoint.peers, now_ms):
            self.endpoint.workers_lost(lost, now_ms)
        orders, self.endpoint.worker_orders = self.endpoint.worker_orders, []
        self._workers.carry_out(orders, now_ms)
