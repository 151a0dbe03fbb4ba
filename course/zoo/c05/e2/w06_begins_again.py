"""Each call copies the record from its first byte."""

from refimpl.producer import ChannelCopy


class Copy(ChannelCopy):
    def copy_to_channels(self):
        filled = False
        self.record.reset()
        while self.remaining:
            channel = self.remaining[0]
            builder = self.builders[channel] or self.open(channel)
            if builder is None:
                self.block()
                return False
            result = self.record.copy_to_buffer_builder(builder)
            if result.is_full_buffer:
                filled = True
                self.close(channel)
            if result.is_full_record:
                self.remaining.popleft()
                self.after_record(channel)
                if self.remaining:
                    self.record.reset()
        if filled:
            self.record.prune()
        return True
