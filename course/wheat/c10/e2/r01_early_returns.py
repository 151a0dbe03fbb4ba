"""Early returns."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        if self.wait is not None:
            came = self.wait.take()
            if came is not None:
                self.wait = None
                return came
        free = self.pool.request_buffer()
        if free is not None:
            self.end_wait()
            return free
        if not self.wait:
            self.wait = BufferWait(self.pool)
        return self.wait
