"""The laws of `refimpl.invariants`, checked after every step of random small jobs; and that they can be broken.

A job is drawn by hypothesis: its shape, parallelism, segment size and policy. It runs in the simulation with a pool
that is just large enough, so that everything blocks that can. The answer is computed a second time in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refimpl.config import Config
from refimpl.consumer import InputGate, NetworkInput
from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import DataStream, ExecutionGraph, JobGraph, StreamEnvironment
from refimpl.memory import Buffer, LocalBufferPool
from refimpl.producer import PipelinedSubpartition, RecordWriter
from refimpl.records import ANY, LONG, StreamRecord, TupleType
from refimpl.task import FlatMapOperator, IterableReader, Operator, OutputTag
from refimpl.trace import Trace

EVENS = OutputTag("evens")
ROUTES = ("forward", "rebalance", "rescale", "shuffle", "broadcast", "to_first", "key_by", "default")


class SideOperator(Operator):
    """Sends even numbers to the side and all numbers on."""

    def process(self, record: StreamRecord) -> None:
        if record.value[0] % 2 == 0:
            self.output.collect_side(EVENS, StreamRecord(record.value, record.timestamp))
        self.output.collect(record)


@dataclass(frozen=True)
class Shape:
    """One random job. `stages` are (route, operator, parallelism)."""

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

    def environment(self, num_buffers: int = 4_000) -> StreamEnvironment:
        config = Config(
            segment_size_bytes=self.segment, num_buffers=num_buffers, buffer_timeout_ms=self.timeout,
            object_reuse=self.object_reuse, chaining=self.chaining, source_batch=5,
            buffers_per_channel=1, floating_buffers_per_gate=2, spill_threshold_bytes=20,
            max_buffers_per_channel=self.max_per_channel, max_overdraft_buffers=self.overdraft, seed=self.seed,
        )  # fmt: skip
        return StreamEnvironment(config)

    @property
    def kind(self) -> object:
        return TupleType(LONG, LONG) if self.is_fixed_size else ANY

    def build(self, environment: StreamEnvironment, results: list[object]) -> list[object]:
        """Write the job; return what it must bring, by the same operators in plain Python."""
        values = [(number, number * 7 % 5) for number in range(self.num_records)]

        def reader(subtask: int, parallelism: int) -> IterableReader:
            return IterableReader([StreamRecord(value, value[0]) for value in values[subtask::parallelism]])

        stream = environment.source(reader, type=self.kind, parallelism=self.source_parallelism)
        width = self.source_parallelism
        expected = values
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

    def add(self, stream: DataStream, number: int, route: str, operator: str, parallelism: int) -> DataStream:
        if route == "key_by":
            routed = stream.key_by(lambda value: value[1])
        else:
            routed = stream if route == "default" else getattr(stream, route)()
        made = routed.transform(f"{operator}-{number}", OPERATORS[operator][0], self.kind)
        return made.set_parallelism(parallelism)


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

STAGES = st.lists(
    st.tuples(st.sampled_from(ROUTES), st.sampled_from(sorted(OPERATORS)), st.integers(1, 3)), min_size=1, max_size=3
).map(tuple)
SHAPES = st.builds(
    Shape,
    num_records=st.integers(0, 25),
    source_parallelism=st.integers(1, 3),
    stages=STAGES,
    segment=st.sampled_from([1, 3, 16, 30, 64]),
    timeout=st.sampled_from([-1, 0, 1, 100]),
    policy=st.sampled_from(["random", "round_robin", "first"]),
    seed=st.integers(0, 2**16),
    object_reuse=st.booleans(),
    chaining=st.booleans(),
    is_fixed_size=st.booleans(),
    spare_buffers=st.sampled_from([0, 1, 5]),
    max_per_channel=st.sampled_from([1, 10]),
    overdraft=st.sampled_from([0, 2]),
)


def num_required(shape: Shape) -> int:
    environment = shape.environment()
    shape.build(environment, [])
    return ExecutionGraph(JobGraph(environment.graph, environment.config)).num_required_buffers


def check(shape: Shape) -> Simulation:
    """Run the job with hardly enough buffers, check every step, compare with plain Python."""
    num_buffers = max(1, num_required(shape) + shape.spare_buffers)
    results: list[object] = []
    environment = shape.environment(num_buffers)
    expected = shape.build(environment, results)
    with Simulation(environment, seed=shape.seed, policy=shape.policy) as simulation:
        simulation.run()
        assert Counter(results) == Counter(expected), f"seed {shape.seed}"
    assert simulation.deployment.pool.num_free == num_buffers
    return simulation


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SHAPES)
@pytest.mark.slow
def test_random_jobs_keep_the_laws_and_give_the_right_answer(shape: Shape) -> None:
    check(shape)


PLAIN = Shape(
    num_records=20, source_parallelism=2, stages=(("rebalance", "map", 2), ("key_by", "explode", 2)), segment=16,
    timeout=-1, policy="random", seed=1, object_reuse=False, chaining=True, is_fixed_size=False, spare_buffers=1,
    max_per_channel=10, overdraft=0,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("segment", [1, 64])
def test_one_job_keeps_the_laws_in_many_orders(seed: int, segment: int) -> None:
    stages = (("broadcast", "side", 2), ("rescale", "explode", 1))
    check(replace(PLAIN, seed=seed, segment=segment, stages=stages, num_records=8))


def test_union_of_streams_keeps_the_laws() -> None:
    for seed in range(5):
        results: list[object] = []
        environment = StreamEnvironment(Config(segment_size_bytes=5, num_buffers=6, buffers_per_channel=1, seed=seed))
        one = environment.from_collection(range(20), "one")
        two = environment.from_collection(range(100, 120), "two")
        one.union(two).map(lambda number: -number).sink(results.append)
        with Simulation(environment, seed=seed) as simulation:
            simulation.run()
        assert sorted(results) == sorted(-number for number in [*range(20), *range(100, 120)]), f"seed {seed}"


def test_the_same_seed_takes_the_same_steps() -> None:
    runs = []
    for _ in range(2):
        results: list[object] = []
        environment = PLAIN.environment(64)
        PLAIN.build(environment, results)
        simulation = Simulation(environment, seed=3, check_every=0)
        runs.append([str(simulation.step()) for _ in range(80)])
        simulation.deployment.close()
    assert runs[0] == runs[1]


# -- mutants: the laws must catch each of these ----------------------------------------------------


class Every:
    """Says yes once in `n` times, so that a mutant strikes in the middle of a run."""

    def __init__(self, n: int) -> None:
        self.n, self.count = n, 0

    def __call__(self) -> bool:
        self.count += 1
        return self.count % self.n == 0


def lose_a_recycle(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, recycle = Every(9), LocalBufferPool.recycle_segment
    monkeypatch.setattr(
        LocalBufferPool, "recycle_segment", lambda self, segment: None if strikes() else recycle(self, segment)
    )


def recycle_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, recycle = Every(9), LocalBufferPool.recycle_segment

    def mutant(self: LocalBufferPool, segment: object) -> None:
        recycle(self, segment)
        if strikes():
            recycle(self, segment)

    monkeypatch.setattr(LocalBufferPool, "recycle_segment", mutant)


def forget_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, retain = Every(9), Buffer.retain
    monkeypatch.setattr(Buffer, "retain", lambda self: self if strikes() else retain(self))


def keep_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, retain = Every(9), Buffer.retain
    monkeypatch.setattr(Buffer, "retain", lambda self: retain(retain(self)) if strikes() else retain(self))


def keep_a_consumed_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes = Every(9)

    def mutant(self: NetworkInput) -> None:
        for buffer in self._consumed:
            if not strikes():
                buffer.recycle()
        self._consumed.clear()

    monkeypatch.setattr(NetworkInput, "recycle", mutant)


def drop_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, next_element = Every(9), NetworkInput.next_element

    def mutant(self: NetworkInput) -> object:
        element = next_element(self)
        if isinstance(element, StreamRecord) and strikes():
            return mutant(self)
        return element

    monkeypatch.setattr(NetworkInput, "next_element", mutant)


def deliver_a_record_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, next_element = Every(9), NetworkInput.next_element

    def mutant(self: NetworkInput) -> object:
        element = next_element(self)
        if isinstance(element, StreamRecord) and strikes():
            self._decoded.appendleft(element)
        return element

    monkeypatch.setattr(NetworkInput, "next_element", mutant)


def forget_to_notify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PipelinedSubpartition, "_notify", lambda self: None)


def forget_to_stand_in_line_again(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, enter = Every(9), InputGate._enter_line
    monkeypatch.setattr(InputGate, "_enter_line", lambda self, index: None if strikes() else enter(self, index))


def never_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordWriter, "resume", lambda self: False)


def leave_the_last_buffer_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordWriter, "_close", lambda self, channel: self._builders.__setitem__(channel, None))


MUTANTS = [
    lose_a_recycle, recycle_twice, forget_a_reference, keep_a_reference, keep_a_consumed_buffer, drop_a_record,
    deliver_a_record_twice, forget_to_notify, forget_to_stand_in_line_again, leave_the_last_buffer_in_the_queue,
]  # fmt: skip


def run_plain() -> list[object]:
    results: list[object] = []
    environment = PLAIN.environment(num_required(PLAIN) + 1)
    PLAIN.build(environment, results)
    with Simulation(environment, seed=PLAIN.seed) as simulation:
        simulation.run(max_steps=5_000)
        assert simulation.is_done, "5000 steps and no end"
    return results


def test_the_unchanged_engine_passes_where_the_mutants_must_fail() -> None:
    assert run_plain()


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_broken_engine_breaks_a_law(mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Caught by the laws, or by a buffer that is used after it went home: no result is compared here."""
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises((AssertionError, LocalUsageError)) as caught:
            run_plain()
    if mutate is not forget_a_reference:
        assert isinstance(caught.value, AssertionError)
    assert str(caught.value)


def test_a_record_in_hand_that_never_goes_on_breaks_a_law() -> None:
    with pytest.MonkeyPatch.context() as patch:
        never_resume(patch)
        with pytest.raises(AssertionError):
            run_plain()


def test_a_broken_law_tells_the_story_of_the_segment() -> None:
    with pytest.MonkeyPatch.context() as patch:
        recycle_twice(patch)
        environment = PLAIN.environment(64)
        PLAIN.build(environment, [])
        with pytest.raises(AssertionError, match=r"segment \d+ (is with|of)[\s\S]*(request|recycle)"):
            Simulation(environment, seed=1, trace=Trace()).run()
