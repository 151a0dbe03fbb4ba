"""The TaskManagers of a simulation: their memory stays, and what is deployed on it comes and goes."""

from __future__ import annotations

from refimpl.drivers.makers import makers_of
from refimpl.drivers.recovery import JobRecovery
from refimpl.drivers.simulation.wire import Link
from refimpl.job.deployment import Deployment
from refimpl.job.execution_graph import ExecutionGraph
from refimpl.job.shuffle_environment import pool_of
from refimpl.laws.cut import CutLaw
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.trace import Trace

__all__ = ["Deployer", "links_between"]


class Deployer:
    """Makes the parts of a job, and after each failure those of the next attempts.

    `graph` is what is deployed; with `recovery` that of its next attempts, on pools that outlive each of them. `gone`
    are the TaskManagers that are no more, and when others take their places, in ms. `cuts` is told of each attempt.
    """

    def __init__(self, graph: ExecutionGraph, trace: Trace | None, recovery: JobRecovery | None) -> None:
        self.graph = graph
        self.trace = trace
        self._recovery = recovery
        numbers = range(graph.placement.num_task_managers)
        self._pools: list[NetworkBufferPool | None] = [self._new_pool() for _ in numbers]
        self.gone: dict[int, float] = {}
        self.cuts = CutLaw()

    def deploy(self, deployments: list[Deployment]) -> None:
        """Put every TaskManager's part of the job into `deployments`; those made before a failure stay there.

        Raises:
            SluiceError: the job cannot be deployed, or cannot go on from its newest checkpoint.
        """
        snapshots = None
        if self._recovery is not None:
            self.graph, snapshots = self._recovery.graph, self._recovery.snapshots()
            self.cuts.begin(self._recovery.checkpoints.recovered)
        for number, pool in enumerate(self._pools):
            makers = makers_of(self.graph.job.config, default=False)
            made = Deployment(self.graph, number, self.trace, makers=makers, pool=pool, snapshots=snapshots)
            deployments.append(made)

    def revive(self, number: int) -> None:
        """Put another TaskManager in the place of one that is gone, with memory of its own."""
        del self.gone[number]
        self._pools[number] = self._new_pool()

    def _new_pool(self) -> NetworkBufferPool | None:
        return None if self._recovery is None else pool_of(self.graph.job.config, self.trace)


def links_between(deployments: list[Deployment]) -> dict[str, Link]:
    """The connections that they need, by name."""
    links = {}
    for consumer in deployments:
        for connection_id in consumer.shuffle.remote_reads:
            link = Link(consumer, deployments[connection_id.task_manager], connection_id)
            links[link.name] = link
    return links
