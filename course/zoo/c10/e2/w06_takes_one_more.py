"""To be safe, ask the pool even if one has come."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        came = None if self.wait is None else self.wait.take()
        buffer = self.pool.request_buffer() or came
        if buffer is not None:
            self.end_wait()
            return buffer
        if self.wait is None:
            self.wait = BufferWait(self.pool)
        return self.wait
