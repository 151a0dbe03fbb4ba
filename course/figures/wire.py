"""The runs behind the figures of lesson 9: what two TaskManagers really say to each other, byte by byte.

All in the simulation and in its own time, so a figure is the same on every machine.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course.figures.channels import FULL_RECORD, SEGMENT_BYTES, noting, one_channel
from refimpl.config import Config
from refimpl.drivers import Simulation
from refimpl.drivers.simulation import Send, StepTask, Way
from refimpl.exchange import BufferResponse, Message, RequestDecoder, encode
from refimpl.job import StreamEnvironment
from refimpl.records import BYTES
from refimpl.task import IterableReader, Progress
from refimpl.trace import Trace, TraceEvent
from widgets import Recording
from widgets.view_models import topology

__all__ = ["NineSteps", "Pieces", "Wire", "nine_steps", "wire"]

_CONFIG = Config(
    segment_size_bytes=SEGMENT_BYTES,
    num_buffers=32,
    buffers_per_channel=2,
    floating_buffers_per_gate=0,
    buffer_timeout_ms=-1,
    source_batch=1,
)


# -- frames on the wire ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wire:
    """What went over the one connection between two TaskManagers, in both directions, and every step of it."""

    recording: Recording
    num_connections: int
    num_channels: int
    requests: tuple[Message, ...]
    responses: tuple[Message, ...]

    @property
    def request_bytes(self) -> bytes:
        """What the consumer's side wrote, as one stream."""
        return b"".join(map(encode, self.requests))

    def __repr__(self) -> str:
        first = self.requests[: self.num_channels]  # the requests for partitions
        names = {_receiver(message): chr(65 + place) for place, message in enumerate(first)}
        lines = [f"{self.num_channels} channels, connections: {self.num_connections}"]
        lines += ["", "from the consumer to the producer", *_listed(self.requests, names)]
        lines += ["", "from the producer to the consumer", *_listed(self.responses, names)]
        return "\n".join(lines)


def _receiver(message: Message) -> bytes:
    """The channel that a message is for, or from; b"" if it is about the connection."""
    return getattr(message, "receiver", None) or b""


def _listed(messages: Sequence[Message], names: dict[bytes, str], most: int = 7) -> Iterator[str]:
    yield "  from byte  bytes  length      magic       id  message"
    start = 0
    for message in messages[:most]:
        frame = encode(message)
        head = f"{frame[:4].hex(' ')} {frame[4:8].hex(' ')} {frame[8:9].hex()}"
        channel = names.get(_receiver(message), "?")
        number = f", number {message.sequence_number}" if isinstance(message, BufferResponse) else ""
        yield f"  {start:>9}  {len(frame):>5}  {head}  {type(message).__name__} for channel {channel}{number}"
        start += len(frame)
    if more := len(messages) - most:
        yield f"  {start:>9}  … and {more} more"


def wire(num_records: int = 4) -> Wire:
    """Run two channels between two TaskManagers, and keep every message that is sent."""
    environment = StreamEnvironment(_CONFIG, parallelism=2)
    source = environment.source(lambda *_: IterableReader([FULL_RECORD] * num_records), "source", BYTES)
    source.slot_sharing_group("producers").sink(_ignore).slot_sharing_group("consumers")
    said: dict[Way, list[Message]] = {way: [] for way in Way}
    with Simulation(environment, 1, num_task_managers=2) as simulation:
        links = dict(simulation.links)
        num_channels = sum(len(each.shuffle.remote_channels) for each in simulation.deployments)
        recording = Recording(topology(simulation.snapshot()))
        recording.add(simulation.snapshot(), "start")
        while True:
            before = {(name, way): len(link.messages(way)) for name, link in links.items() for way in Way}
            action = simulation.step()
            if action is None:
                break
            recording.add(simulation.snapshot(), str(action))
            if isinstance(action, Send):
                said[action.way] += links[action.link].messages(action.way)[before[action.link, action.way] :]
    return Wire(recording, len(links), num_channels, tuple(said[Way.REQUESTS]), tuple(said[Way.RESPONSES]))


def _ignore(_value: object) -> None: ...


# -- the same bytes in pieces ----------------------------------------------------------------------------


class Pieces:
    """A stream as a network might hand it over: pieces cut by chance, and the frames that each completes."""

    def __init__(self, stream: bytes, num_pieces: int = 9, seed: int = 1) -> None:
        places = sorted(random.Random(seed).sample(range(1, len(stream)), num_pieces - 1))
        decoder = RequestDecoder(_CONFIG)
        self.rows: list[tuple[bytes, list[int]]] = []
        for start, end in itertools.pairwise([0, *places, len(stream)]):
            decoder.feed(stream[start:end])
            self.rows.append((stream[start:end], [len(frame) for frame in iter(decoder.next_frame, None)]))

    def __repr__(self) -> str:
        lines = ["  piece  bytes  begins with              frames complete with it"]
        for number, (piece, sizes) in enumerate(self.rows, 1):
            words = f"{len(sizes)}: {' + '.join(map(str, sizes))} bytes" if sizes else "none"
            lines.append(f"  {number:>5}  {len(piece):>5}  {piece[:8].hex(' '):<23}  {words}")
        return "\n".join(lines)


# -- nine steps ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NineSteps:
    """What became of the first data buffer of a channel: (number, step of the run, where, what, class in Flink).

    What must come before the nine steps, and what follows from them, has no number.
    """

    rows: tuple[tuple[str, int, str, str, str], ...]

    def __repr__(self) -> str:
        lines = [f"     step  where     {'what happens':<58}  in Flink 1.11.4"]
        for number, step, where, what, flink in self.rows:
            lines.append(f"  {number or '·'}  {step:>4}  {where:<8}  {what:<58}  {flink}")
        return "\n".join(lines)


# Number, what to look for in the run (an event, an action), where that is, what it means, who does it in Flink.
_STEPS = (
    ("", "send requests", "tm-1", "before: the channel asks, with credit {credit}", "NettyPartitionRequestClient"),
    ("", "deliver requests", "tm-0", "before: a reader is opened for it", "PartitionRequestServerHandler"),
    ("1", "sink-0 idle", "sink-0", "the task asks its channel, finds nothing, and sleeps", "RemoteInputChannel"),
    ("2", "queue", "source-0", "a record is written into segment {segment}, in the queue", "PipelinedSubpartition"),
    ("3", "told", "tm-0", "the subpartition tells the queue of readers: data is there", "PartitionRequestQueue"),
    ("4", "deliver", "tm-0", "there is credit: it reads {bytes} bytes, number {sequence}", "PartitionRequestQueue"),
    ("5", "recycle", "tm-0", "the connection has them; segment {segment} goes home", "PartitionRequestServerHandler"),
    ("6", "send responses", "tm-0", "they leave in a message, a frame of {frame} bytes", "NettyMessage.BufferResponse"),
    ("7", "receive", "tm-1", "decoded: {bytes} bytes copied to own segment {segment}", "NettyMessage…DecoderDelegate"),
    ("8", "awake", "tm-1", "they join the queue of the channel, and the task wakes", "CreditBased…ClientHandler"),
    ("9", "take", "sink-0", "the task takes number {sequence}, and has a record again", "StreamTaskNetworkInput"),
    ("", "send requests again", "tm-1", "after: the buffer is empty again; a credit goes back", "BufferManager"),
    ("", "grant", "tm-0", "after: the reader has credit {credit} again", "CreditBased…ViewReader"),
)  # fmt: skip


def _name(event: TraceEvent) -> str:
    """The kind of an event; how a task fares, with its name."""
    return f"{event.subject} {event.kind}" if event.kind == Progress.IDLE.value else event.kind


def nine_steps() -> NineSteps:
    """Run one channel with a trace, and find each step of the first buffer's way in it."""
    trace = Trace(1_000)
    found: list[tuple[str, int, dict[str, object]]] = []

    job = one_channel(3, _CONFIG).use(PipelinedSubpartition=noting(trace))
    sink = StepTask("sink-0")
    with Simulation(job, policy="first", trace=trace, num_task_managers=2) as simulation:
        (link,) = simulation.links.values()
        num_known, was_awake = 0, False
        while (action := simulation.step()) is not None:
            name = " ".join(str(action).partition(",")[0].split()[:2])
            events = list(trace)[num_known:]
            num_known += len(events)
            is_again = name == "send requests" and any(kind == "take" for kind, _, _ in found)
            frames = [len(encode(each)) for each in link.messages(Way.RESPONSES)]
            detail: dict[str, object] = {"frame": frames[-1]} if name == "send responses" and frames else {}
            found += [(_name(event), simulation.num_steps, dict(event.detail)) for event in events]
            found.append((f"{name} again" if is_again else name, simulation.num_steps, detail))
            is_awake = sink in simulation.enabled()
            found += [("awake", simulation.num_steps, {})] if is_awake and not was_awake else []
            was_awake = is_awake
    rows = []
    for number, kind, where, words, flink in _STEPS:
        step, numbers = next((step, numbers) for name, step, numbers in found if name == kind)
        told = words.format(**{"credit": _CONFIG.buffers_per_channel, **numbers})
        rows.append((number, step, where, told, flink))
    return NineSteps(tuple(rows))
