"""Where the TaskManagers of a run keep their blocking results, and by which code these are compressed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from refimpl.batch_options import BoundedDataKind
from refimpl.config import Config
from refimpl.drivers.bounded_files import FileBoundedData, MappedBoundedData, ResultFolder, WrittenMapBoundedData
from refimpl.drivers.codecs import codec_of
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.blocking_results import BlockingResults
from refimpl.job.execution_graph import ExecutionGraph, ExecutionVertex
from refimpl.producer.bounded_data import BoundedData

__all__ = ["ResultFiles", "result_folder", "results_in", "results_of"]

_KINDS: Mapping[BoundedDataKind, Callable[[Path, int], BoundedData]] = {
    BoundedDataKind.FILE: FileBoundedData,
    BoundedDataKind.FILE_MMAP: MappedBoundedData,
    BoundedDataKind.MMAP: WrittenMapBoundedData,
}


class ResultFiles:
    """The folder of a run, with one of `results` for each of its TaskManagers; all goes with `close`.

    The folder is in the temporary directory of the job. What a run that was killed has left there goes first.

    Raises:
        ConfigError: the job compresses, and the library for that is not there.
    """

    def __init__(self, config: Config, num_task_managers: int) -> None:
        codec_of(config.compression)
        self._folder = result_folder(config)
        self.results = [results_in(self._folder.path / f"tm-{number}", config) for number in range(num_task_managers)]

    def has_results_of(self, graph: ExecutionGraph, execution: ExecutionVertex) -> bool:
        """Whether all that an attempt has written for who reads it later is here, and complete."""
        results = self.results[execution.task_manager]
        found = [results.find(each) for each in results_of(graph, execution)]
        return all(each is not None and each.is_finished for each in found)

    def close(self) -> None:
        """Drop all results, and the folder with what is left in it."""
        for each in self.results:
            each.close()
        self._folder.close()


def result_folder(config: Config) -> ResultFolder:
    """The folder of a run, in the temporary directory of the job. What a run that was killed has left there goes."""
    parent = Path(config.spill_path) / f"sluice-results-{os.getuid()}"  # nobody sweeps what is another user's
    return ResultFolder(parent, f"{os.getpid()}-{secrets.token_hex(8)}")


def results_in(path: Path, config: Config) -> BlockingResults:
    """The results of a TaskManager, in a folder of its own, which is made.

    Raises:
        ConfigError: the job compresses, and the library for that is not there.
    """
    path.mkdir()
    return BlockingResults(config, partial(_made, config, path), codec_of(config.compression))


def results_of(graph: ExecutionGraph, execution: ExecutionVertex) -> list[ResultPartitionId]:
    """The blocking results that an attempt writes."""
    return [
        graph.partition_id(index, execution)
        for index, edge in enumerate(graph.job.edges)
        if edge.is_blocking and edge.source == execution.vertex.id
    ]


def _made(config: Config, path: Path, name: str) -> BoundedData:
    return _KINDS[config.bounded_data](path / name, config.segment_size_bytes)
