"""A loop over the channels, and one over the buffers of each."""

from refimpl.producer import ChannelCopy
from refimpl.records import SerializationResult as R


class Copy(ChannelCopy):
    is_filled = False

    def copy_to_channels(self) -> bool:
        while self.remaining:
            if not self.to(self.remaining[0]):
                self.block()
                return False
            self.after_record(self.remaining.popleft())
            if len(self.remaining) > 0:
                self.record.reset()
        if self.is_filled:
            self.record.prune()
            self.is_filled = False
        return True

    def to(self, channel):
        result = R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        while result is R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL:
            builder = self.builders[channel]
            if builder is None:
                builder = self.open(channel)
            if builder is None:
                return False
            result = self.record.copy_to_buffer_builder(builder)
            if result in (R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL, R.FULL_RECORD_MEMORY_SEGMENT_FULL):
                self.close(channel)
                self.is_filled = True
        return True
