"""A match over what became of record and buffer; prunes always."""

from refimpl.producer import RecordWriter


class Writer(RecordWriter):
    def copy_to_channels(self):
        closed = 0
        while self._remaining:
            channel = self._remaining[0]
            if not self._builders[channel] and not self._open(channel):
                self._block(True)
                break
            result = self._in_hand.copy_to_buffer_builder(self._builders[channel])
            match result.is_full_record, result.is_full_buffer:
                case _, True:
                    closed += 1
                    self._close(channel)
            if not result.is_full_record:
                continue
            done = self._remaining.popleft()
            self._after_record(done)
            self._remaining and self._in_hand.reset()
        else:
            if closed:
                self._in_hand.prune()
            return True
        return False
