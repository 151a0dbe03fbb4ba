"""What a TaskManager of a cluster makes of the tasks that it is sent; what the cluster's drivers share of that."""

from __future__ import annotations

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.messages import RestoreFrom
from refimpl.cluster.task_units import TaskUnit, addresses_of, graph_of
from refimpl.drivers.makers import makers_of
from refimpl.drivers.restore_point import RestorePoint
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.deployment import Deployment
from refimpl.job.job_graph import JobGraph
from refimpl.memory.network_pool import NetworkBufferPool
from refimpl.state.layout import JobStore
from refimpl.state.soundness import read_manifest
from refimpl.state.store import SnapshotStore
from refimpl.trace import Trace

__all__ = ["deploy_unit", "executions_of", "restore_point_of"]


def deploy_unit(
    job: JobGraph,
    unit: TaskUnit,
    address: str,
    pool: NetworkBufferPool,
    store: SnapshotStore | None = None,
    trace: Trace | None = None,
    results: BlockingResults | None = None,
) -> Deployment:
    """The tasks of a unit on the memory of the TaskManager at `address`, with what they go on from.

    `results` are the blocking ones of the job there, whoever has written them.

    The store is asked. Where the job does not say, its parts are the plain ones.

    Raises:
        SluiceError: they cannot be made, or cannot go on from their checkpoint; nothing is left behind.
    """
    graph = graph_of(job, unit.task)
    number = addresses_of(unit.task).index(address)
    region = [each.place for each in unit.tasks]
    snapshots = None
    if unit.task.restore is not None and store is not None and not job.is_batch:  # there are no checkpoints
        here = [each for each in graph.vertices if (each.vertex.id, each.subtask) in region]
        snapshots = restore_point_of(unit.task.restore, store).snapshots(store, graph, here)
    makers = makers_of(job.config, default=False)
    return Deployment(
        graph, number, trace, makers=makers, pool=pool, snapshots=snapshots, results=results, region=region
    )


def executions_of(unit: TaskUnit, deployment: Deployment) -> dict[str, ExecutionId]:
    """The attempts of a unit by the names of their tasks."""
    by_place = {each.place: each for each in unit.tasks}
    names = {each.name: (each.vertex.id, each.subtask) for each in deployment.graph.vertices}
    return {task.name: by_place[names[task.name]] for task in deployment.tasks}


def restore_point_of(restore: RestoreFrom, store: SnapshotStore) -> RestorePoint:
    """What attempts go on from, with the manifest: the store is asked.

    Raises:
        CorruptFileError, StoreError: the manifest is damaged, or the store did not answer.
    """
    manifest = None if restore.manifest is None else read_manifest(JobStore(store, restore.job), restore.manifest)
    return RestorePoint(restore.job, restore.attempt, manifest, restore.trust_pickle)
