"""Clusters of which something is to be seen: a job of numbers runs on three TaskManagers."""

from __future__ import annotations

import functools

from refimpl.cluster import ClusterSnapshot, FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers.cluster_simulation import DISPATCHER, RESOURCE_MANAGER, ClusterSimulation
from refimpl.job import StreamEnvironment
from tests.support.cluster_worlds import is_running

__all__ = ["JOB", "numbers_cluster", "small_cluster"]

JOB = "numbers"


def numbers_cluster(num_records: int = 100_000) -> ClusterSimulation:
    """The job has begun, and begins again whenever it can; the laws are others' business."""
    config = Config(segment_size_bytes=64, num_buffers=60, source_batch=1, checkpoint_interval_ms=4)
    cluster = ClusterSimulation(3, 2, seed=1, config=config, check_every=0)
    cluster.run(lambda run: DISPATCHER in run.members.alive)
    environment = StreamEnvironment(config, 2)
    environment.from_collection(range(num_records), name="numbers").rebalance().map(str, "text").rebalance().sink(bool)
    cluster.submit(JOB, environment, lambda: FixedDelayRestart(99, 5.0))
    return cluster.run(is_running)


@functools.cache
def small_cluster() -> ClusterSnapshot:
    """One moment: a TaskManager is gone, and a former leader goes on."""
    cluster = numbers_cluster()
    cluster.run(lambda run: run.snapshot().jobs[0].completed)
    cluster.crash("tm-0")
    cluster.members.pause(RESOURCE_MANAGER)
    cluster.run(lambda run: any(not each.is_current for each in run.snapshot().members))
    cluster.members.resume(RESOURCE_MANAGER)
    return cluster.snapshot()
