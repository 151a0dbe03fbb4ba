"""One watermark out of many, as `StatusWatermarkValve` did."""

from __future__ import annotations

from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.records import StreamStatus, Watermark

TOPIC = "valve"
BY_VERSION = False


def shown(out: list[Watermark | StreamStatus]) -> list[list[object]]:
    return [["watermark", item.timestamp] if isinstance(item, Watermark) else ["status", item.name] for item in out]


def test_the_valve_says_what_flinks_said(case: dict) -> None:
    valve = StatusWatermarkValve(case["channels"])
    for number, step in enumerate(case["steps"]):
        if "watermark" in step:
            out = valve.input_watermark(Watermark(step["watermark"]), step["channel"])
        else:
            out = valve.input_status(StreamStatus[step["status"]], step["channel"])
        assert shown(out) == step["out"], f"step {number}: {step}"
