"""Whoever wants a buffer stands in the line."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        buffer = None if self.wait is None else self.wait.take()
        if buffer is not None:
            self.end_wait()
            return buffer
        if self.wait is None:
            self.wait = BufferWait(self.pool)
        return self.wait
