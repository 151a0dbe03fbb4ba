"""One watermark out of two inputs: the time that both have reached."""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.config import FlinkVersion
from refimpl.consumer.watermark_valve import StatusWatermarkValve
from refimpl.records.elements import MIN_TIMESTAMP, StreamStatus, Watermark

__all__ = ["TwoInputValve"]


class TwoInputValve:
    """A valve for each of two inputs, and the least of their two watermarks. Channels are numbered through.

    `nums_channels` has the number of channels of each input. The task is idle while both inputs are. In 1.11 an idle
    input still holds time back (FLINK-18934); from 1.14 on it leaves the minimum, as an idle channel does.

    Flink:   AbstractStreamOperator.processWatermark1, StreamTwoInputProcessor.StreamTaskNetworkOutput, 1.11.4;
             IndexedCombinedWatermarkStatus (streaming.api.operators.util), 2.2.1
    Differs: the input combines the two; in Flink the operator does.
    """

    def __init__(self, nums_channels: Sequence[int], version: FlinkVersion = FlinkVersion.V1_11) -> None:
        self.inputs = [StatusWatermarkValve(number) for number in nums_channels]
        self._num_first = nums_channels[0]
        self._leaves_idle_out = version is not FlinkVersion.V1_11
        self._watermarks = [MIN_TIMESTAMP, MIN_TIMESTAMP]
        self._statuses = [StreamStatus.ACTIVE, StreamStatus.ACTIVE]
        self._last_watermark = MIN_TIMESTAMP
        self._status = StreamStatus.ACTIVE

    @property
    def current_watermark(self) -> int:
        """The last watermark that came out, in ms; `MIN_TIMESTAMP` before the first."""
        return self._last_watermark

    @property
    def channel_watermarks(self) -> tuple[int, ...]:
        return tuple(watermark for valve in self.inputs for watermark in valve.channel_watermarks)

    @property
    def idle_channels(self) -> tuple[int, ...]:
        """Those whose watermark counts for nothing within their input just now."""
        first, second = self.inputs
        return (*first.idle_channels, *(self._num_first + index for index in second.idle_channels))

    def input_watermark(self, watermark: Watermark, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `watermark` arrives on channel `index`."""
        side, channel = self._place(index)
        return self._combined(side, self.inputs[side].input_watermark(watermark, channel))

    def input_status(self, status: StreamStatus, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `status` arrives on channel `index`."""
        side, channel = self._place(index)
        return self._combined(side, self.inputs[side].input_status(status, channel))

    def _place(self, index: int) -> tuple[int, int]:
        return (0, index) if index < self._num_first else (1, index - self._num_first)

    def _combined(self, side: int, out: Sequence[Watermark | StreamStatus]) -> list[Watermark | StreamStatus]:
        """What comes out of both when `out` has come out of one."""
        combined: list[Watermark | StreamStatus] = []
        for each in out:
            if isinstance(each, Watermark):
                self._watermarks[side] = each.timestamp
                combined += self._advanced()
            else:
                self._statuses[side] = each
                if self._leaves_idle_out:
                    combined += self._advanced()
                combined += self._changed()
        return combined

    def _advanced(self) -> list[Watermark | StreamStatus]:
        """The watermark of both, if it is larger than the last."""
        counted = [
            watermark
            for watermark, status in zip(self._watermarks, self._statuses, strict=True)
            if status is StreamStatus.ACTIVE or not self._leaves_idle_out
        ]
        if not counted or min(counted) <= self._last_watermark:
            return []
        self._last_watermark = min(counted)
        return [Watermark(self._last_watermark)]

    def _changed(self) -> list[Watermark | StreamStatus]:
        """The status of both, if it is another than before."""
        status = StreamStatus.IDLE if set(self._statuses) == {StreamStatus.IDLE} else StreamStatus.ACTIVE
        if status is self._status:
            return []
        self._status = status
        return [status]
