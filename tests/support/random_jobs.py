"""Random small jobs, each with its answer worked out a second time in plain Python.

A `Shape` says everything about one job and its run. `check` runs it with just enough buffers to start, so that
everything blocks that can, and with the laws checked after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from refimpl.config import Config, FlinkVersion
from refimpl.drivers import Simulation
from refimpl.job import DataStream, ExecutionGraph, StreamEnvironment
from refimpl.records import ANY, LONG, StreamRecord, TupleType
from refimpl.task import FlatMapOperator, IterableReader, Operator, OutputTag


class Every:
    """Says yes once in `n` times, so that a mutant strikes in the middle of a run."""

    def __init__(self, n: int) -> None:
        self.n, self.count = n, 0

    def __call__(self) -> bool:
        self.count += 1
        return self.count % self.n == 0


EVENS = OutputTag("evens")
ROUTES = ("forward", "rebalance", "rescale", "shuffle", "broadcast", "to_first", "key_by", "default")


class SideOperator(Operator):
    """Sends even numbers to the side and all numbers on."""

    def process(self, record: StreamRecord) -> None:
        if record.value[0] % 2 == 0:
            self.output.collect_side(EVENS, StreamRecord(record.value, record.timestamp))
        self.output.collect(record)


def flat_map(function: Callable[[tuple], Iterable[tuple]]) -> Callable[[], Operator]:
    return lambda: FlatMapOperator(function)


def explode(value: tuple) -> list[tuple]:
    return [(value[0], value[1] + copy) for copy in range(value[0] % 4)]


# What each operator is, and what it makes of a value.
OPERATORS: dict[str, tuple[Callable[[], Operator], Callable[[tuple], Iterable[tuple]]]] = {
    "map": (flat_map(lambda v: [(v[0] + 1, v[1])]), lambda v: [(v[0] + 1, v[1])]),
    "filter": (flat_map(lambda v: [v] if v[0] % 3 else []), lambda v: [v] if v[0] % 3 else []),
    "explode": (flat_map(explode), explode),
    "side": (SideOperator, lambda value: [value]),
}


@dataclass(frozen=True)
class Shape:
    """One random job. `stages` are (route, operator, parallelism).

    `is_union`: half of the records come from a second source. `is_spread`: no two stages share a slot, so that most
    exchanges cross from one TaskManager to another.
    """

    num_records: int
    source_parallelism: int
    stages: tuple[tuple[str, str, int], ...]
    segment: int
    timeout: int
    policy: str
    seed: int
    object_reuse: bool
    chaining: bool
    is_fixed_size: bool
    spare_buffers: int
    max_per_channel: int
    overdraft: int
    version: FlinkVersion = FlinkVersion.V1_11
    num_task_managers: int = 1
    max_delay_ms: float = 0.0
    exclusive: int = 1
    floating: int = 2
    is_union: bool = False
    is_spread: bool = False
    has_credit: bool = True

    def environment(self, num_buffers: int = 4_000) -> StreamEnvironment:
        least_per_channel = 1 if self.version is FlinkVersion.V1_11 else 2
        config = Config(
            segment_size_bytes=self.segment,
            num_buffers=num_buffers,
            buffer_timeout_ms=self.timeout,
            object_reuse=self.object_reuse,
            chaining=self.chaining,
            source_batch=5,
            buffers_per_channel=self.exclusive,
            floating_buffers_per_gate=self.floating,
            spill_threshold_bytes=20,
            max_buffers_per_channel=max(least_per_channel, self.max_per_channel),
            seed=self.seed,
            max_overdraft_buffers=self.overdraft,
            flink_version=self.version,
            credit_based=self.has_credit,
        )
        return StreamEnvironment(config)

    @property
    def kind(self) -> object:
        return TupleType(LONG, LONG) if self.is_fixed_size else ANY

    def build(self, environment: StreamEnvironment, results: list[object]) -> list[object]:
        """Write the job; return what it must bring, by the same operators in plain Python."""
        values = [(number, number * 7 % 5) for number in range(self.num_records)]
        expected = values
        stream = self.read(environment, values[::2] if self.is_union else values, "source")
        if self.is_union:
            stream = stream.union(self.read(environment, values[1::2], "other"))
        width = self.source_parallelism
        sides: list[DataStream] = []
        aside: list[object] = []
        for number, (route, operator, parallelism) in enumerate(self.stages):
            if route == "forward":
                parallelism = width
            if route == "broadcast":
                expected = expected * parallelism
            stream = self.add(stream, number, route, operator, parallelism)
            if operator == "side":
                sides.append(stream.side_output(EVENS))
                aside += [value for value in expected if value[0] % 2 == 0]
            answer = OPERATORS[operator][1]
            expected = [result for value in expected for result in answer(value)]
            width = parallelism
        for number, side in enumerate(sides):
            side.sink(results.append, name=f"evens-{number}").set_parallelism(1)
        stream.sink(results.append).set_parallelism(1)
        return expected + aside

    def read(self, environment: StreamEnvironment, values: list[tuple], name: str) -> DataStream:
        def reader(subtask: int, parallelism: int) -> IterableReader:
            return IterableReader([StreamRecord(value, value[0]) for value in values[subtask::parallelism]])

        return environment.source(reader, name, self.kind, self.source_parallelism)

    def add(self, stream: DataStream, number: int, route: str, operator: str, parallelism: int) -> DataStream:
        if route == "key_by":
            routed = stream.key_by(lambda value: value[1])
        else:
            routed = stream if route == "default" else getattr(stream, route)()
        made = routed.transform(f"{operator}-{number}", OPERATORS[operator][0], self.kind)
        if self.is_spread:
            made.slot_sharing_group(f"stage-{number}")
        return made.set_parallelism(parallelism)

    def num_required(self) -> int:
        """The least `num_buffers` with which every TaskManager can start."""
        return self._graph(self.num_task_managers).num_required_buffers

    def num_slots(self) -> int:
        """Between how many TaskManagers the job can be shared."""
        return self._graph(1).placement.num_slots

    def _graph(self, num_task_managers: int) -> ExecutionGraph:
        environment = self.environment()
        self.build(environment, [])
        return environment.execution_graph(num_task_managers)


def check(shape: Shape) -> Simulation:
    """Run the job with hardly enough buffers, check every step, compare with plain Python."""
    num_buffers = max(1, shape.num_required() + shape.spare_buffers)
    results: list[object] = []
    environment = shape.environment(num_buffers)
    expected = shape.build(environment, results)
    with Simulation(
        environment,
        seed=shape.seed,
        policy=shape.policy,
        num_task_managers=shape.num_task_managers,
        max_delay_ms=shape.max_delay_ms,
    ) as simulation:
        simulation.run()
        assert Counter(results) == Counter(expected), f"seed {shape.seed}"
    assert [each.pool.num_free for each in simulation.deployments] == [num_buffers] * shape.num_task_managers
    return simulation
