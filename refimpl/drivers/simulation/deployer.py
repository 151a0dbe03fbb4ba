"""The TaskManagers of a simulation: their memory stays, and what is deployed on it comes and goes."""

from __future__ import annotations

from refimpl.drivers.makers import makers_of
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.simulation.regions import SimulatedRegions
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.shuffle_environment import pool_of
from refimpl.laws.capture import CaptureLaw
from refimpl.laws.cut import CutLaw
from refimpl.laws.memory import check_given_back
from refimpl.laws.state import StateLaw
from refimpl.laws.timers import TimersLaw
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.trace import Trace

__all__ = ["Deployer"]


class Deployer:
    """Makes the parts of a job, and after each failure those of the next attempts.

    `graph` is what is deployed; with `recovery` that of its next attempts, on pools that outlive each of them. `gone`
    are the TaskManagers that are no more, and when others take their places, in ms. `cuts`, `captures` and `timers` are
    told of each attempt. With `regions` it is these that deploy, one after the other. Where it `is_watched`, by laws
    after each step, states are compared with those at the cut.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        trace: Trace | None,
        recovery: JobRecovery | None,
        regions: SimulatedRegions | None = None,
        *,
        is_watched: bool = False,
    ) -> None:
        self.graph = graph
        self.is_watched = is_watched
        self.trace = trace
        self.regions = regions
        self._recovery = recovery
        numbers = range(graph.placement.num_task_managers)
        self._pools: list[NetworkBufferPool | None] = [self._new_pool() for _ in numbers]
        self.gone: dict[int, float] = {}
        self.cuts = CutLaw()
        self.captures = CaptureLaw()
        self.timers = TimersLaw()
        self._states: StateLaw | None = None
        if recovery is not None:
            self._states = StateLaw(recovery.store, recovery.checkpoints.leader.store.job)

    def deploy(self, deployments: list[Deployment]) -> None:
        """Put every TaskManager's part of the job into `deployments`; those made before a failure stay there.

        Raises:
            SluiceError: the job cannot be deployed, or cannot go on from its newest checkpoint.
        """
        snapshots = None
        if self._recovery is not None:
            self.graph, snapshots = self._recovery.graph, self._recovery.snapshots()
            self.cuts.begin(self._recovery.checkpoints.recovered)
        self.captures.begin()
        self.timers.begin()
        for number, pool in enumerate(self._pools):
            makers = makers_of(self.graph.job.config, default=False)
            made = Deployment(self.graph, number, self.trace, makers=makers, pool=pool, snapshots=snapshots)
            deployments.append(made)
        if self._recovery is not None and self._states is not None and self.is_watched:
            self._states.begin(self._recovery.checkpoints.recovered, deployments)

    def check_given_back(self) -> None:
        """After a failure: nothing of the attempts that are no more is left in the pools that outlive them."""
        check_given_back(*(pool for number, pool in enumerate(self._pools) if pool and number not in self.gone))

    def revive(self, number: int) -> None:
        """Put another TaskManager in the place of one that is gone, with memory of its own."""
        del self.gone[number]
        self._pools[number] = self._new_pool()

    def _new_pool(self) -> NetworkBufferPool | None:
        return None if self._recovery is None else pool_of(self.graph.job.config, self.trace)
