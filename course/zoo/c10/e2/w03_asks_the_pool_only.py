"""What comes home lies in the pool."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        buffer = self.pool.request_buffer()
        if buffer is not None:
            self.end_wait()
            return buffer
        if self.wait is None:
            self.wait = BufferWait(self.pool)
        return self.wait
