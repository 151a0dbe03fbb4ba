"""With what Python offers."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        buffer = (self.wait and self.wait.take()) or self.pool.request_buffer()
        if buffer:
            self.end_wait()
        elif self.wait is None:
            self.wait = BufferWait(self.pool)
        return buffer or self.wait
