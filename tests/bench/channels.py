"""One producer, one consumer and many channels between them, in one process: what a channel costs, used or idle.

What this does on two threads is what `TaskManagerThreads` does for two tasks, its flusher included; but a job has so
many channels only between as many tasks, and then it would be the threads that cost. Every 512th record is followed by
a latency marker, which tells how long records wait.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from refimpl.config import Config
from refimpl.drivers.flush_clock import FlushClock
from refimpl.drivers.pressure_sampling import SampleTimer
from refimpl.drivers.threads import Handoff, SwitchInterval, Waker, keep_flushing
from refimpl.memory import NetworkBufferPool
from refimpl.producer import (
    ChannelSelector,
    GlobalSelector,
    RoundRobinSelector,
    max_buffers,
    required_buffers,
)
from refimpl.records import (
    LatencyMarker,
    StreamElementSerializer,
    StreamRecord,
)
from refimpl.shortcuts.channels import FastInputGate
from refimpl.shortcuts.deserializer import FastDeserializer
from refimpl.shortcuts.input import FastNetworkInput
from refimpl.shortcuts.partition import FastBufferPool, FastLocalInputChannel, FastResultPartition
from refimpl.shortcuts.writer import FastRecordWriter
from tests.bench.contenders import KIND, RECORDS, Adding, Keeping, checksum, chunks, expected
from tests.bench.exchange import SEVERAL, wait_for_buffers
from tests.bench.measure import Contender, Entry, Row, Turn, in_two_threads

__all__ = ["RECORDS_OF_A_TURN", "Channels", "Plan", "entry", "hand_out"]

RECORDS_PER_STEP = 64  # of a source, as in a job
STEPS_PER_MARKER = 8
RECORDS_OF_A_TURN = 500_000  # 500 for each of 1000 channels, so that opening and closing them does not count
FOR_EVERYBODY = 20  # buffers taken at once; the rest is for the producer to go on with


@dataclass(frozen=True, slots=True)
class Plan:
    """How many channels get records and how many none, and how often what is open is flushed, in ms.

    Records are written one by one, whatever the number of channels, as in the design's measurement (its prototype
    has one `emit` for each record too), so that a channel is compared with a channel. Who has many at hand takes
    `emit_many`, and gains more with one channel, where they are packed in blocks, than with several.
    """

    num_active: int
    num_idle: int = 0
    timeout_ms: int = 100
    emits_many: bool = False


class InTurn(RoundRobinSelector):
    """The first channels in turn; the others are idle."""

    name = "the active ones in turn"

    def __init__(self, num_active: int) -> None:
        super().__init__()
        self._num_active = num_active

    def setup(self, _num_channels: int) -> None:
        super().setup(self._num_active)


class Channels:
    """The engine's exchange with as many channels as `plan` has; two buffers for each, and eight for all."""

    def __init__(self, plan: Plan) -> None:
        num_channels = plan.num_active + plan.num_idle
        config = Config(buffer_timeout_ms=plan.timeout_ms)
        elements = StreamElementSerializer(KIND)
        self.plan = plan
        self.monitor = threading.RLock()
        self._stopped = threading.Condition(self.monitor)
        self._input_waker, self._output_waker = Waker(self.monitor), Waker(self.monitor)
        most = max_buffers(num_channels, config)
        self.pool_bytes = most * config.segment_size_bytes
        self._home = NetworkBufferPool(most, config.segment_size_bytes)
        pool = FastBufferPool(self._home, required_buffers(num_channels), most, "source-0", num_channels)
        self.partition = FastResultPartition("source-0", num_channels, pool, config)
        # All to the first is a choice that need not be made for each record, with idle channels beside it or without.
        selector: ChannelSelector = GlobalSelector() if plan.num_active == 1 else InTurn(plan.num_active)
        self.writer = FastRecordWriter(self.partition, selector, elements, exclusion=self.monitor)
        channels = [FastLocalInputChannel(n, self.partition.create_view(n)) for n in range(num_channels)]
        self.gate = FastInputGate("sink-0", channels, on_ready=self._input_waker.wake)
        self.input = FastNetworkInput(self.gate, elements, lambda: FastDeserializer(config))
        self._most = max(1, min(FOR_EVERYBODY, most // 2))
        self._handoff = Handoff(self.monitor, {"source": self._output_waker, "sink": self._input_waker})
        self._switch_interval = SwitchInterval(plan.timeout_ms)
        self.flush_clock = FlushClock([self.partition], plan.timeout_ms, self._switch_interval.note_flush)
        self.num_buffers = self._num_taken = 0
        self.latencies_ms: list[float] = []
        self._has_ended = threading.Event()
        with self.monitor:
            self.gate.open()

    def move(self, num_records: int, process: Callable[[Any, int | None], None]) -> tuple[float, float]:
        """Bring so many records through all active channels; return (wall, CPU) seconds."""

        def flush() -> None:
            keep_flushing(self.flush_clock, SampleTimer([]), self._stopped, self._has_ended.is_set)

        flusher = threading.Thread(target=flush, name="flusher", daemon=True)

        def produce() -> None:
            if self.plan.timeout_ms > 0:
                flusher.start()
            try:
                self._produce(num_records)
            finally:
                with self.monitor:
                    self._has_ended.set()
                    self._input_waker.wake()
                    self._stopped.notify_all()  # or the clock would go on until the next flush
            if self.plan.timeout_ms > 0:
                flusher.join()

        try:
            return in_two_threads(produce, lambda: self._consume(process))
        finally:
            self._switch_interval.stop()

    def _produce(self, num_records: int) -> None:
        writer, clock = self.writer, time.perf_counter_ns
        for number, chunk in enumerate(chunks(RECORDS, num_records, RECORDS_PER_STEP)):
            self._write(chunk)
            if not number % STEPS_PER_MARKER:
                writer.emit_to(LatencyMarker(clock(), 0, 0, 0), number // STEPS_PER_MARKER % self.plan.num_active)
            if self.flush_clock.is_due or not writer.is_available:
                self._look_up()
        writer.finish()

    def _look_up(self) -> None:
        """What a task does under the monitor between two steps."""
        with self.monitor:
            if self.flush_clock.flush_if_due():
                self._handoff.yield_after_flush("source", self.flush_clock.begin_anew)
            wait_for_buffers(self.writer, self._handoff, self._output_waker)

    def _write(self, records: Sequence[StreamRecord]) -> None:
        if self.plan.emits_many:
            self.writer.emit_many(records)
        else:
            emit = self.writer.put
            for record in records:
                emit(record)

    def _consume(self, process: Callable[[Any, int | None], None]) -> None:
        clock, waited = time.perf_counter_ns, self.latencies_ms

        def mark(element: object) -> None:
            if isinstance(element, LatencyMarker):
                waited.append((clock() - element.marked_time) / 1e6)

        while self._take():
            hand_out(self.input, process, mark)

    def _take(self) -> bool:
        with self.monitor:
            self.input.recycle()
            self.flush_clock.flush_if_due()
            if not self.input.is_ready:
                self._handoff.give_turn()
                if self._num_taken >= SEVERAL:
                    self._handoff.yield_turn()
            while not (taken := self.input.take(self._most)):
                if self.input.is_finished or (self._has_ended.is_set() and not self.partition.is_finished):
                    return False  # the end, or the producer failed
                self._input_waker.wait()
            self._num_taken = taken
            self.num_buffers += taken
        return True


def hand_out(
    source: FastNetworkInput,
    process: Callable[[Any, int | None], None],
    other: Callable[[object], None] = lambda _: None,
) -> None:
    """Hand the records that `source` has at hand to `process`, and everything else to `other`."""
    while True:
        for value, at in source.next_values():
            process(value, at)
        element = source.next_element()
        if element is None:
            return
        if isinstance(element, StreamRecord):
            process(element.value, element.timestamp)
        else:
            other(element)


def entry(key: str, meaning: str, plan: Plan, make: Callable[[Plan], Any] = Channels) -> Entry:
    """The contender that moves records through such channels."""

    def run(num_records: int) -> Turn:
        channels, operator = make(plan), Adding()
        wall_s, cpu_s = channels.move(num_records, operator.record)
        found = {
            "flushes_per_s": channels.flush_clock.num_flushes / wall_s,
            "p50_ms": statistics.median(channels.latencies_ms),
            "buffers": float(channels.num_buffers),
        }
        return Turn(num_records, wall_s, cpu_s, operator.total, found)

    def deliver(num_records: int) -> tuple[int, list[Row]]:
        operator = Keeping()
        make(plan).move(num_records, operator.record)
        return num_records, operator.rows

    contender = Contender(key, meaning, run, deliver, is_ordered=plan.num_active == 1, least_records=RECORDS_OF_A_TURN)
    return Entry(key, contender, expected, checksum)
