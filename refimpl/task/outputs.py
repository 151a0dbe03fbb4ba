"""Where an operator's results go: the next operator, or the network.

    ChainingOutput            the next operator of the chain, same object
    CopyingChainingOutput     the next operator, with a copy of the value
    RecordWriterOutput        the network
    CountingOutput            counts, then passes on

For several outputs at once see `collectors`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from refimpl.errors import USER_CODE_RAISES, SluiceError, speaks_for_itself
from refimpl.producer.record_writer import RecordWriter
from refimpl.records.any_type import ANY
from refimpl.records.elements import (
    MIN_TIMESTAMP,
    LatencyMarker,
    StreamRecord,
    StreamStatus,
    Watermark,
)
from refimpl.records.types import TypeSerializer

__all__ = [
    "ChainingOutput",
    "CopyingChainingOutput",
    "CountingOutput",
    "Output",
    "OutputTag",
    "Receiver",
    "RecordWriterOutput",
    "WatermarkGauge",
    "WatermarkGaugeExposingOutput",
]


@dataclass(frozen=True, slots=True)
class OutputTag:
    """Names a side output, whose values have a type of their own. Equal names are the same output.

    Flink:   OutputTag (util), 1.11.4
    """

    name: str
    value_type: TypeSerializer = field(default=ANY, compare=False)


class Output(Protocol):
    """What an operator may do with results.

    Flink:   Output, Collector (streaming.api.operators), 1.11.4
    """

    def collect(self, record: StreamRecord) -> None:
        """Send a record down the main output."""

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        """Send a record down the side output `tag`; nobody listening is no error."""

    def emit_watermark(self, watermark: Watermark) -> None: ...

    def emit_status(self, status: StreamStatus) -> None: ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...


class Receiver(Protocol):
    """What an output needs of the operator behind it."""

    def process(self, record: StreamRecord) -> None: ...

    def process_watermark(self, watermark: Watermark) -> None: ...

    def process_status(self, status: StreamStatus) -> None: ...

    def process_latency_marker(self, marker: LatencyMarker) -> None: ...

    def fail(self, record: object, error: BaseException) -> SluiceError: ...


class WatermarkGauge:
    """The last watermark seen, in ms; a metric that others may read at any time.

    Flink:   WatermarkGauge (streaming.runtime.metrics), 1.11.4
    """

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current = MIN_TIMESTAMP


class WatermarkGaugeExposingOutput(Output, Protocol):
    """An output that shows the last watermark it passed on.

    Flink:   OperatorChain.WatermarkGaugeExposingOutput, 1.11.4
    """

    watermark_gauge: WatermarkGauge


def process(operator: Receiver, record: StreamRecord) -> None:
    """Hand `record` to `operator`; what its code raises then names the operator and the record."""
    try:
        operator.process(record)
    except USER_CODE_RAISES as error:
        if speaks_for_itself(error):
            raise
        raise operator.fail(record.value, error) from error


class ChainingOutput:
    """Calls the next operator of the chain with the same object.

    With a `tag` it is a side output: main records pass by, records of that tag are delivered.

    Flink:   ChainingOutput (streaming.runtime.tasks), 1.11.4
    """

    def __init__(self, operator: Receiver, tag: OutputTag | None = None) -> None:
        self.watermark_gauge = WatermarkGauge()
        self.operator = operator
        self.tag = tag
        self._is_idle = False

    def collect(self, record: StreamRecord) -> None:
        if self.tag is None:
            process(self.operator, record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        if tag == self.tag:
            process(self.operator, record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.watermark_gauge.current = watermark.timestamp
        if not self._is_idle:  # an idle stream makes no statement about time
            self.operator.process_watermark(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        self._is_idle = status is StreamStatus.IDLE
        self.operator.process_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.operator.process_latency_marker(marker)


class CopyingChainingOutput(ChainingOutput):
    """Calls the next operator with a copy of the value, so that neither sees the other's changes.

    Flink:   CopyingChainingOutput (streaming.runtime.tasks), 1.11.4
    """

    def __init__(self, operator: Receiver, value_type: TypeSerializer, tag: OutputTag | None = None) -> None:
        """An output to `operator`; `value_type.copy` makes a copy of a value. With a `tag` it is a side output."""
        super().__init__(operator, tag)
        self.value_type = value_type

    def collect(self, record: StreamRecord) -> None:
        """Hand a new record with a copy of the value to the operator; a side output lets it pass by, uncopied."""
        if self.tag is None:
            super().collect(StreamRecord(self.value_type.copy(record.value), record.timestamp))

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        """The same for a record of side output `tag`, if it is this one; others pass by, uncopied."""
        if tag == self.tag:
            super().collect_side(tag, StreamRecord(self.value_type.copy(record.value), record.timestamp))


class RecordWriterOutput:
    """Sends results to the network.

    Flink:   RecordWriterOutput (streaming.runtime.io), 1.11.4
    """

    def __init__(self, writer: RecordWriter, tag: OutputTag | None = None) -> None:
        self.writer = writer
        self.watermark_gauge = WatermarkGauge()
        self.tag = tag
        self._is_idle = False
        # Not the selector's draws: a job with markers sends its records where the same job without them does.
        whose = f"latency markers of {writer.partition.name}, seed {writer.partition.config.seed}"
        self._random = random.Random(whose.encode("utf-8", "surrogatepass"))  # a name may be no text

    def collect(self, record: StreamRecord) -> None:
        if self.tag is None:
            self.writer.emit(record)

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        if tag == self.tag:
            self.writer.emit(record)

    def emit_watermark(self, watermark: Watermark) -> None:
        self.watermark_gauge.current = watermark.timestamp
        if not self._is_idle:
            self.writer.broadcast(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        self._is_idle = status is StreamStatus.IDLE
        self.writer.broadcast(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Send the marker down one channel, drawn by the seed of the job.

        Flink:   RecordWriter.randomEmit, 1.11.4
        """
        self.writer.emit_to(marker, self._random.randrange(len(self.writer.partition.subpartitions)))


class CountingOutput:
    """Counts records, then passes them on to `output`.

    `fail` makes the error to raise when a record cannot leave: a key function or a selector of the
    user's raised, or the value is not of the stream's type.

    Flink:   CountingOutput (streaming.api.operators), 1.11.4
    """

    def __init__(self, output: Output, fail: Callable[[object, BaseException], SluiceError] | None = None) -> None:
        self.output = output
        self.num_records = 0
        self._fail = fail

    def redirect(self, output: Output) -> None:
        """Pass on to another output from now on."""
        self.output = output

    def collect(self, record: StreamRecord) -> None:
        self.num_records += 1
        try:
            self.output.collect(record)
        except USER_CODE_RAISES as error:
            self._refuse(record, error)
            raise

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        self.num_records += 1
        try:
            self.output.collect_side(tag, record)
        except USER_CODE_RAISES as error:
            self._refuse(record, error)
            raise

    def emit_watermark(self, watermark: Watermark) -> None:
        self.output.emit_watermark(watermark)

    def emit_status(self, status: StreamStatus) -> None:
        self.output.emit_status(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        self.output.emit_latency_marker(marker)

    def _refuse(self, record: StreamRecord, error: BaseException) -> None:
        """Raise an error that names the operator and the record, if `error` does not do so itself."""
        if self._fail is not None and not speaks_for_itself(error):
            raise self._fail(record.value, error) from error
