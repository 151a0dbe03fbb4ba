"""Several outputs behind one operator: all of them, or those a selector names.

    BroadcastingOutputCollector           all outputs, same record object
    CopyingBroadcastingOutputCollector    all outputs, a record object each
    DirectedOutput                        those a selector names, same record object
    CopyingDirectedOutput                 those a selector names, a record object each

Which of a pair is used follows from object reuse, and not as one would guess. Without reuse every
chained output copies the value already, so the plain collector will do. With reuse nobody copies,
so the collector must at least give each output a record object of its own, or one output's new
timestamp would show up in another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from refimpl.records.elements import LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.task.outputs import Output, OutputTag, WatermarkGauge

__all__ = [
    "BroadcastingOutputCollector",
    "CopyingBroadcastingOutputCollector",
    "CopyingDirectedOutput",
    "DirectedOutput",
]


class BroadcastingOutputCollector:
    """Passes everything to every output, the same record object each time.

    Flink:   BroadcastingOutputCollector (streaming.runtime.tasks.OperatorChain), 1.11.4
    """

    def __init__(self, outputs: Sequence[Output], seed: int = 0) -> None:
        """`seed` draws the outputs of latency markers."""
        self.watermark_gauge = WatermarkGauge()
        self.outputs = outputs
        self._random = random.Random(seed)

    def collect(self, record: StreamRecord) -> None:
        for output in self.outputs:
            output.collect(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        for output in self.outputs:
            output.collect_side(tag, record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.watermark_gauge.current = watermark.timestamp
        for output in self.outputs:
            output.emit_watermark(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        for output in self.outputs:
            output.emit_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Send the marker down one output only, or it would multiply at every branch."""
        self._random.choice(self.outputs).emit_latency_marker(marker)


class CopyingBroadcastingOutputCollector(BroadcastingOutputCollector):
    """Gives every output but the last a record object of its own; the value is shared.

    Flink:   CopyingBroadcastingOutputCollector (streaming.runtime.tasks.OperatorChain), 1.11.4
    """

    def collect(self, record: StreamRecord) -> None:
        for output in self.outputs[:-1]:
            output.collect(StreamRecord(record.value, record.timestamp))
        self.outputs[-1].collect(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        for output in self.outputs[:-1]:
            output.collect_side(tag, StreamRecord(record.value, record.timestamp))
        self.outputs[-1].collect_side(tag, record)


class DirectedOutput:
    """Passes a record to the outputs a selector names for it.

    `select` maps a value to names; `by_name` holds the outputs of each name; those in `always` get
    every record. An output named twice gets the record once; an unknown name is ignored. Records of
    side outputs are dropped.

    Flink:   DirectedOutput (streaming.api.collector.selector), 1.11.4; gone with split/select in 1.12
    """

    def __init__(
        self,
        select: Callable[[object], Iterable[str]],
        by_name: Mapping[str, Sequence[Output]],
        always: Sequence[Output] = (),
        seed: int = 0,
    ) -> None:
        self.watermark_gauge = WatermarkGauge()
        self._random = random.Random(seed)
        self._select = select
        self._by_name = by_name
        self._always = always
        everyone = [*always, *(output for group in by_name.values() for output in group)]
        self._all: Sequence[Output] = list(dict.fromkeys(everyone))

    def _selected(self, record: StreamRecord) -> list[Output]:
        chosen = dict.fromkeys(self._always)
        for name in self._select(record.value):
            chosen.update(dict.fromkeys(self._by_name.get(name, ())))
        return list(chosen)

    def collect(self, record: StreamRecord) -> None:
        for output in self._selected(record):
            output.collect(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        """Drop the record: split and side outputs do not go together."""

    def emit_watermark(self, watermark: Watermark) -> None:
        self.watermark_gauge.current = watermark.timestamp
        for output in self._all:
            output.emit_watermark(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        for output in self._all:
            output.emit_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        if self._all:
            self._random.choice(self._all).emit_latency_marker(marker)


class CopyingDirectedOutput(DirectedOutput):
    """Gives every selected output but the last a record object of its own; the value is shared.

    Flink:   CopyingDirectedOutput (streaming.api.collector.selector), 1.11.4
    """

    def collect(self, record: StreamRecord) -> None:
        selected = self._selected(record)
        for output in selected[:-1]:
            output.collect(StreamRecord(record.value, record.timestamp))
        if selected:
            selected[-1].collect(record)
