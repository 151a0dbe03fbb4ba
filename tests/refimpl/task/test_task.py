"""One step of a task: poll, process, emit; why it stands still, and that it loses nothing when it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel, NetworkInput
from refimpl.drivers.control import pause_ms
from refimpl.errors import UserCodeError
from refimpl.memory import LocalBufferPool, NetworkBufferPool
from refimpl.producer import ForwardSelector, RecordWriter, ResultPartition
from refimpl.records import (
    LONG,
    MAX_WATERMARK,
    CheckpointBarrier,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    Watermark,
)
from refimpl.task import (
    ChainEdge,
    ChainNode,
    FlatMapOperator,
    IterableReader,
    MapOperator,
    Operator,
    OperatorChain,
    OperatorContext,
    Progress,
    SinkOperator,
    SourceInput,
    Task,
)
from refimpl.trace import Trace

ELEMENTS = StreamElementSerializer(LONG)


class Wire:
    """One channel from a task to another: `buffers` of `segment` bytes."""

    def __init__(self, buffers: int = 3, segment: int = 26) -> None:
        self.config = Config(segment_size_bytes=segment, num_buffers=buffers, buffer_timeout_ms=-1)
        self.home = NetworkBufferPool(buffers, segment)
        pool = LocalBufferPool(self.home, 1, buffers, "pool", num_channels=1)
        self.partition = ResultPartition("map-0", 1, pool, self.config)
        self.writer = RecordWriter(self.partition, ForwardSelector(), ELEMENTS)
        self.gate = InputGate("sink-0", [LocalInputChannel(0, self.partition.create_view(0))])
        self.gate.open()
        make = SpillingAdaptiveSpanningRecordDeserializer
        self.input = NetworkInput(self.gate, ELEMENTS, lambda: make(self.config))

    def write(self, *values: int) -> None:
        for value in values:
            self.writer.emit(StreamRecord(value))

    def read(self) -> list[object]:
        """Everything a consumer can read now; its buffers go home."""
        elements = []
        while self.input.take():
            while (element := self.input.next_element()) is not None:
                elements.append(element)
            self.input.recycle()
        return elements


def chain_of(operator: Operator, *wires: Wire) -> OperatorChain:
    edges = [ChainEdge(writer=wire.writer) for wire in wires]
    return OperatorChain([ChainNode(0, operator, OperatorContext("op", 0, 1, 128), LONG, edges)], object_reuse=False)


def source_task(values: Iterable[object], *wires: Wire, batch: int = 4, operator: Operator | None = None) -> Task:
    source = SourceInput("source", 0, IterableReader(values), batch)
    return Task("source-0", chain_of(operator or Operator(), *wires), source, [wire.writer for wire in wires])


def sink_task(wire: Wire, function: Callable[[object], object], buffers: int = 1) -> Task:
    return Task("sink-0", chain_of(SinkOperator(function)), wire.input, [], buffers)


def run_to_the_end(task: Task, wire: Wire) -> list[object]:
    """Step while something moves, read while it does not; everything that arrived."""
    arrived: list[object] = []
    for _ in range(1_000):
        if task.is_runnable:
            task.step()
        else:
            wire.partition.flush_all()
            arrived += wire.read()
            if wire.gate.is_finished:
                return arrived
    raise AssertionError(f"{task} has not ended after 1000 turns; {len(arrived)} elements arrived")


def records(*values: int) -> list[StreamRecord]:
    return [StreamRecord(value) for value in values]


# -- the words of a step ---------------------------------------------------------------------------


def test_a_source_makes_progress_until_it_is_done_and_ends_its_output() -> None:
    wire = Wire(buffers=9)
    task = source_task([1, 2, 3], wire, batch=2)
    assert task.progress is Progress.IDLE
    assert [task.step() for _ in range(3)] == [Progress.MADE, Progress.MADE, Progress.DONE]
    assert (task.is_done, task.is_runnable, task.num_steps) == (True, False, 3)
    assert wire.read() == [*records(1, 2, 3), MAX_WATERMARK]
    assert wire.gate.is_finished


def test_a_task_without_input_is_idle_and_says_that_it_need_not_be_asked() -> None:
    task = sink_task(Wire(), print)
    assert not task.is_runnable
    assert task.step() is Progress.IDLE


def test_a_task_is_done_when_its_input_has_ended_and_its_buffers_are_home() -> None:
    wire, values = Wire(), []
    task = sink_task(wire, values.append)
    wire.write(1, 2)
    wire.writer.finish()
    steps = 0
    while task.is_runnable and steps < 9:
        task.step()
        steps += 1
    assert (task.progress, values) == (Progress.DONE, [1, 2])
    assert steps == task.num_steps
    assert wire.partition.pool.lent == {}


def test_a_step_takes_as_many_buffers_as_it_may() -> None:
    for limit, counts in ((1, [2, 4, 6]), (2, [4, 6])):
        wire, values = Wire(), []
        task = sink_task(wire, values.append, limit)
        wire.write(*range(6))  # two to a buffer
        wire.partition.flush_all()
        found = []
        while task.is_runnable and len(found) < 9:
            task.step()
            found.append(len(values))
        assert found == counts


def test_buffers_are_held_while_the_users_code_runs_and_go_home_in_emit() -> None:
    wire, values = Wire(), []
    task = sink_task(wire, values.append)
    wire.write(1, 2, 3)
    assert task.poll()
    task.process()
    assert (values, len(list(task.input.held_buffers)), len(wire.partition.pool.lent)) == ([1, 2], 1, 2)
    assert task.emit() is Progress.MADE
    assert (list(task.input.held_buffers), len(wire.partition.pool.lent)) == ([], 1)


def test_a_task_that_reads_no_buffers_holds_none() -> None:
    task = source_task([1], Wire())
    task.poll()
    assert list(task.input.held_buffers) == []


def test_a_slow_source_rests_after_records_and_not_after_a_barrier_alone() -> None:
    """With a barrier before each step it gets on all the same: else it would send barriers and nothing else."""
    wire = Wire(buffers=9)
    task = source_task([1, 2, 3], wire, batch=1)
    task.rest_ms = 50
    rests = []
    for number in range(1, 4):
        task.submit(partial(task.checkpoints.pass_on, CheckpointBarrier(number, 0)))
        for _ in range(2):
            task.step()
            rests.append(pause_ms(task))
    assert rests == [0, 50] * 3
    wire.partition.flush_all()
    assert [each for each in wire.read() if isinstance(each, StreamRecord)] == records(1, 2, 3)


# -- backpressure ----------------------------------------------------------------------------------


def test_a_task_without_a_buffer_to_spare_takes_no_input() -> None:
    """The soft kind, before a record is touched.

    Flink: `StreamTaskTest`.
    """
    wire = Wire(buffers=2)
    task = source_task(range(100), wire, batch=4)
    assert task.step() is Progress.MADE  # four records fill both buffers
    assert (wire.writer.is_blocked, task.is_runnable) == (False, False)
    assert task.step() is Progress.BACKPRESSURED
    assert task.chain.num_records_in == 4
    assert wire.read() == records(0, 1)  # the full one that another has followed
    assert task.is_runnable
    assert task.step() is Progress.BACKPRESSURED
    assert task.chain.num_records_in == 7


def test_a_record_that_finds_no_buffer_stays_in_hand_and_the_rest_of_the_batch_waits() -> None:
    """The hard kind, in the middle of a batch."""
    wire = Wire(buffers=1)
    task = source_task(range(100), wire, batch=10)
    assert task.step() is Progress.BACKPRESSURED
    assert (wire.writer.is_blocked, task.chain.num_records_in) == (True, 3)
    assert not task.is_runnable
    assert task.step() is Progress.BACKPRESSURED
    assert task.chain.num_records_in == 3
    wire.partition.flush_all()
    assert wire.read() == records(0, 1)
    assert task.is_runnable


@pytest.mark.parametrize("operator", [Operator, lambda: MapOperator(lambda value: value)], ids=["source", "map"])
def test_a_source_before_the_network_counts_and_stops_as_any_operator_does(
    operator: Callable[[], Operator],
) -> None:
    wire = Wire(buffers=2, segment=2_600)
    task = source_task(range(1_000), wire, batch=500, operator=operator())
    assert task.step() is Progress.BACKPRESSURED
    counted = (task.chain.num_records_in, task.chain.counters[0].num_records, wire.writer.num_records)
    assert counted == (401, 401, 401)  # 400 records of 13 bytes fill both buffers, one is in hand
    assert run_to_the_end(task, wire) == [*records(*range(1_000)), MAX_WATERMARK]


def test_a_wrong_record_of_a_source_before_the_network_is_named() -> None:
    wire = Wire(buffers=2, segment=2_600)
    task = source_task([*range(100), "no number", *range(100)], wire, batch=300)
    with pytest.raises(UserCodeError, match=r"op, subtask 0, raised LocalUsageError: .* while processing 'no number'"):
        task.step()
    assert (task.chain.num_records_in, task.chain.counters[0].num_records) == (101, 101)


@pytest.mark.parametrize("position", [0, 5, 39])
def test_the_value_a_function_fails_on_is_named(position: int) -> None:
    wire, values = Wire(segment=2_600), []
    wire.write(*range(40))
    wire.partition.flush_all()

    def function(value: object) -> None:
        if value == position:
            raise ValueError("mine")
        values.append(value)

    task = sink_task(wire, function)
    with pytest.raises(UserCodeError, match=f"op, subtask 0, raised ValueError: mine while processing {position}"):
        task.step()
    assert (values, task.chain.num_records_in) == ([*range(position)], position + 1)


def test_a_user_function_that_makes_much_of_one_record_finishes_and_then_waits() -> None:
    wire = Wire(buffers=1)
    task = source_task([0, 1], wire, batch=2, operator=FlatMapOperator(lambda n: range(10 * n, 10 * n + 7)))
    assert task.step() is Progress.BACKPRESSURED
    assert task.chain.num_records_in == 1
    assert task.chain.counters[0].num_records == 7


@pytest.mark.parametrize("buffers", [2, 3])
@pytest.mark.parametrize("segment", [1, 5, 13, 26, 100])
def test_standing_still_loses_nothing_and_reorders_nothing(buffers: int, segment: int) -> None:
    wire = Wire(buffers, segment)
    task = source_task(range(20), wire, batch=7)
    assert run_to_the_end(task, wire) == [*records(*range(20)), MAX_WATERMARK]


def test_a_task_that_is_not_runnable_gets_nothing_done() -> None:
    """What drivers rely on: asking it anyway changes nothing."""
    wire = Wire(buffers=2)
    task = source_task(range(50), wire)
    num_idle = 0
    for _ in range(200):
        if task.is_done:
            break
        if not task.is_runnable:
            before = (task.chain.num_records_in, wire.home.num_free, wire.partition.snapshot())
            assert task.step() in (Progress.IDLE, Progress.BACKPRESSURED)
            assert (task.chain.num_records_in, wire.home.num_free, wire.partition.snapshot()) == before
            num_idle += 1
            wire.partition.flush_all()
            wire.read()
        task.step()
    assert task.is_done
    assert num_idle > 5


def test_one_blocked_output_does_not_keep_another_from_going_on() -> None:
    slow, fast = Wire(buffers=1), Wire(buffers=1)
    task = source_task(range(3), slow, fast, batch=3)
    task.step()
    assert (slow.writer.is_blocked, fast.writer.is_blocked) == (True, True)
    fast.partition.flush_all()
    assert fast.read() == records(0, 1)
    assert task.is_runnable
    assert task.step() is Progress.BACKPRESSURED
    assert (slow.writer.is_blocked, fast.writer.is_blocked) == (True, False)


# -- the ends of a life ----------------------------------------------------------------------------


class Noting(Operator):
    def __init__(self) -> None:
        self.notes: list[object] = []

    def open(self) -> None:
        self.notes.append("open")

    def process(self, record: StreamRecord) -> None:
        self.notes.append(record.value)

    def process_watermark(self, watermark: Watermark) -> None:
        self.notes.append("end of time")
        super().process_watermark(watermark)

    def finish(self) -> None:
        self.notes.append("finish")
        for number in range(50):
            self.output.collect(StreamRecord(number))


def test_operators_open_in_the_first_step_and_end_once_behind_the_last_element() -> None:
    wire, operator = Wire(buffers=2), Noting()
    task = source_task([7, 8], wire, operator=operator)
    assert operator.notes == []
    arrived = run_to_the_end(task, wire)
    assert operator.notes == ["open", 7, 8, "end of time", "finish"]
    assert arrived == [MAX_WATERMARK, *records(*range(50))]


def test_what_is_emitted_at_the_end_holds_the_end_of_the_output_back() -> None:
    wire = Wire(buffers=1)
    task = source_task([], wire, operator=Noting())
    assert task.step() is Progress.BACKPRESSURED
    assert not wire.partition.is_finished


def test_a_finished_source_closes_its_reader() -> None:
    closed: list[bool] = []

    class Closing(IterableReader):
        def close(self) -> None:
            closed.append(True)

    wire = Wire()
    task = Task("source-0", chain_of(Operator(), wire), SourceInput("s", 0, Closing([1]), 4), [wire.writer])
    task.step()
    assert closed == []
    task.step()
    assert (task.is_done, closed[:1]) == (True, [True])


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_closing_gives_back_what_is_in_hand_wherever_the_task_stands(steps: int) -> None:
    into, out = Wire(), Wire(buffers=2, segment=33)  # what is written leaves a buffer open
    into.write(*range(6))
    task = Task("map-0", chain_of(Operator(), out), into.input, [out.writer])
    for _ in range(steps):
        task.step()
    task.poll()
    task.close()
    into.writer.close()
    for wire in (into, out):
        wire.partition.release()
        assert wire.home.num_free == len(wire.home.segments)


def test_an_exception_leaves_a_task_that_can_be_closed() -> None:
    def fails(value: object) -> None:
        raise ValueError(value)

    wire = Wire()
    task = sink_task(wire, fails)
    wire.write(1, 2, 3)
    with pytest.raises(UserCodeError, match="op, subtask 0, raised ValueError: 1"):
        task.step()
    task.close()
    wire.writer.close()
    wire.partition.release()
    assert wire.home.num_free == 3


# -- mail, snapshots, traces -----------------------------------------------------------------------


def test_mail_is_done_between_steps_in_order_also_by_a_blocked_task() -> None:
    wire, done = Wire(buffers=1), []
    task = source_task(range(9), wire, batch=9)
    task.step()
    assert not task.is_runnable
    task.submit(lambda: done.append(1))
    task.submit(lambda: done.append(2))
    assert (task.is_runnable, done) == (True, [])
    assert task.step() is Progress.BACKPRESSURED
    assert (task.is_runnable, done) == (False, [1, 2])


def test_mail_does_not_wake_a_task_that_is_done() -> None:
    task = source_task([], Wire())
    task.step()
    assert task.is_done
    task.submit(lambda: None)
    assert not task.is_runnable


def test_a_snapshot_counts_what_came_in_and_went_out() -> None:
    wire = Wire(buffers=9)
    task = source_task([1, 2, 3], wire, operator=FlatMapOperator(lambda n: [n, n]))
    task.step()
    shot = task.snapshot()
    assert (shot.name, shot.progress, shot.operators) == ("source-0", Progress.MADE, ("op",))
    assert (shot.num_records_in, shot.num_records_out) == (3, 6)
    task.step()
    assert task.snapshot().watermark == MAX_WATERMARK.timestamp


def test_a_trace_notes_each_change_of_progress_once() -> None:
    trace, wire = Trace(), Wire(buffers=9)
    source = SourceInput("source", 0, IterableReader(range(8)), 2)
    task = Task("source-0", chain_of(Operator(), wire), source, [wire.writer], trace=trace)
    run_to_the_end(task, wire)
    assert [event.kind for event in trace if event.subject == "source-0"] == ["made", "done"]


def test_a_trace_notes_why_a_task_rests_that_is_not_stepped() -> None:
    trace, wire = Trace(), Wire(buffers=1)
    source = SourceInput("source", 0, IterableReader(range(8)), 2)  # two records fill the only buffer
    task = Task("source-0", chain_of(Operator(), wire), source, [wire.writer], trace=trace)
    task.step()
    assert not task.is_runnable
    progress = task.progress
    task.note_rest()
    task.note_rest()
    assert task.progress is progress
    assert [event.kind for event in trace if event.subject == "source-0"] == ["made", "backpressured"]
