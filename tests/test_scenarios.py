"""Golden scripts: what somebody does to the engine, and what stands there afterwards, in words.

A file of `scenarios/` is blocks of prose, commands, `---` and what they lead to. The first command builds what the rest
is about, and each block ends with the state: who is blocked, how many buffers are out, what waits in which queue.

    exchange segment=16 buffers=3 …     writers and readers alone; the script decides who does what
    job words segment=32 buffers=8 …    a whole job in the simulation; see JOBS for those there are
    job far task_managers=2 …           the same, with a wire between its tasks
    coordinator timeout=100 …           the coordinator of checkpoints alone, whose tasks and store the script plays
    stored counts every=2 …             a whole job with a store, which outlives its crashes
    unaligned two task_managers=3 …     the same, with barriers that overtake, and the bytes that they pass
    storm refresh=0                     Storm's way to push back: its queues, flags, notices and spouts
    cluster slots=2 seed=3 …            a job under a cluster whose members can be lost
    regions mode=BATCH …                a whole job region by region, with what is kept between them

    python -m tests.test_scenarios --rewrite [NAME …]     write what happens now; then read the diff as prose

`README.md` beside this file lists the commands.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, ClassVar, Protocol

import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.consumer import (
    BufferManager,
    BufferManagerSnapshot,
    InputGate,
    LocalInputChannel,
    NetworkInput,
    RemoteInputChannel,
)
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Action, Deliver, Flush, Send, StepTask
from refimpl.drivers.simulation.wire import Link, Way
from refimpl.errors import RemoteTransportError
from refimpl.exchange import AddCredit, BufferResponse, CloseRequest, Message, PartitionRequest
from refimpl.job import DataStream, StreamEnvironment
from refimpl.laws import check_segments
from refimpl.memory import DataType, LocalBufferPool, NetworkBufferPool
from refimpl.producer import (
    BroadcastRecordWriter,
    BroadcastSelector,
    KeyGroupSelector,
    PipelinedSubpartition,
    RecordWriter,
    ResultPartition,
    RoundRobinSelector,
)
from refimpl.records import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    STRING,
    CancelCheckpointMarker,
    CheckpointBarrier,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElement,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.task import (
    LATE,
    FlatMapOperator,
    IterableReader,
    KeyedProcessFunction,
    ProcessContext,
    SessionWindows,
    TumblingWindows,
    WindowAssigner,
)
from tests.support.batch_worlds import Regions
from tests.support.checkpoint_worlds import Coordinator, Lines, Recovering, numbers_of
from tests.support.cluster_worlds import Clustered
from tests.support.storm_world import StormWorld
from tests.support.unaligned_worlds import Overtaking
from tests.support.writer_rig import emit_all

SCENARIOS = Path(__file__).parent / "scenarios"
MOST_STEPS = 1_000  # no job here needs a tenth of them: a broken engine fails and does not hang


class World(Protocol):
    """What a script acts upon: `do` runs one command, `state` tells what stands there, `close` ends it."""

    def do(self, words: list[str]) -> Lines: ...

    def state(self) -> Lines: ...

    def close(self) -> None: ...


def state_of(writer: RecordWriter, readers: Sequence[str]) -> Lines:
    """An output in words: its buffers, then its queues, the head first."""
    partition, pool = writer.partition, writer.partition.pool.snapshot()
    mark = "" if pool.is_available else "; no buffer left"
    if writer.is_blocked:
        mark = "; blocked: a record waits for a buffer"
    yield f"{partition.name}: {pool.num_in_use} of {pool.size} buffers out{mark}"
    being_filled = {builder.buffer.segment.id for builder in writer.copy.open_builders}
    for sub, reader in zip(partition.subpartitions, readers, strict=True):
        queue = "; ".join(entries_of(sub, being_filled)) or "nothing"
        more = ", can be read" if sub.is_data_available else ""
        yield f"  for {reader}: {queue} (backlog {sub.count_backlog()}{more})"


def entries_of(sub: PipelinedSubpartition, being_filled: set[int]) -> Lines:
    """Each entry of a queue; segments have numbers, since several queues may hold the same one."""
    for entry in sub.snapshot().queue:
        if entry.data_type is not DataType.DATA:
            yield "an event"
            continue
        read = entry.written_bytes - entry.unread_bytes
        words = f"{entry.written_bytes} of {entry.capacity_bytes} B in segment {entry.segment_id}"
        yield words + (f", {read} read" if read else "") + (", open" if entry.segment_id in being_filled else "")


def in_words(element: object) -> str:
    match element:
        case StreamRecord():
            return f"record {element.value}"
        case Watermark():
            return f"watermark {'end' if element == MAX_WATERMARK else element.timestamp}"
        case StreamStatus():
            return f"status {element.name.lower()}"
    return type(element).__name__


# -- writers and readers alone -----------------------------------------------------------------------


class Exchange:
    """`producers` writers and `consumers` inputs; each writer has `buffers` buffers of `segment` bytes.

    A record is a word; on the stream it is 4 bytes of length, a tag, a count, and its letters.
    """

    DEFAULTS: ClassVar[dict[str, object]] = {
        "producers": 1, "consumers": 1, "segment": 16, "buffers": 4, "timeout": -1, "route": "in_turn",
    }  # fmt: skip

    def __init__(self, words: list[str]) -> None:
        given = numbers_of(words, self.DEFAULTS)
        config = Config(segment_size_bytes=given["segment"], buffer_timeout_ms=given["timeout"])
        elements = StreamElementSerializer(STRING)
        self.now_ms = 0.0
        spare = 4  # so that it is a writer's own pool that runs dry, not the one they all fetch from
        self.home = NetworkBufferPool(given["producers"] * given["buffers"] + spare, given["segment"])
        self.readers = [f"sink-{number}" for number in range(given["consumers"])]
        self.writers: dict[str, RecordWriter] = {}
        for number in range(given["producers"]):
            name = f"source-{number}"
            channels = len(self.readers)
            pool = LocalBufferPool(self.home, given["buffers"], given["buffers"], name, channels)
            make, selector = self.route(given["route"])
            self.writers[name] = make(ResultPartition(name, channels, pool, config), selector, elements)
        self.inputs: dict[str, NetworkInput] = {}
        for number, name in enumerate(self.readers):
            queues = [writer.partition.subpartitions[number] for writer in self.writers.values()]
            gate = InputGate(name, [LocalInputChannel(index, queue.view) for index, queue in enumerate(queues)])
            self.inputs[name] = NetworkInput(gate, elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(config))
            gate.open()

    @staticmethod
    def route(name: str) -> tuple[type[RecordWriter], object]:
        if name == "by_key":
            return RecordWriter, KeyGroupSelector(lambda word: word.partition(":")[0], 128)
        if name == "to_all":
            return BroadcastRecordWriter, BroadcastSelector()
        if name == "in_turn":
            return RecordWriter, RoundRobinSelector()
        raise ValueError(f"route={name} is none of in_turn, by_key, to_all")

    def do(self, words: list[str]) -> Lines:
        who = words[0]
        if who in self.writers:
            return self.write(self.writers[who], words[1], words[2:])
        if who in self.inputs:
            return self.read(self.inputs[who], words[1])
        if who == "time":
            return self.pass_time(float(words[1]))
        raise ValueError(f"{who!r} is none of {', '.join([*self.writers, *self.inputs])}, time")

    def write(self, writer: RecordWriter, command: str, words: list[str]) -> Lines:
        match command:
            case "emit":
                emit_all(writer, [StreamRecord(word) for word in words])
            case "watermark":
                writer.broadcast(Watermark(int(words[0])))
            case "idle" | "active":
                writer.broadcast(StreamStatus[command.upper()])
            case "event":
                writer.broadcast_event(CancelCheckpointMarker(1))
            case "flush":
                writer.flush_all()
            case "resume":
                is_through = writer.resume()
                yield f"{writer.partition.name}: {'nothing waits any more' if is_through else 'still waits'}"
            case "finish":
                writer.finish()
            case "bytes":
                yield from bytes_of(writer.partition)
            case _:
                raise ValueError(f"a writer cannot {command!r}")

    def read(self, source: NetworkInput, command: str) -> Lines:
        name = source.gate.name
        num_ended = source.gate.snapshot().num_ended
        if command in ("read", "take"):
            held = len(source.held_buffers)
            taken = source.take()
            kind = "a buffer" if len(source.held_buffers) > held else "an event"
            yield f"{name}: takes {kind}" if taken else f"{name}: finds nothing"
            while (element := source.next_element()) is not None:
                yield f"{name}: {in_words(element)}"
        if source.gate.snapshot().num_ended > num_ended:
            yield f"{name}: end of a channel{'; it was the last' if source.gate.is_finished else ''}"
        if command in ("read", "recycle"):
            source.recycle()
        if command not in ("read", "take", "recycle"):
            raise ValueError(f"a reader cannot {command!r}")

    def pass_time(self, now_ms: float) -> Lines:
        """Go to `now_ms`, asking each writer on the way what it waits for."""
        for name, writer in self.writers.items():
            deadline = writer.partition.next_deadline(self.now_ms)
            writer.partition.on_timeout(now_ms)
            yield f"{name}: " + ("waits for no flush" if deadline is None else f"flush due at {deadline:g} ms")
        self.now_ms = now_ms

    def state(self) -> Lines:
        for writer in self.writers.values():
            yield from state_of(writer, self.readers)

    def close(self) -> None:
        for source in self.inputs.values():
            source.close()
        for writer in self.writers.values():
            writer.close()
            writer.partition.release()
        assert self.home.num_free == len(self.home.segments), "a buffer did not come home"


def bytes_of(partition: ResultPartition) -> Lines:
    """What lies in the queued buffers, byte by byte; nothing is taken."""
    for sub in partition.subpartitions:
        for number, consumer in enumerate(sub.queue):
            twin = consumer.copy()
            piece = twin.build()
            yield f"{partition.name}[{sub.index}], buffer {number}: {piece.data.hex(' ')}"
            piece.recycle()
            twin.close()


# -- a whole job --------------------------------------------------------------------------------------


def words(environment: StreamEnvironment, results: list[object]) -> None:
    """Two lines of words, counted by two subtasks, each word always by the same."""

    def counting() -> FlatMapOperator:
        counts: Counter[str] = Counter()

        def count(word: str) -> list[str]:
            counts[word] += 1
            return [f"{word}={counts[word]}"]

        return FlatMapOperator(count)

    lines = environment.from_collection(["red fish blue fish", "one fish two fish"], "lines", STRING)
    split = lines.flat_map(str.split, "split", STRING)
    counted = split.key_by(lambda word: word).transform("count", counting, STRING).set_parallelism(2)
    counted.rebalance().sink(results.append)


def letters(environment: StreamEnvironment, results: list[object]) -> None:
    """Eight letters, one a step, from a source to a sink in another task."""
    environment.from_collection("abcdefgh", "letters", STRING).rebalance().sink(results.append)


def clocks(environment: StreamEnvironment, results: list[object]) -> None:
    """Two sources with event times of their own: one at 10, 20, 30, the other at 1, 2, 3."""

    def reader(subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader([10, 20, 30] if subtask == 0 else [1, 2, 3])

    source = environment.source(reader, "clock", parallelism=2)
    timed = source.assign_timestamps(lambda value: value, 0, every=1).set_parallelism(2)
    timed.rebalance().sink(results.append)


def far(environment: StreamEnvironment, results: list[object]) -> None:
    """The letters, with a sink that shares no slot with the source: with two TaskManagers each has its own."""
    stream = environment.from_collection("abcdefgh", "letters", STRING).rebalance()
    stream.sink(results.append).slot_sharing_group("far")


def pairs(environment: StreamEnvironment, results: list[object]) -> None:
    """Two sources, of capital and of small letters, and two far sinks that read one of them each."""

    def reader(subtask: int, _parallelism: int) -> IterableReader:
        return IterableReader("ABCDEFGH" if subtask == 0 else "abcdefgh")

    stream = environment.source(reader, "letters", STRING, parallelism=2).forward()
    stream.sink(results.append).set_parallelism(2).slot_sharing_group("far")


class Elements:
    """A reader of elements as they are, one a step: records, watermarks, and whether the source is idle."""

    def __init__(self, elements: Iterable[object]) -> None:
        self._elements = [each if isinstance(each, StreamElement) else StreamRecord(each) for each in elements]

    def read(self, _max_records: int) -> list[Any] | None:
        return [self._elements.pop(0)] if self._elements else None

    def close(self) -> None: ...


def elements(environment: StreamEnvironment, name: str, *given: object) -> DataStream:
    return environment.source(lambda _i, _n: Elements(given), name, STRING).rebalance()


def quiet(environment: StreamEnvironment, results: list[object]) -> None:
    """A stream that says something about time and is idle then, beside one that goes on."""
    left = elements(environment, "quiet", Watermark(3), StreamStatus.IDLE, StreamStatus.ACTIVE, Watermark(25))
    right = elements(environment, "busy", Watermark(10), "a", Watermark(20), "b", Watermark(30))
    left.connect(right).map(str, str, "both").sink(results.append)


def flood(environment: StreamEnvironment, results: list[object]) -> None:
    """Twelve letters of one source and three of another, into the two inputs of one task."""
    many, few = elements(environment, "many", *"abcdefghijkl"), elements(environment, "few", *"XYZ")
    many.connect(few).map(str, str, "both").sink(results.append)


class Alarms(KeyedProcessFunction):
    """A value sets a timer for its time; each timer below 20 sets one ten later, and tells its key and time."""

    def process_element(self, value: str, ctx: ProcessContext) -> None:
        ctx.timers.register_event_time_timer(int(value[1:]))

    def on_timer(self, timestamp: int, ctx: ProcessContext) -> Iterator[object]:
        yield f"{ctx.current_key}{timestamp}"
        if timestamp < 20:
            ctx.timers.register_event_time_timer(timestamp + 10)


def alarms(environment: StreamEnvironment, results: list[object]) -> None:
    """Timers that set timers, of two keys; what is read says when they are to fire, and then what time it is."""
    stream = elements(environment, "read", "a5", "b7", Watermark(5), "a3", Watermark(16), Watermark(40))
    stream.key_by(lambda value: value[0]).process(Alarms(), "alarms").sink(results.append)


def three(environment: StreamEnvironment, results: list[object]) -> None:
    """Three sources of one task; each has three letters of its own."""
    one, *others = (elements(environment, name, *(f"{name[0]}{n}" for n in (1, 2, 3))) for name in ("x", "y", "z"))
    one.union(*others).sink(results.append, "sink")


def at(value: str) -> StreamRecord:
    """A record whose event time is the number behind its key: `a12`."""
    return StreamRecord(value, int(value[1:]))


class Listing:
    """The values of a window, in the order in which they came."""

    def create_accumulator(self) -> tuple[str, ...]:
        return ()

    def add(self, value: str, accumulator: tuple[str, ...]) -> tuple[str, ...]:
        return (*accumulator, value)

    def merge(self, one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
        return one + other

    def get_result(self, accumulator: tuple[str, ...]) -> str:
        return "+".join(accumulator)


def windowed(
    environment: StreamEnvironment, results: list[object], windows: WindowAssigner, lateness: int, *given: object
) -> None:
    """Windows by key; each is told with its start and end, and what is late with "late" before it."""
    stream = elements(environment, "read", *given).key_by(lambda value: value[0])
    found = stream.window(windows).allowed_lateness(lateness).aggregate(Listing(), "windows")
    found.map(lambda row: f"[{row[1]},{row[2]}):{row[3]}", "told").sink(results.append)
    found.side_output(LATE).map(lambda value: f"late:{value}", "late").sink(results.append, "late sink")


def visits(environment: StreamEnvironment, results: list[object]) -> None:
    """Sessions with a gap of 10: two, then one that touches both, then one a tick too far."""
    given = at("a0"), at("a20"), Watermark(5), at("a10"), at("a31"), Watermark(29), Watermark(40)
    windowed(environment, results, SessionWindows(10), 0, *given)


def updates(environment: StreamEnvironment, results: list[object]) -> None:
    """Windows of 10 that wait 5 longer: one late record is an update, the next comes too late."""
    given = at("a1"), at("a7"), Watermark(9), at("a3"), Watermark(13), at("a4"), Watermark(14), at("a5"), at("a12")
    windowed(environment, results, TumblingWindows(10), 5, *given)


def idle(environment: StreamEnvironment, results: list[object]) -> None:
    """A stream that falls silent and says so, united with one that goes on."""
    silent = elements(
        environment, "silent", Watermark(5), StreamStatus.IDLE, StreamStatus.ACTIVE, at("a30"), Watermark(40)
    )
    busy = elements(
        environment, "busy", at("b7"), Watermark(10), at("b12"), Watermark(25), at("b26"), Watermark(35), Watermark(50)
    )
    silent.union(busy).sink(results.append)


JOBS: dict[str, Callable[[StreamEnvironment, list[object]], None]] = {
    "words": words, "letters": letters, "clocks": clocks, "far": far, "pairs": pairs, "quiet": quiet, "flood": flood,
    "alarms": alarms, "three": three, "visits": visits, "updates": updates, "idle": idle,
}  # fmt: skip


@dataclass(frozen=True)
class FarRead:
    """A channel of `gate` over `link`, and the queue it reads."""

    link: str
    gate: str
    channel: RemoteInputChannel
    queue: PipelinedSubpartition


class Job:
    """A job of `JOBS` in the simulation; the script steps it, or the policy does.

    With several TaskManagers, `delay` is how long something is on a wire at most, in ms.
    """

    DEFAULTS: ClassVar[dict[str, object]] = {
        "segment": 32, "buffers": 8, "timeout": -1, "batch": 1, "seed": 0, "policy": "random",
        "task_managers": 1, "exclusive": 1, "floating": 1, "credit": 1, "delay": 0, "flink": "1.11.4",
    }  # fmt: skip

    def __init__(self, words: list[str]) -> None:
        given = numbers_of(words[1:], self.DEFAULTS)
        config = Config(
            segment_size_bytes=given["segment"],
            num_buffers=given["buffers"],
            buffer_timeout_ms=given["timeout"],
            source_batch=given["batch"],
            buffers_per_channel=given["exclusive"],
            floating_buffers_per_gate=given["floating"],
            credit_based=bool(given["credit"]),
            flink_version=FlinkVersion(given["flink"]),
        )
        environment = StreamEnvironment(config)
        self.results: list[object] = []
        JOBS[words[0]](environment, self.results)
        self.simulation = Simulation(
            environment,
            given["seed"],
            given["policy"],
            num_task_managers=given["task_managers"],
            max_delay_ms=given["delay"],
        )
        self.far_reads: dict[bytes, FarRead] = {}
        parts = self.simulation.deployments
        for deployment in parts:
            for connection_id, reads in deployment.shuffle.remote_reads.items():
                for read in reads:
                    gate = next(gate.name for gate in deployment.gates if read.channel in gate.channels)
                    view = parts[connection_id.task_manager].shuffle.find(read.partition_id, read.subpartition)
                    link = f"tm-{deployment.task_manager} reads {connection_id}"
                    self.far_reads[read.channel.receiver] = FarRead(link, gate, read.channel, view.subpartition)

    def do(self, words: list[str]) -> Lines:
        match words:
            case ["step", *name]:
                yield from self.step(StepTask(" ".join(name)))
            case ["flush"]:
                yield from self.step(self.first_enabled(Flush))
            case ["barrier", number, *name]:
                self.barrier(CheckpointBarrier(int(number), 0), " ".join(name))
            case ["cancel", number, *name]:
                self.barrier(CancelCheckpointMarker(int(number)), " ".join(name))
            case ["send", way, *link]:
                yield from self.send(self.link(link), Way(way))
            case ["deliver", way, *link]:
                yield from self.step(self.first_enabled(Deliver, self.link(link), Way(way)))
            case ["lose", *link]:
                name = self.link(link)
                self.simulation.lose(name)
                yield f"lost: {name}"
            case ["enabled"]:
                yield "enabled: " + (", ".join(map(str, self.simulation.enabled())) or "nothing, the job is done")
            case ["run"]:
                before = self.simulation.num_steps
                self.simulation.run(max_steps=MOST_STEPS)
                assert self.simulation.is_done, f"{MOST_STEPS} steps and no end"
                yield f"done after {self.simulation.num_steps - before} more steps"
            case ["run", "without", *name]:
                yield self.run_without(StepTask(" ".join(name)))
            case ["results"]:
                yield f"results: {' '.join(map(str, self.results))}"
            case _:
                known = "step TASK, barrier N TASK, cancel N TASK, flush, send WAY, deliver WAY, lose, enabled, run"
                raise ValueError(f"{' '.join(words)!r} is none of {known}, run without TASK, results")

    def step(self, action: Action) -> Lines:
        try:
            self.simulation.step(action)
        except RemoteTransportError as error:
            yield f"{action}: the job fails"
            yield from wrap(f"{type(error).__name__}: {error}", 110, initial_indent="  ", subsequent_indent="  ")
        else:
            yield f"{self.simulation.time_ms:g} ms: {action}"

    def barrier(self, barrier: CheckpointBarrier | CancelCheckpointMarker, task: str) -> None:
        """Put a barrier, or the marker that cancels one, behind all that a task has written."""
        for deployment in self.simulation.deployments:
            for each in deployment.tasks:
                if each.name == task:
                    for writer in each.writers:
                        writer.broadcast_event(barrier)

    def run_without(self, asleep: StepTask) -> str:
        """Let everything move but one task."""
        for num_steps in range(MOST_STEPS):
            awake = [action for action in self.simulation.enabled() if action != asleep]
            if not awake:
                return f"after {num_steps} more steps nothing else can move"
            self.simulation.step(awake[0])
        raise AssertionError(f"{MOST_STEPS} steps and no end")

    def send(self, link: str, way: Way) -> Lines:
        num_before = len(self.simulation.links[link].messages(way))
        yield from self.step(Send(link, way))
        yield from self.on_its_way(link, way, num_before)

    def first_enabled(self, kind: type[Action], *values: object) -> Action:
        """The action of that kind, and on that link, that could happen first."""
        for action in self.simulation.enabled():
            if isinstance(action, kind) and not (values and (action.link, action.way) != values):
                return action
        raise ValueError(f"no {kind.__name__} is enabled")

    def link(self, words: list[str]) -> str:
        """The one that is named, or the only one."""
        return " ".join(words) or next(iter(self.simulation.links))

    # -- in words ----------------------------------------------------------------------------------------

    def state(self) -> Lines:
        for deployment in self.simulation.deployments:
            check_segments(deployment)
        for task in self.simulation.snapshot().tasks:
            clock = {MIN_TIMESTAMP: "none yet", MAX_WATERMARK.timestamp: "end"}.get(task.watermark, task.watermark)
            moved = f"{task.num_records_in} in, {task.num_records_out} out"
            yield f"{task.name}: {task.progress.value}; {moved}; watermark {clock}"
            if task.alignment is not None and task.alignment.checkpoint_id >= 0:
                arrived = ", ".join(map(str, task.alignment.arrived))
                yield f"  waits for barrier {task.alignment.checkpoint_id}, which came on channel {arrived}"
            if task.cut is not None:
                yield f"  cut by barrier {task.cut.checkpoint_id} behind {task.cut.num_records_in} in"
        for deployment in self.simulation.deployments:
            for writer in deployment.writers.values():
                yield from state_of(writer, self.readers_of(writer.partition))
        for link in self.simulation.links.values():
            yield from self.state_of_link(link)

    def readers_of(self, partition: ResultPartition) -> list[str]:
        """The tasks that read the queues of `partition`, in the order of the queues."""
        names = {id(read.queue): read.gate for read in self.far_reads.values()}
        for deployment in self.simulation.deployments:
            for gate in deployment.gates:
                for channel in gate.channels:
                    if isinstance(channel, LocalInputChannel):
                        names[id(channel.view.subpartition)] = gate.name
        return [names[id(sub)] for sub in partition.subpartitions]

    def state_of_link(self, link: Link) -> Lines:
        """A wire in words: each channel with its buffers, as both ends know them, and what is on its way."""
        if link.is_closed:
            yield f"{link.name}: {'closed' if link.consumer.error is None else 'lost'}"
            return
        yield f"{link.name}: open" + ("" if link.consumer.pause is None else "; the consumer reads nothing from it")
        at_producer = {reader.receiver: reader.credit for reader in link.producer.snapshot().readers.values()}
        for receiver, read in self.far_reads.items():
            buffers = read.channel.buffers
            if read.link != link.name:
                continue
            if read.channel.is_released:
                yield f"  for {read.gate}: has ended"
            elif isinstance(buffers, BufferManager):
                shot, num_received = BufferManagerSnapshot.of(buffers), read.channel.snapshot().num_available
                empty = f"{shot.num_exclusive_available} exclusive and {shot.num_floating_available} floating empty"
                yield f"  for {read.gate}: {num_received} received; {empty}, {shot.num_promised} of them promised"
                yield f"  from {read.channel.producer}: credit {at_producer.get(receiver, 0)}"
        for way in Way:
            yield from self.on_its_way(link.name, way)

    def on_its_way(self, link: str, way: Way, first: int = 0) -> Lines:
        """What is on its way, from the `first` message on."""
        arrow = "consumer → producer" if way is Way.REQUESTS else "producer → consumer"
        for message in self.simulation.links[link].messages(way)[first:]:
            yield f"  {arrow}: {self.message_in_words(message)}"

    def message_in_words(self, message: Message) -> str:
        kind = type(message).__name__
        if isinstance(message, CloseRequest):
            return kind
        kind += f" {self.far_reads[message.receiver].channel.producer}"
        match message:
            case PartitionRequest() | AddCredit():
                return f"{kind}, credit {message.credit}"
            case BufferResponse():
                size = f"{len(message.payload)} B" if message.data_type is DataType.DATA else "an event"
                return f"{kind}, number {message.sequence_number}, {size}, backlog {message.backlog}"
        return kind

    def close(self) -> None:
        for deployment in self.simulation.deployments:
            deployment.close()
            pool = deployment.pool
            assert pool.num_free == len(pool.segments), "a buffer did not come home"


WORLDS: dict[str, Callable[[list[str]], World]] = {
    "exchange": Exchange, "job": Job, "coordinator": Coordinator, "stored": Recovering,
    "unaligned": Overtaking, "storm": StormWorld, "cluster": Clustered, "regions": Regions,
}  # fmt: skip


# -- the runner ----------------------------------------------------------------------------------------


def replay(script: str) -> str:
    """The script with what happens now below each `---`.

    Raises:
        ValueError: a line is no command; names it.
    """
    world: World | None = None
    blocks = []
    try:
        for block in script.strip().split("\n\n"):
            above = block.partition("\n---")[0]
            happened: list[str] = []
            for line in above.splitlines():
                if line.startswith("#") or not line.strip():
                    continue
                kind, *rest = line.split()
                try:
                    if world is None:
                        world = WORLDS[kind](rest)
                    else:
                        happened += world.do([kind, *rest])
                except (KeyError, IndexError, ValueError) as error:
                    raise ValueError(f"{line!r}: {error}") from error
            if world is not None and "\n---" in block:
                happened += world.state()
            blocks.append("\n".join([above, "---", *happened]) if "\n---" in block else above)
    finally:
        if world is not None:
            world.close()
    return "\n\n".join(blocks) + "\n"


ALL = sorted(SCENARIOS.glob("*.txt"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_scenario_goes_as_it_is_written(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    assert replay(script) == script, "right as it is? python -m tests.test_scenarios --rewrite, and read the diff"


def test_every_scenario_says_what_it_shows_and_shows_something() -> None:
    assert len(ALL) >= 49
    for path in ALL:
        script = path.read_text(encoding="utf-8")
        assert script.startswith("# "), f"{path.name}: begin with what it shows"
        assert script.count("\n---\n") >= 3, f"{path.name}: too little happens"
        assert max(map(len, script.splitlines())) <= 120, path.name


def test_a_changed_expectation_is_noticed() -> None:
    script = (SCENARIOS / "record_in_three_buffers.txt").read_text(encoding="utf-8")
    assert replay(script.replace("16 of 16 B", "15 of 16 B")) == script


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exchange segments=3", "'segments=3' is none of producers=, consumers=, segment="),
        ("exchange route=east", "route=east is none of in_turn, by_key, to_all"),
        ("exchange\nsource-7 emit a", "'source-7' is none of source-0, sink-0, time"),
        ("exchange\nsource-0 sing", "a writer cannot 'sing'"),
        ("exchange\nsink-0 sing", "a reader cannot 'sing'"),
        ("job sums", "'job sums': 'sums'"),
        ("job letters\njump", "'jump' is none of step TASK"),
        ("job far task_managers=2\nsend smoke", "'smoke' is not a valid Way"),
        ("job far task_managers=2\nsend requests tm-7", "'send requests tm-7': 'tm-7'"),
        ("job far task_managers=2\ndeliver requests", "no Deliver is enabled"),
        ("dance", "'dance': 'dance'"),
    ],
)
def test_a_mistake_in_a_script_is_named(script: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        replay(script + "\n---")


def rewrite(names: Sequence[str]) -> int:
    """Write what happens now into the files called `names`, or into all; return the exit status."""
    known = {path.stem: path for path in ALL}
    if unknown := [name for name in names if name not in known]:
        print(f"there is no scenario {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or known:
        before = known[name].read_text(encoding="utf-8")
        after = replay(before)
        if after != before:
            known[name].write_text(after, encoding="utf-8")
            print(f"rewrote scenarios/{name}.txt")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rewrite"]:
        sys.exit(f"usage: python -m tests.test_scenarios --rewrite [NAME …]; pytest {Path(__file__).name} compares")
    sys.exit(rewrite(sys.argv[2:]))
