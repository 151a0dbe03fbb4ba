"""A buffer comes home sooner or later."""

from refimpl.exchange.before_credit import PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        while (buffer := self.pool.request_buffer()) is None:
            pass
        return buffer
