"""A record goes one way: the parts that lessons teach are called for each of them, and so is a learner's part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.config import Config
from refimpl.drivers import AsyncRun, ProcessRun, Simulation, ThreadedRun
from refimpl.job import StreamEnvironment
from refimpl.producer import PipelinedSubpartition
from refimpl.records import (
    ANY,
    LONG,
    STRING,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
    TupleType,
    TypeSerializer,
)
from refimpl.task import CopyingChainingOutput

NUM_RECORDS = 1_000

VALUES: dict[str, tuple[TypeSerializer, Callable[[int], object]]] = {
    "any": (ANY, lambda number: number),
    "long": (LONG, lambda number: number),
    "pair": (TupleType(LONG, LONG), lambda number: (number, -number)),
    "text": (STRING, str),
}


# -- the reference parts, in a Simulation ------------------------------------------------------------


@pytest.mark.parametrize("segment", [32_768, 16])
@pytest.mark.parametrize("kind", VALUES)
def test_in_a_simulation_the_parts_of_lessons_3_and_4_are_called_for_each_record(
    monkeypatch: pytest.MonkeyPatch, kind: str, segment: int
) -> None:
    calls = {"serialize_record": 0, "get_next_record": 0}

    def count(part: type, name: str) -> None:
        method = getattr(part, name)

        def counted(self: object, *arguments: object) -> object:
            calls[name] += 1
            return method(self, *arguments)

        monkeypatch.setattr(part, name, counted)

    count(SpanningRecordSerializer, "serialize_record")
    count(SpillingAdaptiveSpanningRecordDeserializer, "get_next_record")
    value_type, value_of = VALUES[kind]
    values, results = [value_of(number) for number in range(NUM_RECORDS)], list[object]()
    environment = StreamEnvironment(Config(segment_size_bytes=segment, num_buffers=64))
    environment.from_collection(values, type=value_type).rebalance().sink(results.append)
    Simulation(environment, check_every=0).run()
    assert results == values
    assert calls["serialize_record"] >= NUM_RECORDS
    assert calls["get_next_record"] >= NUM_RECORDS


# -- a learner's parts, in every driver --------------------------------------------------------------


class Serializer(SpanningRecordSerializer):
    num_calls = 0

    def serialize_record(self, record: bytes) -> None:
        Serializer.num_calls += 1
        super().serialize_record(record)


class Deserializer(SpillingAdaptiveSpanningRecordDeserializer):
    num_calls = 0

    def get_next_record(self) -> Any:
        Deserializer.num_calls += 1
        return super().get_next_record()


class Subpartition(PipelinedSubpartition):
    num_calls = 0

    def add(self, *arguments: Any) -> Any:
        Subpartition.num_calls += 1
        return super().add(*arguments)


class Output(CopyingChainingOutput):
    num_calls = 0

    def collect(self, record: Any) -> None:
        Output.num_calls += 1
        super().collect(record)


PARTS: dict[str, Any] = {
    "SpanningRecordSerializer": Serializer,
    "SpillingAdaptiveSpanningRecordDeserializer": Deserializer,
    "PipelinedSubpartition": Subpartition,
    "CopyingChainingOutput": Output,
}

COUNTED = TupleType(LONG, LONG, LONG, LONG, LONG)
RECORD_BYTES = 4 + 1 + 5 * 8
SEGMENT_BYTES = 64


def counted_where_it_is_written(number: int) -> tuple[int, ...]:
    return number, Serializer.num_calls, Subpartition.num_calls, Output.num_calls, 0


def counted_where_it_is_read(value: tuple[int, ...]) -> tuple[int, ...]:
    return *value[:4], Deserializer.num_calls


def counting_job(results: list[Any], **options: Any) -> StreamEnvironment:
    """Each record says how often each part has been called before it."""
    for part in PARTS.values():
        part.num_calls = 0
    environment = StreamEnvironment(Config(segment_size_bytes=SEGMENT_BYTES, num_buffers=400, **options))
    written = environment.from_collection(range(NUM_RECORDS), type=LONG).map(
        counted_where_it_is_written, "written", COUNTED
    )
    read = written.rebalance().map(counted_where_it_is_read, "read", COUNTED).slot_sharing_group("far")
    read.sink(results.append).slot_sharing_group("far")
    return environment


def check_counts(results: list[Any]) -> None:
    """Each record has been given to each part, and each buffer to the subpartition."""
    assert [result[0] for result in results] == list(range(NUM_RECORDS))
    for number, num_serialized, num_added, num_passed, num_read in results:
        assert num_serialized >= number
        assert num_added >= number * RECORD_BYTES // SEGMENT_BYTES
        assert num_passed >= number
        assert num_read >= number + 1


DRIVERS: dict[str, Callable[[StreamEnvironment], Any]] = {
    "simulation": lambda job: Simulation(job, check_every=0),
    "simulation, 2 TaskManagers": lambda job: Simulation(job, check_every=0, num_task_managers=2),
    "threads": ThreadedRun,
    "threads, 2 TaskManagers": lambda job: ThreadedRun(job, num_task_managers=2),
    "loop": AsyncRun,
    "processes": lambda job: ProcessRun(job, num_task_managers=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("drive", DRIVERS)
def test_a_learners_part_is_called_for_each_record_and_each_buffer(drive: str) -> None:
    results: list[Any] = []
    DRIVERS[drive](counting_job(results).use(**PARTS)).run()
    check_counts(results)


@pytest.mark.slow
def test_a_learners_part_that_is_put_in_later_is_called_from_then_on() -> None:
    results: list[Any] = []
    with Simulation(counting_job(results), check_every=0) as simulation:
        while len(results) < NUM_RECORDS // 4:
            simulation.step()
        simulation.swap(**PARTS)
        simulation.run()
    check_counts_after_a_swap(results)


def check_counts_after_a_swap(results: list[Any]) -> None:
    """No part was called for the first quarter; in the second half each was, for each record."""
    assert [result[0] for result in results] == list(range(NUM_RECORDS))
    assert not any(results[0][1:])
    half, last = results[NUM_RECORDS // 2], results[-1]
    num_records = last[0] - half[0]
    assert last[1] - half[1] >= num_records - 1
    assert last[2] - half[2] >= num_records * RECORD_BYTES // SEGMENT_BYTES - 1
    assert last[3] - half[3] >= num_records
    assert last[4] - half[4] >= num_records
