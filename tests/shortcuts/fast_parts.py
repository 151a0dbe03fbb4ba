"""Fast parts in the place of the book's, wherever a test makes them; and what a run looks like from outside."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import pytest

import refimpl.shortcuts
from refimpl.config import Config
from refimpl.consumer import NetworkInput
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Deployer
from refimpl.job import Makers, StreamEnvironment
from refimpl.memory import BufferSlice
from refimpl.shortcuts.makers import FastMakers
from refimpl.task import Task
from refimpl.trace import Trace

__all__ = ["Observed", "fast_in", "fast_parts", "observe"]


def fast_parts() -> dict[type, type]:
    """Each class of the book that has a fast one which is made of the same things, with it."""
    found: dict[type, type] = {}
    for file in pkgutil.iter_modules(refimpl.shortcuts.__path__):
        module = importlib.import_module(f"refimpl.shortcuts.{file.name}")
        for name, kind in vars(module).items():
            is_here = inspect.isclass(kind) and kind.__module__ == module.__name__ and kind.__name__ == name
            if is_here and name.startswith("Fast") and not getattr(kind, "_is_protocol", False):
                book = next(base for base in kind.__mro__[1:] if not base.__name__.startswith("Fast"))
                found[book] = kind
    return {book: kind for book, kind in found.items() if _is_made_of(book) == _is_made_of(kind)}


def _is_made_of(kind: type) -> list[str]:
    parameters = inspect.signature(kind).parameters.values()
    return [each.name for each in parameters if each.default is inspect.Parameter.empty]


@contextmanager
def fast_in(*modules: ModuleType) -> Iterator[None]:
    """Under the names of the book's parts these modules find the fast ones, and a Simulation takes shortcuts."""
    deployer = sys.modules[Deployer.__module__]
    parts, decide = fast_parts(), vars(deployer)["makers_of"]

    def makers_of(config: Config, default: bool = True) -> Makers:
        return FastMakers() if config.shortcuts is None else decide(config, default)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deployer, "makers_of", makers_of)
        for module in modules:
            for name, value in list(vars(module).items()):
                if inspect.isclass(value) and value in parts:
                    patch.setattr(module, name, parts[value])
        yield


@dataclass
class Observed:
    """What happened in a run: every event in order, the bytes and events of each channel, what came out, the counts."""

    events: list[tuple[float, str, str, dict[str, Any]]]
    channels: dict[tuple[str, int], list[object]]
    elements: list[object]
    counts: dict[str, tuple[int, ...]]
    num_steps: int


def observe(
    environment: StreamEnvironment, elements: list[object], shortcuts: bool, seed: int = 0, **options: Any
) -> Observed:
    """Run a job in the simulation; its sinks append to `elements`."""
    environment.config = replace(environment.config, shortcuts=shortcuts)
    trace, channels = Trace(capacity=1_000_000), defaultdict[tuple[str, int], list[object]](list)
    with Simulation(environment, seed=seed, trace=trace, **options) as simulation:
        tasks = [task for deployment in simulation.deployments for task in deployment.tasks]
        for task in tasks:
            if isinstance(task.input, NetworkInput):
                vars(task.input)["take"] = partial(_taken, task.input, task.input.take, channels)
        simulation.run()
    counts = {task.name: tuple(_counts_of(task)) for task in tasks}
    events = [(event.time_ms, event.kind, event.subject, event.detail) for event in trace]
    return Observed(events, dict(channels), elements, counts, simulation.num_steps)


def _counts_of(task: Task) -> Iterator[int]:
    """Records in, records out of each operator, records into each output."""
    yield task.chain.num_records_in
    yield from (task.chain.counters[node.id].num_records for node in task.chain.nodes)
    yield from (writer.num_records for writer in task.writers)


def _taken(source: NetworkInput, take: Any, channels: dict[tuple[str, int], list[object]], limit: int = 1) -> int:
    """`take`, noting what it has brought: neighbouring bytes of a channel are one piece, however they were cut."""
    num_before = len(source._taken)
    num_taken: int = take(limit)
    for channel, item in list(source._taken)[num_before:]:
        noted = channels[source.gate.name, channel]
        if not isinstance(item, BufferSlice):
            noted.append(item)
        elif noted and isinstance(noted[-1], bytes):
            noted[-1] += bytes(item.data)
        else:
            noted.append(bytes(item.data))
    return num_taken
