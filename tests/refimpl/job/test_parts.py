"""The seams: which names there are, what may stand in, and that the job really uses it."""

from __future__ import annotations

import dataclasses

import pytest

from refimpl.batch_options import ExecutionMode
from refimpl.config import Config
from refimpl.drivers import Simulation, ThreadedRun
from refimpl.errors import LocalUsageError
from refimpl.job import Boundedness, ConsumerStart, Parts, StreamEnvironment
from refimpl.memory import BufferConsumer
from refimpl.producer import BoundedBlockingSubpartition, ResultPartitionType
from refimpl.records import SpanningRecordSerializer, SpillingAdaptiveSpanningRecordDeserializer


class MySerializer(SpanningRecordSerializer):
    num_made = 0

    def __init__(self) -> None:
        MySerializer.num_made += 1
        super().__init__()


class MyDeserializer(SpillingAdaptiveSpanningRecordDeserializer):
    configs: list[Config] = []  # noqa: RUF012 - one list for all is the point: it notes every part made

    def __init__(self, config: Config) -> None:
        MyDeserializer.configs.append(config)
        super().__init__(config)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    MySerializer.num_made = 0
    MyDeserializer.configs.clear()


def job(results: list[object]) -> StreamEnvironment:
    """One source, two maps, one sink: 1 + 2 writers and 2 + 2 channels."""
    environment = StreamEnvironment(Config(segment_size_bytes=16))
    source = environment.from_collection(range(20))
    source.rebalance().map(abs).set_parallelism(2).rebalance().sink(results.append)
    return environment


def test_each_seam_is_named_after_its_reference_part() -> None:
    for field in dataclasses.fields(Parts):
        assert getattr(Parts(), field.name).__name__ == field.name


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun])
def test_a_job_is_built_with_one_serializer_for_each_output_and_one_deserializer_for_each_channel(
    driver: type[Simulation | ThreadedRun],
) -> None:
    results: list[object] = []
    environment = job(results)
    parts = {
        "SpanningRecordSerializer": MySerializer,
        "SpillingAdaptiveSpanningRecordDeserializer": MyDeserializer,
    }
    assert environment.use(**parts) is environment
    driver(environment).run()
    assert sorted(results) == list(range(20))
    assert (MySerializer.num_made, MyDeserializer.configs) == (3, [environment.config] * 4)


def test_parts_used_later_keep_those_used_before() -> None:
    environment = job([]).use(SpanningRecordSerializer=MySerializer)
    environment.use(SpillingAdaptiveSpanningRecordDeserializer=MyDeserializer)
    assert environment.parts == Parts(MySerializer, MyDeserializer)


def test_a_part_may_be_any_callable_that_makes_one() -> None:
    results: list[object] = []
    with Simulation(job(results).use(SpanningRecordSerializer=lambda: MySerializer())) as simulation:
        simulation.run()
    assert (sorted(results), MySerializer.num_made) == (list(range(20)), 3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SpanningRecordSerialiser", "did you mean SpanningRecordSerializer?"),
        ("SpillingSpanningRecordDeserializer", "did you mean SpillingAdaptiveSpanningRecordDeserializer?"),
        ("xyz", f"there are {', '.join(field.name for field in dataclasses.fields(Parts))}"),
    ],
)
def test_a_name_that_is_no_seam_is_refused_with_the_nearest(name: str, said: str) -> None:
    environment = job([])
    with pytest.raises(LocalUsageError) as caught:
        environment.use(**{name: MySerializer})
    assert str(caught.value) == f"there is no part called {name}; {said}"
    assert environment.parts == Parts()


@pytest.mark.parametrize("part", [SpanningRecordSerializer(), 3, None, "Mine"], ids=lambda part: type(part).__name__)
def test_an_instance_instead_of_its_class_is_refused_and_nothing_is_changed(part: object) -> None:
    environment = job([])
    with pytest.raises(LocalUsageError, match="SpanningRecordSerializer: give the class that makes the part, not"):
        environment.use(SpillingAdaptiveSpanningRecordDeserializer=MyDeserializer, SpanningRecordSerializer=part)
    assert environment.parts == Parts()


class MyBlocking(BoundedBlockingSubpartition):
    num_added = 0

    def add(self, consumer: BufferConsumer) -> bool:
        MyBlocking.num_added += 1
        return super().add(consumer)


def a_batch_job(results: list[object]) -> StreamEnvironment:
    environment = StreamEnvironment(Config(segment_size_bytes=16, execution_mode=ExecutionMode.BATCH))
    environment.from_collection(range(20)).rebalance().map(abs).sink(results.append)
    return environment


@pytest.mark.parametrize("driver", [Simulation, ThreadedRun])
def test_a_job_writes_its_blocking_results_by_the_rules_it_is_built_with(
    driver: type[Simulation | ThreadedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MyBlocking, "num_added", 0)
    results: list[object] = []
    driver(a_batch_job(results).use(BoundedBlockingSubpartition=MyBlocking)).run()
    assert sorted(results) == list(range(20))
    assert MyBlocking.num_added > 10


def test_blocking_results_get_other_rules_while_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MyBlocking, "num_added", 0)
    results: list[object] = []
    environment = a_batch_job(results)
    environment.config = dataclasses.replace(environment.config, source_batch=2)
    with Simulation(environment) as simulation:
        for _ in range(5):
            simulation.step()
        simulation.swap(BoundedBlockingSubpartition=MyBlocking)
        simulation.run()
    assert sorted(results) == list(range(20))
    assert MyBlocking.num_added > 0


def test_what_may_not_run_together_is_asked_of_the_part_when_the_graph_is_made() -> None:
    asked: list[tuple[object, ...]] = []

    def never(*three: object) -> str:
        asked.append(three)
        return "it is Sunday"

    environment = a_batch_job([]).use(why_not=never)
    with pytest.raises(LocalUsageError, match="cannot run: it is Sunday"):
        Simulation(environment)
    assert asked == [(ResultPartitionType.BLOCKING, Boundedness.BOUNDED, ConsumerStart.AFTER_LAST_OUTPUT)]
    with Simulation(a_batch_job([])) as simulation, pytest.raises(LocalUsageError, match="why_not cannot be swapped"):
        simulation.swap(why_not=never)
