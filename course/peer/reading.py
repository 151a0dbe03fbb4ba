"""One gate of `sluice peer consume`, and the thread that reads it: one subpartition of every partition.

What arrives is checked as it is read: the indexes go up by one, nothing is cut off at the end, and the sum of the
values' bytes can be compared with the producer's.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from course.peer.host import Exclusion, Host
from course.peer.records import PER_SUBPARTITION, SummedType, TargetSelector, elements_of, index_of, rows_at, type_of
from refimpl.consumer import BarrierAligner, BufferOrEvent, InputGate, RemoteInputChannel, act_on
from refimpl.memory import BufferSlice, DataType, heap_buffer
from refimpl.records import (
    MIN_TIMESTAMP,
    CheckpointBarrier,
    EndOfPartition,
    Event,
    SpillingAdaptiveSpanningRecordDeserializer,
    StreamElement,
    StreamRecord,
    Watermark,
)

__all__ = ["GateReader"]

_MIN_ROW_BYTES = 256  # below this numpy costs more than it saves


@dataclass(slots=True)
class _ChannelReport:
    """What came out of one channel; `index` is that of the last record."""

    records: int = 0
    first: object = None
    last: object = None
    index: int = -1
    order_error: str | None = None
    bytes: int = 0
    data_buffers: int = 0
    events: int = 0
    barriers: list[int] = field(default_factory=list)
    watermarks: int = 0
    last_watermark: int = MIN_TIMESTAMP
    end_of_partition: bool = False
    max_queued: int = 0

    def on_value(self, value: object) -> None:
        index = index_of(value)
        if index != self.index + 1:
            self._on_gap(self.records, self.index + 1, index)
        self.index = index
        self.first = value if self.first is None else self.first
        self.last = value
        self.records += 1

    def on_longs(self, values: npt.NDArray[np.int64]) -> None:
        """Count many values in, at least one."""
        indexes = values.astype(np.int64) % PER_SUBPARTITION
        expected = np.concatenate(([self.index], indexes[:-1])) + 1
        if (gaps := np.flatnonzero(indexes != expected)).size:
            at = int(gaps[0])
            self._on_gap(self.records + at, int(expected[at]), int(indexes[at]))
        self.index = int(indexes[-1])
        self.first = int(values[0]) if self.first is None else self.first
        self.last = int(values[-1])
        self.records += len(values)

    def _on_gap(self, record: int, expected: int, found: int) -> None:
        if self.order_error is None:
            self.order_error = f"record {record}: expected index {expected} got {found}"


class GateReader:
    """Reads a gate of these channels to its end, or as many records as it is told to."""

    def __init__(
        self, subpartition: int, channels: Sequence[RemoteInputChannel], options: argparse.Namespace, host: Host
    ) -> None:
        self.gate = InputGate(f"consume-{subpartition}", channels)
        self.gate.open()
        self._subpartition = subpartition
        self._options = options
        self._host = host
        self._waiter = host.new_waiter()
        self._exclusion = Exclusion(host)
        self._channels = channels
        self._reports = [_ChannelReport() for _ in channels]
        self._deserializers = [SpillingAdaptiveSpanningRecordDeserializer() for _ in channels]
        self._selector = TargetSelector()
        self._summed = SummedType(type_of(options.type), self._selector, len(channels))
        self._elements = elements_of(options.elements, self._summed)
        self._alignment = BarrierAligner(len(channels))
        self._is_bulk = options.type == "long" and not options.delay_us and options.stop_after < 0
        self._num_to_read = float("inf") if options.stop_after < 0 else max(1, options.stop_after)

    def __repr__(self) -> str:
        return f"GateReader({self.gate.name}, {sum(report.records for report in self._reports)} records)"

    @property
    def is_ok(self) -> bool:
        """Whether all came that was to come, in order."""
        has_left_early = self._options.stop_after >= 0
        return all(
            report.order_error is None and (report.end_of_partition or has_left_early) for report in self._reports
        )

    def report(self) -> list[dict[str, object]]:
        """What came, for each channel."""
        return [
            self._report(channel, report, total)
            for channel, report, total in zip(self._channels, self._reports, self._summed.sums, strict=True)
        ]

    def _report(self, channel: RemoteInputChannel, report: _ChannelReport, total: int) -> dict[str, object]:
        return {
            "partition_index": channel.index,
            "subpartition": self._subpartition,
            "receiver_id": channel.receiver.hex(),
            "records": report.records,
            "first": report.first,
            "last": report.last,
            "order_ok": report.order_error is None,
            "order_error": report.order_error,
            "crc32": total,
            "bytes": report.bytes,
            "data_buffers": report.data_buffers,
            "events": report.events,
            "barriers": report.barriers,
            "watermarks": report.watermarks,
            "last_watermark": report.last_watermark,
            "end_of_partition": report.end_of_partition,
            "initial_credit": channel.initial_credit,
            "max_queued": report.max_queued,
        }

    # -- the thread ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read; on a thread of its own."""
        try:
            while self._num_to_read > 0 and (arrived := self._next()) is not None:
                if arrived.buffer is None:
                    self._on_event(arrived.channel_index, arrived.event)
                else:
                    self._on_buffer(arrived.channel_index, arrived.buffer)
        finally:
            with self._exclusion:
                for deserializer in self._deserializers:
                    deserializer.clear()

    def _next(self) -> BufferOrEvent | None:
        """Wait for what comes next; `None` at the end of all channels, and when we are to stop."""
        stopping = self._host.stopping
        with self._exclusion:
            while not self.gate.is_finished:
                self._waiter.wait_until(lambda: self.gate.is_ready or stopping.is_set())
                if stopping.is_set():
                    break
                arrived = self.gate.poll_next()
                if arrived is not None:
                    report = self._reports[arrived.channel_index]
                    num_left = self._channels[arrived.channel_index].snapshot().num_available
                    report.max_queued = max(report.max_queued, num_left + 1)
                    return arrived
        return None

    def _on_event(self, channel: int, event: Event | None) -> None:
        report = self._reports[channel]
        report.events += 1
        if isinstance(event, EndOfPartition):
            report.end_of_partition = True
            if self._deserializers[channel].has_unfinished_data:
                report.order_error = "end of partition inside a record"
        elif isinstance(event, CheckpointBarrier):
            report.barriers.append(event.checkpoint_id)
        if event is not None and (decisions := self._alignment.on_event(channel, event)):
            with self._exclusion:
                deque(act_on(decisions, self._channels), 0)  # those that stopped behind a barrier go on

    # -- records -------------------------------------------------------------------------------------------------------

    def _on_buffer(self, channel: int, buffer: BufferSlice) -> None:
        report = self._reports[channel]
        report.data_buffers += 1
        report.bytes += buffer.size
        self._selector.target = channel
        deserializer = self._deserializers[channel]
        deserializer.set_next_buffer(buffer)
        is_consumed = False
        try:
            while not is_consumed and self._num_to_read > 0:
                result, payload = deserializer.get_next_record()
                if payload is not None:
                    self._on_element(report, self._elements.deserialize(payload))
                del payload  # it looks into the buffer that goes home now
                is_consumed = result.is_buffer_consumed
                if self._is_bulk and not is_consumed:
                    self._read_rows(report, deserializer)
        finally:
            deserializer.get_current_buffer()
            with self._exclusion:
                buffer.recycle()

    def _on_element(self, report: _ChannelReport, element: StreamElement) -> None:
        if isinstance(element, Watermark):
            report.watermarks += 1
            report.last_watermark = element.timestamp
        elif isinstance(element, StreamRecord) and element.value is not None:
            report.on_value(element.value)
            self._num_to_read -= 1
            if self._options.delay_us:
                self._host.stopping.wait(self._options.delay_us / 1_000_000)

    def _read_rows(self, report: _ChannelReport, deserializer: SpillingAdaptiveSpanningRecordDeserializer) -> None:
        """Read the records at hand that are rows, all at once; the deserializer goes on behind them."""
        source = memoryview(deserializer.get_unconsumed())
        rows = rows_at(self._options.elements, source) if len(source) >= _MIN_ROW_BYTES else None
        if rows is None:
            return
        values = rows.decode(source)
        if len(values):
            deserializer.get_current_buffer()
            deserializer.set_next_buffer(heap_buffer(bytes(source[len(values) * rows.width :]), DataType.DATA))
            self._summed.add(values.tobytes())
            report.on_longs(values)
