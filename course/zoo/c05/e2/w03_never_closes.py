"""The pool knows when a buffer is full."""

from refimpl.producer import RecordWriter


class Writer(RecordWriter):
    def copy_to_channels(self):
        filled = False
        while self._remaining:
            channel = self._remaining[0]
            builder = self._builders[channel] or self._open(channel)
            if builder is None:
                self._block(True)
                return False
            result = self._in_hand.copy_to_buffer_builder(builder)
            if result.is_full_buffer:
                filled = True
                self._builders[channel] = None
                self._lanes.close(channel)
            if result.is_full_record:
                self._remaining.popleft()
                self._after_record(channel)
                if self._remaining:
                    self._in_hand.reset()
        if filled:
            self._in_hand.prune()
        return True
