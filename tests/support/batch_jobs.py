"""A small job of three tasks with two exchanges, for runs region by region."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from refimpl.batch_options import ExecutionMode
from refimpl.config import Config
from refimpl.job import StreamEnvironment
from refimpl.task.source import IterableReader

__all__ = ["NUM", "batch_config", "expected", "files_in", "words"]

NUM = 60


def words(config: Config, found: list[tuple[str, int]], num_read: Counter[int] | None = None) -> StreamEnvironment:
    """Numbers by two sources → dealt out to three of the next → all to one sink.

    `num_read` counts how often each subtask of the source has begun to read.
    """
    read: Counter[int] = Counter() if num_read is None else num_read
    environment = StreamEnvironment(config, 2)

    def numbers(subtask: int, of: int) -> Iterator[int]:
        read[subtask] += 1
        yield from range(subtask, NUM, of)

    source = environment.source(lambda subtask, of: IterableReader(numbers(subtask, of)), "numbers")
    paired = source.shuffle().map(lambda n: (f"digit {n % 10}", n), "pair").set_parallelism(3)
    paired.rebalance().sink(found.append).set_parallelism(1)
    return environment


def expected() -> list[tuple[str, int]]:
    """What `words` leads to, sorted."""
    return sorted((f"digit {n % 10}", n) for n in range(NUM))


def batch_config(tmp_path: Path, **options: object) -> Config:
    """Small buffers, and files under `tmp_path`; in mode BATCH, unless `options` say something else."""
    chosen: dict[str, object] = {"execution_mode": ExecutionMode.BATCH, "spill_directory": str(tmp_path)}
    return Config(**chosen | {"segment_size_bytes": 64, "num_buffers": 64} | options)  # type: ignore[arg-type]


def files_in(path: Path) -> list[Path]:
    """All files below `path`, also while somebody removes folders there."""
    return [Path(folder) / name for folder, _folders, names in os.walk(path) for name in names]
