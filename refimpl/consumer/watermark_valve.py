"""One watermark out of many: the time that all channels have reached.

A task's event time is the least over its channels: until the slowest says "nothing older", older
records may come. An idle channel would hold time back for ever, so it leaves the minimum; when it
comes back it must catch up first, because time never goes backwards.
"""

from __future__ import annotations

from refimpl.records.elements import MIN_TIMESTAMP, StreamStatus, Watermark

__all__ = ["StatusWatermarkValve"]


class _Channel:
    """What the valve remembers of one channel."""

    __slots__ = ("watermark", "status", "is_aligned")

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.status = StreamStatus.ACTIVE
        self.is_aligned = True


class StatusWatermarkValve:
    """Watermarks and statuses of `num_channels` channels in, those of the whole input out.

    Flink:   StatusWatermarkValve (streaming.runtime.streamstatus), 1.11.4
    """

    def __init__(self, num_channels: int) -> None:
        self._channels = [_Channel() for _ in range(num_channels)]
        self._last_watermark = MIN_TIMESTAMP
        self._status = StreamStatus.ACTIVE

    @property
    def current_watermark(self) -> int:
        """The last watermark that came out, in ms; `MIN_TIMESTAMP` before the first."""
        return self._last_watermark

    @property
    def channel_watermarks(self) -> tuple[int, ...]:
        return tuple(channel.watermark for channel in self._channels)

    @property
    def idle_channels(self) -> tuple[int, ...]:
        """Those whose watermark counts for nothing just now."""
        return tuple(index for index, each in enumerate(self._channels) if each.status is StreamStatus.IDLE)

    def input_watermark(self, watermark: Watermark, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `watermark` arrives on channel `index`."""
        channel = self._channels[index]
        is_active = self._status is channel.status is StreamStatus.ACTIVE
        if not is_active or watermark.timestamp <= channel.watermark:
            return []
        channel.watermark = watermark.timestamp
        if not channel.is_aligned and watermark.timestamp >= self._last_watermark:
            channel.is_aligned = True
        return self._emit_minimum()

    def input_status(self, status: StreamStatus, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `status` arrives on channel `index`."""
        channel = self._channels[index]
        if status is channel.status:
            return []
        channel.status = status
        if status is StreamStatus.IDLE:
            return self._channel_idle(channel)
        channel.is_aligned = channel.watermark >= self._last_watermark
        if self._status is StreamStatus.IDLE:
            self._status = StreamStatus.ACTIVE
            return [StreamStatus.ACTIVE]
        return []

    def _channel_idle(self, channel: _Channel) -> list[Watermark | StreamStatus]:
        was_aligned = channel.is_aligned
        channel.is_aligned = False
        if all(other.status is StreamStatus.IDLE for other in self._channels):
            out: list[Watermark | StreamStatus] = []
            # The last one to go held the minimum: nothing holds time back any more.
            if channel.watermark == self._last_watermark:
                out += self._emit(max(other.watermark for other in self._channels))
            self._status = StreamStatus.IDLE
            return [*out, StreamStatus.IDLE]
        if was_aligned and channel.watermark == self._last_watermark:
            return self._emit_minimum()
        return []

    def _emit_minimum(self) -> list[Watermark | StreamStatus]:
        aligned = [channel.watermark for channel in self._channels if channel.is_aligned]
        return self._emit(min(aligned)) if aligned else []

    def _emit(self, timestamp: int) -> list[Watermark | StreamStatus]:
        if timestamp <= self._last_watermark:
            return []
        self._last_watermark = timestamp
        return [Watermark(timestamp)]
