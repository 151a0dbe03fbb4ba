"""Memory is freed by Python."""

from refimpl.producer import ChannelCopy


class Copy(ChannelCopy):
    def copy_to_channels(self):
        while self.remaining:
            channel = self.remaining[0]
            builder = self.builders[channel] or self.open(channel)
            if builder is None:
                self.block()
                return False
            result = self.record.copy_to_buffer_builder(builder)
            if result.is_full_buffer:
                self.close(channel)
            if result.is_full_record:
                self.remaining.popleft()
                self.after_record(channel)
                if self.remaining:
                    self.record.reset()
        return True
