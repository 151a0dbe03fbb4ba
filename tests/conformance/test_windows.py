"""What a window operator says to records, watermarks and processing time, as Flink's `WindowOperator` does.

A case names its `assigner`, its `trigger` (none: that of the assigner), the `lateness`, and steps. `in` of a step is a
record [key, value, time], a watermark, or a processing time; `out` are results, late records and watermarks, in order.
The windows add their values up. A result is [key, start, end, sum, its event time].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from refimpl.records import LatencyMarker, StreamRecord, StreamStatus, Watermark
from refimpl.task import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    OperatorContext,
    OutputTag,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindows,
    SlidingProcessingTimeWindows,
    SlidingWindows,
    Trigger,
    TumblingProcessingTimeWindows,
    TumblingWindows,
    WindowAssigner,
    WindowOperator,
)

TOPIC = "windows"
BY_VERSION = False

ASSIGNERS: dict[tuple[str, str], Callable[..., WindowAssigner]] = {
    ("tumbling", "event"): TumblingWindows,
    ("tumbling", "processing"): TumblingProcessingTimeWindows,
    ("sliding", "event"): SlidingWindows,
    ("sliding", "processing"): SlidingProcessingTimeWindows,
    ("session", "event"): SessionWindows,
    ("session", "processing"): ProcessingTimeSessionWindows,
}
TRIGGERS: dict[str, Callable[..., Trigger]] = {
    "event_time": EventTimeTrigger,
    "processing_time": ProcessingTimeTrigger,
    "count": CountTrigger,
    "continuous_event_time": ContinuousEventTimeTrigger,
}


def assigner_of(spec: dict[str, Any]) -> WindowAssigner:
    """{kind, time, size, slide, offset} or {kind: session, time, gap}; the gap may be `value`: the record's own."""
    options = {f"{name}_ms": spec[name] for name in ("size", "slide", "offset", "gap") if name in spec}
    if options.get("gap_ms") == "value":
        options["gap_ms"] = lambda row: row[1]
    return ASSIGNERS[spec["kind"], spec.get("time", "event")](**options)


def trigger_of(spec: dict[str, Any] | None) -> Trigger | None:
    """{kind, count or interval, purging}."""
    if spec is None:
        return None
    trigger = TRIGGERS[spec["kind"]](*(spec[name] for name in ("count", "interval") if name in spec))
    return PurgingTrigger(trigger) if spec.get("purging") else trigger


class Sum:
    def create_accumulator(self) -> int:
        return 0

    def add(self, row: tuple[str, int], accumulator: int) -> int:
        return accumulator + row[1]

    def merge(self, one: int, other: int) -> int:
        return one + other

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Bench:
    """One window operator, and what came out of it."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.out: list[list[Any]] = []
        self._context = OperatorContext("windows", 0, 1, 128)
        windows, trigger = assigner_of(case["assigner"]), trigger_of(case.get("trigger"))
        self._operator = WindowOperator(lambda row: row[0], windows, Sum(), trigger, case.get("lateness", 0))
        self._operator.setup(self._context, self)
        self._operator.open()

    def take(self, item: Sequence[Any]) -> list[list[Any]]:
        """What comes out when `item` comes in."""
        match item:
            case ["record", key, value, time]:
                self._operator.process(StreamRecord((key, value), time))
            case ["watermark", time]:
                self._operator.process_watermark(Watermark(time))
            case ["processing_time", time]:
                self._context.time.advance(time)
                self._context.time.fire_due()
            case _:
                raise AssertionError(f"{item} is nothing for a window")
        out, self.out = self.out, []
        return out

    def collect(self, record: StreamRecord) -> None:
        assert isinstance(record.value, tuple)
        self.out.append(["result", *record.value, record.timestamp])

    def collect_side(self, tag: OutputTag, record: StreamRecord) -> None:
        assert isinstance(record.value, tuple)
        self.out.append([tag.name, *record.value, record.timestamp])

    def emit_watermark(self, watermark: Watermark) -> None:
        self.out.append(["watermark", watermark.timestamp])

    def emit_status(self, status: StreamStatus) -> None: ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None: ...


def test_windows_say_what_flinks_do(case: dict) -> None:
    bench = Bench(case)
    for number, step in enumerate(case["steps"]):
        assert bench.take(step["in"]) == step["out"], f"step {number}: {step}"
