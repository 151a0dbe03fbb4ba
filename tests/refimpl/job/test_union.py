"""Several streams as one: every word behind a union holds for all of them, or is refused."""

from __future__ import annotations

from collections import defaultdict

import pytest

from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import DOUBLE, LONG, STRING, StreamRecord, TupleType
from refimpl.task import LATE, IterableReader, Operator, OutputTag, TumblingWindows
from tests.support.small_jobs import Count, Where, run


def one_and_two(environment: StreamEnvironment) -> DataStream:
    return environment.from_collection([1], "one").union(environment.from_collection([2], "two"))


@pytest.mark.parametrize("route", ["key_by", "broadcast", "rebalance", "to_first"])
def test_a_route_behind_a_union_holds_for_every_stream_of_it(route: str) -> None:
    environment = StreamEnvironment()
    subtasks: dict[object, set[int]] = defaultdict(set)
    first, second = (
        environment.source(lambda _i, _n: IterableReader([f"k{k}" for k in range(20)]), name, parallelism=3)
        for name in ("first", "second")
    )
    both = first.union(second)
    routed = both.key_by(lambda value: value) if route == "key_by" else getattr(both, route)()
    where = routed.transform("where", Where).set_parallelism(3)
    where.sink(lambda pair: subtasks[pair[1]].add(pair[0])).set_parallelism(1)
    run(environment)
    names = {edge.partitioner.name for edge in environment.graph.edges if edge.target == where.node.id}
    assert names == {{"key_by": "hash", "to_first": "global"}.get(route, route)}
    if route == "key_by":
        assert {len(found) for found in subtasks.values()} == {1}


def test_streams_of_different_types_cannot_be_united() -> None:
    environment = StreamEnvironment()
    longs, doubles = environment.from_collection([1], "a", LONG), environment.from_collection([1.5], "b", DOUBLE)
    with pytest.raises(LocalUsageError, match=r"values of type double, .* of long; give both the same type"):
        longs.union(doubles)


def test_streams_of_two_environments_cannot_be_united() -> None:
    here, there = StreamEnvironment(), StreamEnvironment()
    with pytest.raises(LocalUsageError, match="belongs to another environment"):
        here.from_collection([1], "a").union(there.from_collection([5], "b"))


def test_a_split_of_a_union_takes_all_its_streams() -> None:
    environment, results = StreamEnvironment(), []
    one_and_two(environment).split(lambda _value: ["x"]).select("x").sink(results.append)
    run(environment)
    assert sorted(results) == [1, 2]


@pytest.mark.parametrize(
    "ask",
    [
        lambda both: both.side_output(OutputTag("x")), lambda both: both.set_parallelism(2),
        lambda both: both.start_new_chain(), lambda both: both.disable_chaining(),
        lambda both: both.slot_sharing_group("gpu"),
    ],
)  # fmt: skip
def test_what_belongs_to_one_operator_is_not_asked_of_a_union(ask: object) -> None:
    with pytest.raises(LocalUsageError, match="has no operator of its own"):
        ask(one_and_two(StreamEnvironment()))


def test_a_stream_is_split_once() -> None:
    stream = StreamEnvironment().from_collection([1, 2])
    stream.split(lambda _value: ["x"])
    with pytest.raises(LocalUsageError, match="is split already"):
        stream.split(lambda _value: ["y"])


class Siding(Operator):
    """Odd numbers go on, even ones to a side output."""

    def process(self, record: StreamRecord) -> None:
        if record.value % 2:
            self.output.collect(record)
        else:
            self.output.collect_side(OutputTag("even"), record)


def test_two_edges_between_the_same_operators_are_both_flushed_by_time() -> None:
    environment, results = StreamEnvironment(), []
    stream = environment.from_collection([1, 2]).transform("siding", Siding)
    stream.union(stream.side_output(OutputTag("even"))).sink(results.append)
    with Simulation(environment) as simulation:
        names = [partition.name for partition in simulation.deployment.partitions]
        assert names == ["siding-0 → sink", "siding-0 → sink #2"]
        simulation.run()
    assert sorted(results) == [1, 2]


@pytest.mark.parametrize("chaining", [False, True])
def test_late_records_have_a_type_of_their_own(chaining: bool) -> None:
    environment, late = StreamEnvironment(Config(chaining=chaining)), []
    timed = environment.from_collection([("k", 1), ("k", 100), ("k", 2)]).assign_timestamps(lambda v: v[1], 0, every=1)
    counted = timed.key_by(lambda value: value[0]).window(TumblingWindows(10))
    windows = counted.aggregate(Count(), type=TupleType(STRING, LONG, LONG, LONG))
    windows.sink(lambda _value: None)
    windows.side_output(LATE).sink(late.append, "late")
    run(environment)
    assert late == [("k", 2)]


def test_a_side_output_can_declare_its_type() -> None:
    environment, results = StreamEnvironment(), []
    tag = OutputTag("even", LONG)
    stream = environment.from_collection([1, 2], type=LONG).transform("siding", Siding, LONG)
    evens = stream.side_output(tag)
    assert evens.value_type is LONG
    stream.union(evens).sink(results.append)
    run(environment)
    assert sorted(results) == [1, 2]
