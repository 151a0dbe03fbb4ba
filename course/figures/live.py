"""The live jobs of the lessons: each runs while somebody looks at it, and ends by itself.

A page that has no kernel, and a notebook that is run without a browser, show one moment of the same job, out of the
simulation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import count, repeat
from typing import Any, TypeVar

from course.data.flights_job import flights_job
from course.data.sample import sample_flights
from course.figures.channels import FULL_RECORD, SEGMENT_BYTES
from course.places import IN_A_BROWSER
from refimpl.config import Config
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES, LONG
from refimpl.task import IterableReader, ReaderFactory
from widgets import CreditView, OnSight, PipelineMap, QueueView

__all__ = ["endless_flights", "live_credit", "live_flights", "live_queues", "live_readers", "live_start", "shown_alone"]

_SECONDS = 600.0
_NUM_FLIGHTS = 2_000
_DAYS_OF_THEM = 3
_DAY_MS = 86_400_000
_REST_MS = 20
_LARGE_BYTES = 32_768  # a connection holds some hundred of them, and thousands of small ones, before it is full

_Record = TypeVar("_Record")
_shown: dict[str, OnSight] = {}


def shown_alone(name: str, job: OnSight | None) -> None:
    """End the job that was shown under this name before, as a cell may be run again; `job` comes after it."""
    before = _shown.pop(name, None)
    if before is not None:
        before.cancel()
    if job is not None and IN_A_BROWSER:
        print("○ This job runs on threads, which a browser does not have: below is one moment of it.")
    if job is not None:
        _shown[name] = job


def endless_flights() -> ReaderFactory:
    """The flights of the year's first days over and over, in event time one after the other; for ten minutes."""
    flights = sample_flights(_NUM_FLIGHTS)

    def read(subtask: int, of: int) -> IterableReader:
        return IterableReader(_for_a_while(_later(flight, n) for n in count() for flight in flights[subtask::of]))

    return read


def _later(flight: dict[str, Any], times: int) -> dict[str, Any]:
    return {**flight, "event_time_ms": flight["event_time_ms"] + times * _DAYS_OF_THEM * _DAY_MS}


def _for_a_while(records: Iterable[_Record]) -> Iterator[_Record]:
    """The records, until ten minutes have passed: a job that nobody ends does not run for ever."""
    started_s = time.monotonic()
    for record in records:
        if time.monotonic() - started_s > _SECONDS:
            return
        yield record


def _ignore(_value: object) -> None: ...


def live_flights() -> PipelineMap:
    """The job of lesson 0; `hourly` can be slowed, as can every other operator."""
    config = Config(segment_size_bytes=64, num_buffers=32, source_batch=2, object_reuse=True)
    job = OnSight(
        flights_job(endless_flights(), _ignore, config), num_steps=50, rests={"hourly": _REST_MS, "flights": _REST_MS}
    )
    shown_alone("flights", job)
    return PipelineMap(job, title="Flights, all day")


def live_start() -> QueueView:
    """Flights to two readers, which are held with one button; their queues have room for two seconds."""
    config = Config(
        segment_size_bytes=128, num_buffers=64, buffers_per_channel=2, floating_buffers_per_gate=24, source_batch=1
    )
    environment = StreamEnvironment(config)
    environment.source(endless_flights(), "flights").rebalance().sink(_ignore).set_parallelism(2)
    job = OnSight(environment, num_steps=60, rests={"sink": _REST_MS, "flights": 4 * _REST_MS})
    shown_alone("start", job)
    return QueueView(job, title="Flights on their way to a sink")


def live_queues() -> QueueView:
    """Readings that one task deals out to two others in the same TaskManager."""
    environment = StreamEnvironment(Config(segment_size_bytes=SEGMENT_BYTES, num_buffers=16, source_batch=2))
    readings = environment.source(lambda *_: IterableReader(_for_a_while(count())), "readings", LONG)
    readings.rebalance().sink(_ignore, "board").set_parallelism(2)
    job = OnSight(environment, num_steps=36, rests={"board": _REST_MS, "readings": _REST_MS})
    shown_alone("queues", job)
    return QueueView(job, title="Two tasks read, one writes")


def live_readers(*, credit_based: bool) -> QueueView:
    """The four readers of lesson 10 on one connection, with large buffers."""
    config = Config(
        segment_size_bytes=_LARGE_BYTES, num_buffers=64, credit_based=credit_based, source_batch=1, buffer_timeout_ms=-1
    )
    job = OnSight(_two_machines(config, 4), 2, num_steps=200, rests={"sink-0": _REST_MS, "source": _REST_MS})
    shown_alone("readers", job)
    return QueueView(job, title=f"Four readers, one connection, {'with' if credit_based else 'without'} credits")


def live_credit(own: int, floating: int) -> CreditView:
    """The one channel of lesson 11."""
    config = Config(
        segment_size_bytes=SEGMENT_BYTES,
        num_buffers=32,
        buffers_per_channel=own,
        floating_buffers_per_gate=floating,
        source_batch=1,
        buffer_timeout_ms=-1,
    )
    job = OnSight(_two_machines(config, 1), 2, num_steps=50, rests={"sink": _REST_MS, "source": _REST_MS})
    shown_alone("credit", job)
    return CreditView(job, title=f"One channel, {own} own buffers, {floating} floating")


def _two_machines(config: Config, parallelism: int) -> StreamEnvironment:
    """Sources on one TaskManager, each with a sink of its own on the other; each record fills a buffer."""
    record = FULL_RECORD + bytes(config.segment_size_bytes - SEGMENT_BYTES)
    environment = StreamEnvironment(config, parallelism)
    source = environment.source(lambda *_: IterableReader(_for_a_while(repeat(record))), "source", BYTES)
    source.slot_sharing_group("producers").sink(_ignore).slot_sharing_group("consumers")
    return environment
