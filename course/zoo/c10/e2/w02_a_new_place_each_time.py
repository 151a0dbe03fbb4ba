"""Whoever is asked again waits again."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        buffer = None if self.wait is None else self.wait.take()
        if buffer is None:
            buffer = self.pool.request_buffer()
        if buffer is not None:
            self.end_wait()
            return buffer
        self.wait = BufferWait(self.pool)
        return self.wait
