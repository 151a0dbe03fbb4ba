"""Other parts for tasks that run: each goes in between two steps of its task.

All are made before the first goes in, so a part that cannot be made changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from refimpl.config import Config
from refimpl.consumer.network_input import NetworkInput
from refimpl.errors import LocalUsageError
from refimpl.job.parts import Parts
from refimpl.task.operators import FunctionOperator
from refimpl.task.task import Task

__all__ = ["Change", "submit", "swapped", "swapped_function"]

Change = tuple[Task, Callable[[], None]]
"""What is to be done to a task, and when: between two of its steps."""


def swapped(
    tasks: Sequence[Task], old: Parts, parts: Mapping[str, object], config: Config
) -> tuple[Parts, Sequence[Change]]:
    """The parts of the job with `parts` in it, and what puts these into the tasks.

    Raises:
        LocalUsageError: a part that makes the graph, which is there before a job runs.
    """
    new = old.using(**parts)
    if fixed := sorted(set(parts) & {"is_chainable", "build_chains", "why_not"}):
        raise LocalUsageError(f"{fixed[0]} cannot be swapped in a running job; build it with use({fixed[0]}=...)")
    if "PipelinedSubpartition" in parts:
        new.PipelinedSubpartition(0)
    return new, [(task, change) for task in tasks for change in _changes(task, new, parts, config)]


def _changes(task: Task, new: Parts, parts: Mapping[str, object], config: Config) -> Iterable[Callable[[], None]]:
    if "SpanningRecordSerializer" in parts:
        for writer in task.writers:
            yield partial(writer.swap_serializer, new.SpanningRecordSerializer())
    if "SpillingAdaptiveSpanningRecordDeserializer" in parts and isinstance(task.input, NetworkInput):
        others = [new.SpillingAdaptiveSpanningRecordDeserializer(config) for _ in task.input.gate.channels]
        yield partial(task.input.swap_deserializers, others)
    if "PipelinedSubpartition" in parts:
        for writer in task.writers:
            yield partial(writer.partition.use, new.PipelinedSubpartition)
    if "BoundedBlockingSubpartition" in parts:
        for writer in task.writers:
            yield partial(writer.partition.use, new.BoundedBlockingSubpartition)
    if "CopyingChainingOutput" in parts:
        yield partial(task.chain.swap_copying_output, new.CopyingChainingOutput)


def swapped_function(
    tasks: Sequence[Task], operator_name: str, function: Callable[..., Any], everywhere: Iterable[str]
) -> Sequence[Change]:
    """What puts another function into the operators of this name; `everywhere` are the names in all TaskManagers.

    Raises:
        LocalUsageError: no operator of this name holds a function.
    """
    named = [(task, node.operator) for task in tasks for node in task.chain.nodes if node.context.name == operator_name]
    holders = [(task, operator) for task, operator in named if isinstance(operator, FunctionOperator)]
    is_elsewhere = not named and operator_name in everywhere
    if not holders and not is_elsewhere:
        raise LocalUsageError(f"no operator called {operator_name!r} holds a function")
    return [(task, partial(operator.swap_function, function)) for task, operator in holders]


def submit(changes: Iterable[Change]) -> None:
    """Put all in."""
    for task, change in changes:
        task.submit(change)
