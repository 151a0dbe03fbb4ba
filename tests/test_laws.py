"""The laws of `refimpl.laws`, checked after every step of random small jobs; and that they can be broken.

A job is drawn by hypothesis: its shape, parallelism, segment size and policy. All of it runs on one TaskManager; with
several, and wires between them, see `test_remote_laws.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import InputGate, NetworkInput
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action, Flush, StepTask
from refimpl.errors import LocalUsageError, RemoteProtocolError, SluiceError
from refimpl.invariants import check_end
from refimpl.job import StreamEnvironment
from refimpl.memory import Buffer, BufferBuilder, LocalBufferPool
from refimpl.producer import ChannelCopy, PipelinedSubpartition, RecordWriter, ResultPartition
from refimpl.records import (
    LONG,
    DeserializationResult,
    SerializationResult,
    SpanningRecordSerializer,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamRecord,
    TupleType,
)
from refimpl.task import LATE, IterableReader, TumblingWindows
from refimpl.trace import Trace
from tests.support.random_jobs import OPERATORS, ROUTES, Every, Shape, check

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
    version=st.sampled_from(FlinkVersion),
    is_union=st.booleans(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SHAPES)
@pytest.mark.slow
def test_random_jobs_keep_the_laws_and_give_the_right_answer(shape: Shape) -> None:
    check(shape)


PLAIN = Shape(
    num_records=20,
    source_parallelism=2,
    stages=(("rebalance", "map", 2), ("key_by", "explode", 2)),
    segment=16,
    timeout=-1,
    policy="random",
    seed=1,
    object_reuse=False,
    chaining=True,
    is_fixed_size=False,
    spare_buffers=1,
    max_per_channel=10,
    overdraft=0,
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("segment", [1, 64])
def test_one_job_keeps_the_laws_in_many_orders(seed: int, segment: int) -> None:
    stages = (("broadcast", "side", 2), ("rescale", "explode", 1))
    check(replace(PLAIN, seed=seed, segment=segment, stages=stages, num_records=8))


# -- other schedulers ------------------------------------------------------------------------------


def greedy(enabled: Sequence[Action], last: Action | None) -> Action:
    """One task for as long as it can move: everybody else waits until it cannot."""
    return last if last in enabled else enabled[0]


def upstream_first(enabled: Sequence[Action], _last: Action | None) -> Action:
    """Produce while anything can be produced: every queue is as full as it gets."""
    return enabled[0]


def downstream_first(enabled: Sequence[Action], _last: Action | None) -> Action:
    """Drain before anything is produced: every queue is as empty as it gets."""
    return next((action for action in reversed(enabled) if isinstance(action, StepTask)), enabled[0])


def flush_first(enabled: Sequence[Action], _last: Action | None) -> Action:
    """Time passes whenever it may."""
    return next((action for action in enabled if isinstance(action, Flush)), enabled[-1])


def anyone_else(enabled: Sequence[Action], last: Action | None) -> Action:
    """Never the same twice in a row, if there is another."""
    return next((action for action in enabled if action != last), enabled[0])


SCHEDULERS = [greedy, upstream_first, downstream_first, flush_first, anyone_else]


@pytest.mark.parametrize("choose", SCHEDULERS, ids=lambda choose: choose.__name__)
@pytest.mark.parametrize("timeout", [-1, 1])
@pytest.mark.parametrize("segment", [3, 30])
def test_no_scheduler_can_break_a_law(
    choose: Callable[[Sequence[Action], Action | None], Action], timeout: int, segment: int
) -> None:
    """Any choice among what is enabled must do, also an unkind one."""
    stages = (("key_by", "explode", 2), ("broadcast", "side", 2), ("rescale", "filter", 1))
    shape = replace(PLAIN, stages=stages, timeout=timeout, segment=segment, num_records=12, spare_buffers=0)
    results: list[object] = []
    environment = shape.environment(shape.num_required())
    expected = shape.build(environment, results)
    with Simulation(environment, step_ms=0.4) as simulation:
        last: Action | None = None
        while enabled := simulation.enabled():
            last = simulation.step(choose(enabled, last))
        check_end(simulation.deployment)
    assert Counter(results) == Counter(expected)


# -- windows and unions ----------------------------------------------------------------------------


class Values:
    """Keeps every value of a window."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: tuple[int, int], accumulator: list[int]) -> list[int]:
        return [*accumulator, value[0]]

    def get_result(self, accumulator: list[int]) -> list[int]:
        return sorted(accumulator)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-30, 60)), max_size=25),
    st.integers(1, 3),
    st.sampled_from([0, 3, 100]),
    st.sampled_from([2, 17, 64]),
    st.integers(0, 2**16),
)
@pytest.mark.slow
def test_every_record_is_in_one_window_of_its_key_or_late(
    events: list[tuple[int, int]], parallelism: int, bound: int, segment: int, seed: int
) -> None:
    """Whatever the schedule; and with a bound above every disorder nothing is late."""
    config = Config(segment_size_bytes=segment, num_buffers=300, source_batch=3, seed=seed)
    environment = StreamEnvironment(config, parallelism)
    # (number of the event, its key), the time aside
    timed = {number: time for number, (_, time) in enumerate(events)}
    values = [(number, key) for number, (key, _) in enumerate(events)]
    source = environment.source(lambda i, n: IterableReader(values[i::n]))
    stamped = source.assign_timestamps(lambda value: timed[value[0]], bound, every=2)
    windowed = stamped.key_by(lambda value: value[1]).window(TumblingWindows(10)).aggregate(Values())
    results: list[tuple[int, int, int, list[int]]] = []
    late: list[tuple[int, int]] = []
    windowed.sink(results.append).set_parallelism(1)
    windowed.side_output(LATE).sink(late.append, "late").set_parallelism(1)
    with Simulation(environment, seed=seed) as simulation:
        simulation.run()
    for key, start, end, numbers in results:
        assert end == start + 10, f"seed {seed}"
        for number in numbers:
            assert values[number][1] == key, f"seed {seed}"
            assert start <= timed[number] < end, f"seed {seed}"
    assert len({(key, start) for key, start, _, _ in results}) == len(results), f"seed {seed}"
    placed = [number for *_, numbers in results for number in numbers] + [number for number, _ in late]
    assert sorted(placed) == list(range(len(events))), f"seed {seed}"
    if bound == 100:
        assert late == [], f"seed {seed}"


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
    monkeypatch.setattr(PipelinedSubpartition, "notify", lambda self: None)


def forget_to_stand_in_line_again(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, enter = Every(9), InputGate._enter_line
    monkeypatch.setattr(InputGate, "_enter_line", lambda self, index: None if strikes() else enter(self, index))


def never_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordWriter, "resume", lambda self: False)


def leave_the_last_buffer_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChannelCopy, "close", lambda self, channel: self.builders.__setitem__(channel, None))


def drop_a_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are cut by buffers here: what is left reads as something else or as too few records."""
    strikes, poll = Every(5), PipelinedSubpartition.poll

    def mutant(self: PipelinedSubpartition) -> object:
        taken = poll(self)
        if taken is not None and taken.buffer.is_buffer and strikes():
            taken.buffer.recycle()
            return poll(self)
        return taken

    monkeypatch.setattr(PipelinedSubpartition, "poll", mutant)


def forget_the_end_of_a_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(self: ResultPartition) -> None:
        self._is_finished = True
        for subpartition in self.subpartitions[1:]:
            subpartition.finish()

    monkeypatch.setattr(ResultPartition, "finish", mutant)


def promise_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    resize = LocalBufferPool.set_num_buffers
    monkeypatch.setattr(LocalBufferPool, "set_num_buffers", lambda self, _num: resize(self, self.num_max))


def lose_a_segment_on_the_way_home(monkeypatch: pytest.MonkeyPatch) -> None:
    strikes, request = Every(9), LocalBufferPool.request_buffer

    def mutant(self: LocalBufferPool, channel: int = -1) -> Buffer | None:
        buffer = request(self, channel)
        if buffer is not None and strikes():
            self.lent.pop(buffer.segment.id)
        return buffer

    monkeypatch.setattr(LocalBufferPool, "request_buffer", mutant)


MUTANTS = [
    lose_a_recycle, recycle_twice, forget_a_reference, keep_a_reference, keep_a_consumed_buffer, drop_a_record,
    deliver_a_record_twice, forget_to_notify, forget_to_stand_in_line_again, leave_the_last_buffer_in_the_queue,
    drop_a_buffer, forget_the_end_of_a_channel, promise_more_than_there_is, lose_a_segment_on_the_way_home,
]  # fmt: skip

CAUGHT_BY_USE = {forget_a_reference, drop_a_buffer}  # a reader may stumble before a law is broken


def run_plain(**parts: object) -> list[object]:
    """The job every mutant runs: two exchanges, buffers shorter than records, one buffer to spare."""
    results: list[object] = []
    environment = PLAIN.environment(PLAIN.num_required() + 1).use(**parts)
    PLAIN.build(environment, results)
    with Simulation(environment, seed=PLAIN.seed) as simulation:
        simulation.run(max_steps=5_000)
        if not simulation.is_done:  # no AssertionError: an endless job has broken no law
            pytest.fail("5000 steps and no end")
    return results


def test_the_unchanged_engine_passes_where_the_mutants_must_fail() -> None:
    assert run_plain()


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_broken_engine_breaks_a_law(mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    """Caught by the laws, or by a buffer that is used after it went home: no result is compared here."""
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises((AssertionError, LocalUsageError, RemoteProtocolError)) as caught:
            run_plain()
    if mutate not in CAUGHT_BY_USE:
        assert isinstance(caught.value, AssertionError)
    assert str(caught.value)


def test_a_job_whose_record_in_hand_never_goes_on_never_ends() -> None:
    with pytest.MonkeyPatch.context() as patch:
        never_resume(patch)
        with pytest.raises(pytest.fail.Exception, match="no end"):
            run_plain()


def test_a_broken_law_tells_the_story_of_the_segment() -> None:
    with pytest.MonkeyPatch.context() as patch:
        recycle_twice(patch)
        environment = PLAIN.environment(64)
        PLAIN.build(environment, [])
        with pytest.raises(AssertionError, match=r"segment \d+ (is with|of)[\s\S]*(request|recycle)"):
            Simulation(environment, seed=1, trace=Trace()).run()


# -- wrong parts, put in through the seams ---------------------------------------------------------


class LosesARecord(SpanningRecordSerializer):
    """Takes a record and says it has been copied."""

    strikes = Every(7)

    def serialize_record(self, record: bytes) -> None:
        super().serialize_record(record)
        self.is_lost = self.strikes()

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        if self.is_lost:
            self.prune()
            return SerializationResult.FULL_RECORD
        return super().copy_to_buffer_builder(builder)


class WritesARecordTwice(SpanningRecordSerializer):
    strikes = Every(7)

    def serialize_record(self, record: bytes) -> None:
        super().serialize_record(record)
        if self.strikes():
            self._data += bytes(self._data)


class SaysFullTooSoon(SpanningRecordSerializer):
    """The rest of a record that does not fit is forgotten."""

    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        result = super().copy_to_buffer_builder(builder)
        if result is SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL:
            self.prune()
            return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return result


class RestartsInTheNextBuffer(SpanningRecordSerializer):
    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        if builder.written_bytes == 0:
            self.reset()
        return super().copy_to_buffer_builder(builder)


class ForgetsToCommit(SpanningRecordSerializer):
    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        committed = builder.committed_bytes
        result = super().copy_to_buffer_builder(builder)
        builder.published.value = committed
        return result


class LeavesAFullBufferOpen(SpanningRecordSerializer):
    def copy_to_buffer_builder(self, builder: BufferBuilder) -> SerializationResult:
        result = super().copy_to_buffer_builder(builder)
        is_both = result is SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        return SerializationResult.FULL_RECORD if is_both else result


class WritesTheLengthBackwards(SpanningRecordSerializer):
    def serialize_record(self, record: bytes) -> None:
        super().serialize_record(record)
        self._data[:4] = self._data[3::-1]


class SkipsARecord(SpillingAdaptiveSpanningRecordDeserializer):
    strikes = Every(7)

    def get_next_record(self) -> tuple[DeserializationResult, memoryview | None]:
        result, payload = super().get_next_record()
        is_inside = result is DeserializationResult.INTERMEDIATE_RECORD_FROM_BUFFER
        return super().get_next_record() if is_inside and self.strikes() else (result, payload)


class ForgetsTheRecordBegun(SpillingAdaptiveSpanningRecordDeserializer):
    """What a buffer ends with is not kept for the next one."""

    def set_next_buffer(self, buffer: object) -> None:
        self._forget_gathered()
        super().set_next_buffer(buffer)


class KeepsTheBuffer(SpillingAdaptiveSpanningRecordDeserializer):
    """Never hands a buffer back once it has been read."""

    def get_current_buffer(self) -> None:
        super().get_current_buffer()


class HandsTheBufferBackTwice(SpillingAdaptiveSpanningRecordDeserializer):
    """Recycles by itself what its caller recycles too."""

    def get_current_buffer(self) -> object:
        buffer = super().get_current_buffer()
        if buffer is not None:
            buffer.retain()
            buffer.recycle()
            buffer.recycle()
        return buffer


WRONG_SERIALIZERS = [
    LosesARecord, WritesARecordTwice, SaysFullTooSoon, RestartsInTheNextBuffer, ForgetsToCommit,
    WritesTheLengthBackwards,
]  # fmt: skip
WRONG_DESERIALIZERS = [SkipsARecord, ForgetsTheRecordBegun, KeepsTheBuffer, HandsTheBufferBackTwice]


def test_right_parts_pass_where_the_wrong_ones_must_fail() -> None:
    class Right(SpanningRecordSerializer):
        """Not the reference class, so nothing is packed in place for it."""

    class RightToo(SpillingAdaptiveSpanningRecordDeserializer):
        """Not the reference class either."""

    results = run_plain(SpanningRecordSerializer=Right, SpillingAdaptiveSpanningRecordDeserializer=RightToo)
    assert Counter(results) == Counter(run_plain())


@pytest.mark.parametrize("part", WRONG_SERIALIZERS, ids=lambda part: part.__name__)
def test_a_wrong_serializer_breaks_a_law_or_its_reader(part: type[SpanningRecordSerializer]) -> None:
    """No result is compared here: the engine itself must notice."""
    with pytest.raises((AssertionError, SluiceError)) as caught:
        run_plain(SpanningRecordSerializer=part)
    assert str(caught.value)


@pytest.mark.parametrize("part", WRONG_DESERIALIZERS, ids=lambda part: part.__name__)
def test_a_wrong_deserializer_breaks_a_law(part: type[SpillingAdaptiveSpanningRecordDeserializer]) -> None:
    with pytest.raises((AssertionError, SluiceError)) as caught:
        run_plain(SpillingAdaptiveSpanningRecordDeserializer=part)
    assert str(caught.value)


def test_a_full_buffer_left_open_is_only_slower() -> None:
    """Not every deviation is a mistake: the writer closes it when the next record finds no room."""
    assert Counter(run_plain(SpanningRecordSerializer=LeavesAFullBufferOpen)) == Counter(run_plain())


# -- what one part takes or skips --------------------------------------------------------------------


def _tight_job() -> StreamEnvironment:
    config = Config(
        segment_size_bytes=29, num_buffers=40, buffers_per_channel=1, floating_buffers_per_gate=1, source_batch=5
    )
    environment = StreamEnvironment(config)
    records = [StreamRecord((k, k), k) for k in range(60)]
    stream = environment.from_collection(records, type=TupleType(LONG, LONG)).rebalance().map(lambda value: value)
    stream.rebalance().sink(lambda _value: None)
    return environment


def test_a_pool_that_takes_more_than_its_share_breaks_the_law_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalBufferPool, "_can_overdraw", property(lambda self: self.global_pool.num_free > 0))
    with pytest.raises(AssertionError, match="its share is"), Simulation(_tight_job(), seed=1) as simulation:
        simulation.run(max_steps=5000)


def test_a_gap_in_sequence_numbers_breaks_the_law_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    deliver, num_pieces = PipelinedSubpartition.deliver, iter(range(10**6))

    def skip_a_number(self: PipelinedSubpartition, piece: object) -> object:
        self.next_sequence_number += next(num_pieces) % 5 == 4
        return deliver(self, piece)

    monkeypatch.setattr(PipelinedSubpartition, "deliver", skip_a_number)
    with pytest.raises(AssertionError, match="got sequence number"), Simulation(_tight_job(), seed=1) as simulation:
        simulation.run(max_steps=5000)
