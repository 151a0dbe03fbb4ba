"""Jobs from files for a cluster: their results go into files, each once."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from course.jobs.job_files import load_job
from course.jobs.keeping import interval_ms
from refimpl.batch_options import ExecutionMode
from refimpl.drivers.batch_files import BatchFileOperator, remove_partial_files
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import LocalUsageError
from refimpl.job import StreamEnvironment
from refimpl.records import ANY
from refimpl.state.layout import plain_name
from refimpl.task.operators import Operator
from refimpl.task.sink_operators import TwoPhaseSinkOperator

__all__ = ["id_for", "job_of", "lines_in"]

_DEFAULT_EVERY_MS = 1000


def job_of(name: str, results: Path, every: str | None = None, *, is_batch: bool = False) -> StreamEnvironment:
    """The job of a file; what it gives to its sink is written as lines into files in `results`, each once.

    So is what goes to a sink with `exactly_once`. A job with several such sinks has a folder for each. `every` is how
    often it keeps a checkpoint, such as `500ms`; else as the job says, else each second. One with blocking exchanges,
    as each is in mode BATCH (`is_batch`), keeps none: each subtask of a sink has one file, when it has ended.

    Raises:
        JobError: no job comes of it, and why.
        LocalUsageError: it is to keep checkpoints, and cannot.
    """
    environment = load_job(name, _nobody)
    if is_batch:
        environment.config = replace(environment.config, execution_mode=ExecutionMode.BATCH)
    has_checkpoints = not environment.execution_graph(1).job.is_batch
    if every is not None and not has_checkpoints:
        raise LocalUsageError("--every: there are no checkpoints with blocking exchanges, see explain(); leave it out")
    nodes = environment.graph.nodes
    sinks = [each for each in nodes.values() if each.sink is _nobody or each.held_sink is not None]
    for node in sinks:
        folder = results.absolute() if len(sinks) == 1 else results.absolute() / plain_name(node.name)
        files = FileSink(folder, _line)
        if has_checkpoints:
            make: Callable[[], Operator] = partial(TwoPhaseSinkOperator, files, ANY)
            clean_up = files.job_finished
        else:
            make, clean_up = partial(BatchFileOperator, folder, _line), partial(remove_partial_files, folder)
        nodes[node.id] = replace(node, sink=None, held_sink=None, make_operator=make, on_job_finished=clean_up)
    every_ms = environment.config.checkpoint_interval_ms or _DEFAULT_EVERY_MS if has_checkpoints else 0
    if every is not None:
        every_ms = interval_ms(every)
    environment.config = replace(environment.config, checkpoint_interval_ms=every_ms)
    return environment


def id_for(name: str) -> str:
    """An id that no other job has, from the name of its file."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(name.partition(":")[0]).stem).strip("-")[:40]
    return f"{stem or 'job'}-{secrets.token_hex(3)}"


def lines_in(results: Path) -> list[str]:
    """The results that count, sorted."""
    files = [each for each in results.rglob("*") if each.is_file() and not each.name.startswith(".")]
    return sorted(line for each in files for line in each.read_text(encoding="utf-8").splitlines())


def _nobody(result: object) -> NoReturn:
    """Stands for the sink until the job is made."""
    raise LocalUsageError(
        f"{result!r:.80} comes to no file: in a cluster a job gives its results to its sink by `.sink(sink)` itself"
    )


def _line(value: object) -> bytes:
    return f"{value!r}\n".encode(errors="backslashreplace")
