"""A place in the line is kept for the next time."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        buffer = None if self.wait is None else self.wait.take()
        if buffer is None:
            buffer = self.pool.request_buffer()
        if buffer is not None:
            return buffer
        if self.wait is None:
            self.wait = BufferWait(self.pool)
        return self.wait
