"""One watermark out of many: the time that all channels have reached.

A task's event time is the least over its channels: until the slowest says "nothing older", older
records may come. An idle channel would hold time back for ever, so it leaves the minimum; when it
comes back it must catch up first, because time never goes backwards.
"""

from __future__ import annotations

from refimpl.records.elements import MIN_TIMESTAMP, StreamStatus, Watermark

__all__ = ["StatusWatermarkValve"]


class StatusWatermarkValve:
    """Watermarks and statuses of `num_channels` channels in, those of the whole input out.

    Flink:   StatusWatermarkValve (streaming.runtime.streamstatus), 1.11.4
    """

    def __init__(self, num_channels: int) -> None:
        self._watermarks = [MIN_TIMESTAMP] * num_channels
        self._idle: set[int] = set()
        self._counting = set(range(num_channels))  # those that are active and have not to catch up
        self._last = MIN_TIMESTAMP

    @property
    def current_watermark(self) -> int:
        """The last watermark that came out, in ms; `MIN_TIMESTAMP` before the first."""
        return self._last

    @property
    def channel_watermarks(self) -> tuple[int, ...]:
        return tuple(self._watermarks)

    @property
    def idle_channels(self) -> tuple[int, ...]:
        """Those whose watermark counts for nothing just now."""
        return tuple(sorted(self._idle))

    def input_watermark(self, watermark: Watermark, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `watermark` arrives on channel `index`."""
        if index in self._idle or watermark.timestamp <= self._watermarks[index]:
            return []
        self._watermarks[index] = watermark.timestamp
        if watermark.timestamp >= self._last:
            self._counting.add(index)
        return self._advance(self._least())

    def input_status(self, status: StreamStatus, index: int) -> list[Watermark | StreamStatus]:
        """What comes out when `status` arrives on channel `index`."""
        was_all_idle = len(self._idle) == len(self._watermarks)
        if (status is StreamStatus.IDLE) == (index in self._idle):
            return []
        if status is StreamStatus.ACTIVE:
            self._idle.remove(index)
            if self._watermarks[index] >= self._last:
                self._counting.add(index)
            return [StreamStatus.ACTIVE] if was_all_idle else []
        held_time = self._watermarks[index] == self._last
        self._idle.add(index)
        self._counting.discard(index)
        if len(self._idle) < len(self._watermarks):
            return self._advance(self._least()) if held_time else []
        # The last one to go held the minimum: nothing holds time back any more.
        return [*(self._advance(max(self._watermarks)) if held_time else []), StreamStatus.IDLE]

    def _least(self) -> int:
        return min((self._watermarks[each] for each in self._counting), default=self._last)

    def _advance(self, timestamp: int) -> list[Watermark | StreamStatus]:
        if timestamp <= self._last:
            return []
        self._last = timestamp
        return [Watermark(timestamp)]
