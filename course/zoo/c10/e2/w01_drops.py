"""What has no room is skipped."""

from refimpl.exchange.before_credit import PoolBuffers


class Waiting(PoolBuffers):
    def request_buffer(self):
        return self.pool.request_buffer()
