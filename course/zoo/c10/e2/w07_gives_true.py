"""Whether there is room is a yes or no."""

from refimpl.exchange.before_credit import PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        return self.pool.request_buffer() is not None
