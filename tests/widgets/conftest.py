"""Small jobs for the tests of the views."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.job import StreamEnvironment
from refimpl.task import IterableReader, TumblingWindows
from tests.support.small_jobs import Count
from widgets import Recording


def two_by_two(num_records: int = 40, on_result: Callable[[object], object] = bool) -> StreamEnvironment:
    """Two sources, keyed to two windows, buffers of 64 bytes."""
    environment = StreamEnvironment(Config(segment_size_bytes=64, num_buffers=12, source_batch=1), 2)
    (
        environment.source(lambda i, n: IterableReader(range(i, num_records, n)))
        .assign_timestamps(lambda value: value * 1_000, 0)
        .key_by(lambda value: value % 5)
        .window(TumblingWindows(10_000))
        .aggregate(Count())
        .sink(on_result)
    )
    return environment


@pytest.fixture
def job() -> Callable[..., StreamEnvironment]:
    return two_by_two


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(two_by_two(), seed=3) as simulation:
        yield simulation


@pytest.fixture
def recording() -> Recording:
    with Simulation(two_by_two(), seed=3) as simulation:
        return Recording.of(simulation)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds user code until it is set; set at the end in any case."""
    event = threading.Event()
    yield event
    event.set()
