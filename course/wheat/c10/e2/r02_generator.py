"""Places where a buffer can be, one after the other."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def _places(self):
        if self.wait is not None:
            yield self.wait.take()
        yield self.pool.request_buffer()

    def request_buffer(self):
        for buffer in self._places():
            if buffer is not None:
                self.end_wait()
                return buffer
        self.wait = self.wait or BufferWait(self.pool)
        return self.wait
