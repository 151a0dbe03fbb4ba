"""A world of golden scripts: a job whose barriers overtake, with the bytes that are in flight.

A byte that is no printable letter is shown as a dot: a word of n letters is n + 6 bytes on the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from refimpl.checkpoint import CheckpointRequest
from refimpl.config import Config, FlinkVersion
from refimpl.consumer import ConnectedChannel, NetworkInput, RecoveredInputChannel
from refimpl.consumer.channel import InputChannel
from refimpl.drivers.file_transactions import FileSink
from refimpl.drivers.simulation import Action, CallStore, Deliver, ReadOn, Send
from refimpl.job import DataStream, StreamEnvironment
from refimpl.records import STRING, CheckpointBarrier, event_from_bytes
from refimpl.state import InFlightData, SectionKind
from refimpl.state.sections import read_sections, read_table
from refimpl.task import Task
from tests.support.checkpoint_worlds import JobMaker, Lines, Recovering, numbers_of, tidy

IN_FLIGHT = {SectionKind.INPUT_IN_FLIGHT: "in", SectionKind.OUTPUT_IN_FLIGHT: "out"}


def two(environment: StreamEnvironment, folder: Path) -> None:
    """Two sources of one sink; each has three words of its own."""
    united(environment, folder, ["x1", "x2", "x3"], ["y1", "y2", "y3"])


def uneven(environment: StreamEnvironment, folder: Path) -> None:
    """The same, but one of them has a single word."""
    united(environment, folder, ["x1"], ["y1", "y2", "y3"])


def long(environment: StreamEnvironment, folder: Path) -> None:
    """One source of one sink, two of whose words need two buffers of 16 bytes."""
    united(environment, folder, ["one-of-two-pieces", "two-of-two-pieces", "end"])


def united(environment: StreamEnvironment, folder: Path, *given: list[str]) -> None:
    """A source for each list, all of them read by a sink; each has a TaskManager of its own if there are so many."""
    streams: list[DataStream] = []
    for words in given:
        source = environment.from_collection(words, words[0][0], STRING).set_parallelism(1)
        streams.append(source.slot_sharing_group(words[0][0]).rebalance())
    one = streams[0].union(*streams[1:]) if streams[1:] else streams[0]
    one.sink_to(FileSink(folder), name="sink").set_parallelism(1).slot_sharing_group("sink")


class Overtaking(Recovering):
    """A job of `JOBS` with unaligned checkpoints, which the script asks for and whose steps it takes."""

    DEFAULTS: ClassVar[dict[str, object]] = {**Recovering.DEFAULTS, "unaligned": 1, "flink": "1.11.4", "wait_ms": 0}
    JOBS: ClassVar[dict[str, JobMaker]] = {"two": two, "uneven": uneven, "long": long}

    def config(self) -> Config:
        given = numbers_of((), self.given)
        version = FlinkVersion(str(given["flink"]))
        wait_ms, unaligned = int(given["wait_ms"]), bool(given["unaligned"])
        config = replace(super().config(), unaligned=unaligned, flink_version=version)
        return replace(config, aligned_checkpoint_timeout_ms=wait_ms)

    def done(self, words: list[str]) -> Lines:
        match words:
            case ["ask"]:
                self.ask()
            case ["step", *tasks]:
                for task in tasks:
                    yield from self.step(self.first_enabled(f"step {task}"))
            case ["carry", *link]:
                yield from self.all_of(" ".join(link), Send, Deliver, ReadOn)
            case ["put"]:
                yield from self.all_of("", CallStore)
            case ["wait", ms]:
                self.wait(float(ms))
            case ["kinds"]:
                yield from self.kinds()
            case ["captured"]:
                yield from self.captured()
            case _:
                yield from super().done(words)

    def ask(self) -> None:
        """Ask for a checkpoint: each source is told, and does it in its next step."""
        recovery, now_ms = self.simulation.recovery, self.simulation.time_ms
        assert recovery is not None
        made = recovery.checkpoints
        made._carry_out(made.coordinator.submit(CheckpointRequest(1, now_ms), now_ms), now_ms)

    def all_of(self, text: str, *kinds: type[Action]) -> Lines:
        """Do what there is to do of these kinds and with `text` in it, and what follows of them from it."""
        while found := [each for each in self.simulation.enabled() if isinstance(each, kinds) and text in str(each)]:
            self.simulation.step(found[0])
            yield from self.news()

    # -- in words ----------------------------------------------------------------------------------------

    def captured(self) -> Lines:
        """What the files in the store have of channels, by the side it was captured on."""
        for key in sorted(self.store.files):
            if not key.endswith(".state"):
                continue
            read = partial(self.store.get, key)
            for section in read_sections(read, read_table(read, self.store.size(key), key), key):
                if section.kind in IN_FLIGHT:
                    for entry in InFlightData.from_bytes(section.raw, key).entries:
                        yield f"{tidy(key)}: {IN_FLIGHT[section.kind]}, {entry.name}: {in_words(entry.data)}"

    def wait(self, ms: float) -> None:
        """Let time pass, though others could move; the tasks are told."""
        self.simulation.time_ms += ms
        for deployment in self.simulation.deployments:
            for task in deployment.tasks:
                task.on_timeout(self.simulation.time_ms)

    def kinds(self) -> Lines:
        """Whether each checkpoint has been an unaligned one so far."""
        recovery = self.simulation.recovery
        assert recovery is not None
        for each in recovery.checkpoints.stats.snapshot().history:
            yield f"checkpoint {each.checkpoint_id}: {'unaligned' if each.is_unaligned else 'aligned'}"

    def state(self) -> Lines:
        yield from super().state()
        if self.simulation.is_closed:
            return
        for deployment in self.simulation.deployments:
            for writer in deployment.writers.values():
                version = writer.partition.config.flink_version
                for sub in writer.partition.subpartitions:
                    waiting = [each for each in sub.queue if each.unread_bytes]
                    queue = [queued(bytes(each.unread), each.is_buffer, version) for each in waiting]
                    yield f"{writer.partition.name}: {'; '.join(queue) or 'nothing'}"
        for deployment in self.simulation.deployments:
            for task in deployment.tasks:
                yield from flight_to(task)


def queued(data: bytes, is_buffer: bool, version: FlinkVersion) -> str:
    if is_buffer:
        return in_words(data)
    event = event_from_bytes(data, version)
    if not isinstance(event, CheckpointBarrier):
        return type(event).__name__
    return f"barrier {event.checkpoint_id}" + (", which waits" if event.has_timeout else "")


def in_words(data: bytes) -> str:
    """How many bytes, and which."""
    return f"{len(data)} B " + "".join(chr(each) if 32 < each < 127 else "·" for each in data)


def flight_to(task: Task) -> Iterator[str]:
    """What waits in the channels of a task, and what is captured of each."""
    if not isinstance(task.input, NetworkInput) or task.input.capture is None:
        return
    for channel, capture in zip(task.input.gate.channels, task.input.capture.channels, strict=True):
        said = list(waiting_in(channel, task.chain.head.context.config.flink_version))
        if capture.is_copying or capture.copies:
            copies = in_words(b"".join(capture.copies)) if capture.copies else "nothing so far"
            said.append(f"captured: {copies}" + (", up to its barrier" if capture.is_copying else ""))
        if said:
            yield f"{task.name} reads {channel.snapshot().producer}: {'; '.join(said)}"


def waiting_in(channel: InputChannel, version: FlinkVersion) -> Iterable[str]:
    if isinstance(channel, RecoveredInputChannel):
        if channel._data:
            yield f"recovered: {in_words(bytes(channel._data))}"
        channel = channel.channel
    if isinstance(channel, ConnectedChannel):
        yield from (queued(bytes(piece.data), piece.is_buffer, version) for piece, _ in channel.received.pieces)
