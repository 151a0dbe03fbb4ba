"""Golden scripts: what somebody does to the engine, and what stands there afterwards, in words.

A file of `scenarios/` is blocks of prose, commands, `---` and what they lead to. The first command builds what the rest
is about, and each block ends with the state: who is blocked, how many buffers are out, what waits in which queue.

    exchange segment=16 buffers=3 …     writers and readers alone; the script decides who does what
    job words segment=32 buffers=8 …    a whole job in the simulation; see JOBS for those there are

    python -m tests.test_scenarios --rewrite [NAME …]     write what happens now; then read the diff as prose

`README.md` beside this file lists the commands.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from refimpl.config import Config
from refimpl.consumer import InputGate, LocalInputChannel, NetworkInput
from refimpl.drivers import Flush, Simulation, StepTask
from refimpl.invariants import check_segments
from refimpl.job import StreamEnvironment
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
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElementSerializer,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.task import FlatMapOperator, IterableReader

SCENARIOS = Path(__file__).parent / "scenarios"
MOST_STEPS = 1_000  # no job here needs a tenth of them: a broken engine fails and does not hang
Lines = Iterator[str]


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
    being_filled = {builder.buffer.segment.id for builder in writer.open_builders}
    for sub, reader in zip(partition.subpartitions, readers, strict=True):
        queue = "; ".join(entries_of(sub, being_filled)) or "nothing"
        more = ", can be read" if sub.is_data_available else ""
        yield f"  for {reader}: {queue} (backlog {sub.backlog}{more})"


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


def numbers_of(words: Iterable[str], known: dict[str, object]) -> dict[str, object]:
    """The `name=value` words of a first command over the defaults in `known`."""
    given = dict(known)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise ValueError(f"{word!r} is none of {', '.join(f'{name}=' for name in known)}")
        given[name] = value if isinstance(known[name], str) else int(value)
    return given


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
            gate = InputGate(name, [LocalInputChannel(index, queue) for index, queue in enumerate(queues)])
            self.inputs[name] = NetworkInput(
                gate, elements, lambda: SpillingAdaptiveSpanningRecordDeserializer(config)
            )
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
                writer.emit_many([StreamRecord(word) for word in words])
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
            deadline = writer.next_deadline(self.now_ms)
            writer.on_timeout(now_ms)
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
        for number, consumer in enumerate(sub.consumers):
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


JOBS: dict[str, Callable[[StreamEnvironment, list[object]], None]] = {
    "words": words, "letters": letters, "clocks": clocks,
}  # fmt: skip


class Job:
    """A job of `JOBS` in the simulation; the script steps it, or the policy does."""

    DEFAULTS: ClassVar[dict[str, object]] = {
        "segment": 32, "buffers": 8, "timeout": -1, "batch": 1, "seed": 0, "policy": "random",
    }  # fmt: skip

    def __init__(self, words: list[str]) -> None:
        given = numbers_of(words[1:], self.DEFAULTS)
        config = Config(
            segment_size_bytes=given["segment"], num_buffers=given["buffers"], buffer_timeout_ms=given["timeout"],
            source_batch=given["batch"], buffers_per_channel=1, floating_buffers_per_gate=1,
        )  # fmt: skip
        environment = StreamEnvironment(config)
        self.results: list[object] = []
        JOBS[words[0]](environment, self.results)
        self.simulation = Simulation(environment, given["seed"], given["policy"])

    def do(self, words: list[str]) -> Lines:
        match words:
            case ["step", *name]:
                yield self.step(StepTask(" ".join(name)))
            case ["flush"]:
                due = [action for action in self.simulation.enabled() if isinstance(action, Flush)]
                yield self.step(due[0])
            case ["enabled"]:
                yield "enabled: " + (", ".join(map(str, self.simulation.enabled())) or "nothing, the job is done")
            case ["run"]:
                before = self.simulation.num_steps
                self.simulation.run(max_steps=MOST_STEPS)
                assert self.simulation.is_done, f"{MOST_STEPS} steps and no end"
                yield f"done after {self.simulation.num_steps - before} more steps"
            case ["results"]:
                yield f"results: {' '.join(map(str, self.results))}"
            case _:
                raise ValueError(f"{' '.join(words)!r} is none of step TASK, flush, enabled, run, results")

    def step(self, action: StepTask | Flush) -> str:
        self.simulation.step(action)
        return f"{self.simulation.time_ms:g} ms: {action}"

    def state(self) -> Lines:
        deployment = self.simulation.deployment
        check_segments(deployment)
        for task in deployment.snapshot().tasks:
            clock = {MIN_TIMESTAMP: "none yet", MAX_WATERMARK.timestamp: "end"}.get(task.watermark, task.watermark)
            moved = f"{task.num_records_in} in, {task.num_records_out} out"
            yield f"{task.name}: {task.progress.value}; {moved}; watermark {clock}"
        for writer in deployment.writers.values():
            yield from state_of(writer, self.readers_of(writer.partition))

    def readers_of(self, partition: ResultPartition) -> list[str]:
        """The tasks that read the queues of `partition`, in the order of the queues."""
        names = {id(channel.subpartition): gate.name
                 for gate in self.simulation.deployment.gates for channel in gate.channels}  # fmt: skip
        return [names[id(sub)] for sub in partition.subpartitions]

    def close(self) -> None:
        self.simulation.deployment.close()
        pool = self.simulation.deployment.pool
        assert pool.num_free == len(pool.segments), "a buffer did not come home"


WORLDS: dict[str, Callable[[list[str]], World]] = {"exchange": Exchange, "job": Job}


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
    assert len(ALL) >= 8
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
