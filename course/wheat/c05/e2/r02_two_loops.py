"""A loop over the channels, and one over the buffers of each."""

from refimpl.producer import RecordWriter
from refimpl.records import SerializationResult as R


class Writer(RecordWriter):
    is_filled = False

    def copy_to_channels(self) -> bool:
        while self._remaining:
            if not self.to(self._remaining[0]):
                self._block(True)
                return False
            self._after_record(self._remaining.popleft())
            if len(self._remaining) > 0:
                self._in_hand.reset()
        if self.is_filled:
            self._in_hand.prune()
            self.is_filled = False
        return True

    def to(self, channel):
        result = R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        while result is R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL:
            builder = self._builders[channel]
            if builder is None:
                builder = self._open(channel)
            if builder is None:
                return False
            result = self._in_hand.copy_to_buffer_builder(builder)
            if result in (R.PARTIAL_RECORD_MEMORY_SEGMENT_FULL, R.FULL_RECORD_MEMORY_SEGMENT_FULL):
                self._close(channel)
                self.is_filled = True
        return True
