"""The least over all channels that take part."""

from __future__ import annotations

import pytest

from refimpl.consumer import StatusWatermarkValve
from refimpl.records import MAX_WATERMARK, MIN_TIMESTAMP, StreamStatus, Watermark

IDLE, ACTIVE = StreamStatus.IDLE, StreamStatus.ACTIVE
MAX = MAX_WATERMARK.timestamp


@pytest.mark.parametrize(
    ("channels", "steps"),
    [
        (3, [(0, 15, []), (1, 10, []), (2, IDLE, [10]), (1, 18, [15]), (0, 20, [18])]),
        (3, [(0, 10, []), (1, 5, []), (2, 3, [3]), (0, IDLE, []), (1, IDLE, []), (2, IDLE, [10, IDLE])]),
        (3, [(0, 10, []), (1, 7, []), (2, 3, [3]), (2, IDLE, [7]), (2, ACTIVE, []), (2, 5, []), (2, 9, []),
             (1, 12, [9])]),
        (1, [(0, 25, [25]), (0, IDLE, [IDLE]), (0, 50, []), (0, ACTIVE, [ACTIVE]), (0, 50, [50])]),
        (1, [(0, 7, [7]), (0, 6, []), (0, 7, [])]),
        (2, [(0, MAX, []), (1, 5, [5]), (1, IDLE, [MAX])]),
        (2, [(0, 10, []), (1, 5, [5]), (1, IDLE, [10]), (1, ACTIVE, []), (0, IDLE, []), (1, 7, []), (1, IDLE, [IDLE])]),
    ],
    ids=["partly idle", "all idle flush the maximum", "realigned", "nothing while idle", "never backwards",
         "the end of one counts where the others are idle", "the last to turn idle was behind: no flush"],
)  # fmt: skip
def test_the_known_sequences_come_out(channels: int, steps: list[tuple[int, object, list[object]]]) -> None:
    """Flink: `StatusWatermarkValveTest` (P105)."""
    valve = StatusWatermarkValve(channels)
    for number, (channel, given, expected) in enumerate(steps):
        if isinstance(given, StreamStatus):
            out = valve.input_status(given, channel)
        else:
            out = valve.input_watermark(Watermark(given), channel)
        shown = [item.timestamp if isinstance(item, Watermark) else item for item in out]
        assert shown == expected, f"step {number}"


def test_a_watermark_on_an_idle_channel_is_dropped_not_kept() -> None:
    valve = StatusWatermarkValve(2)
    valve.input_watermark(Watermark(25), 0)
    valve.input_status(IDLE, 0)
    valve.input_watermark(Watermark(50), 0)
    assert valve.channel_watermarks == (25, MIN_TIMESTAMP)
    assert valve.current_watermark == MIN_TIMESTAMP
