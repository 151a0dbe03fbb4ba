"""What the regions of one job share on a TaskManager whose tasks run on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from refimpl.config import Config
from refimpl.drivers.threads.task_manager import RegionPlace
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.job_graph import Place
from refimpl.job.shuffle_environment import pool_of
from refimpl.memory.network_pool import NetworkBufferPool

__all__ = ["JobMemory"]


class JobMemory:
    """The network memory of a job, its blocking results and the monitor for both, from its first region on.

    Flink:   TaskExecutor, NettyShuffleEnvironment (runtime.taskexecutor, runtime.io.network), 1.11.4
    Differs: there all jobs share the memory of the TaskManager.
    """

    def __init__(self, make_results: Callable[[Config], BlockingResults] = BlockingResults) -> None:
        self._make_results = make_results
        self._lock = threading.Lock()
        self._shared: tuple[NetworkBufferPool, RegionPlace] | None = None

    def of(self, region: frozenset[Place], config: Config) -> tuple[NetworkBufferPool, RegionPlace]:
        """What is for a region of a job with this configuration.

        Raises:
            ConfigError: the job compresses, and the library for that is not there.
        """
        with self._lock:
            if self._shared is None:
                place = RegionPlace(threading.RLock(), self._make_results(config), frozenset())
                self._shared = pool_of(config, None), place
            pool, place = self._shared
        return pool, replace(place, region=region)

    def drop(self, results: Iterable[ResultPartitionId]) -> None:
        """Nobody needs these results any more."""
        if self._shared is not None:
            _, place = self._shared
            with place.monitor:
                for each in results:
                    place.results.release(each)
