"""A match over what became of record and buffer; prunes always."""

from refimpl.producer import ChannelCopy


class Copy(ChannelCopy):
    def copy_to_channels(self):
        closed = 0
        while self.remaining:
            channel = self.remaining[0]
            if not self.builders[channel] and not self.open(channel):
                self.block()
                break
            result = self.record.copy_to_buffer_builder(self.builders[channel])
            match result.is_full_record, result.is_full_buffer:
                case _, True:
                    closed += 1
                    self.close(channel)
            if not result.is_full_record:
                continue
            done = self.remaining.popleft()
            self.after_record(done)
            self.remaining and self.record.reset()
        else:
            if closed:
                self.record.prune()
            return True
        return False
