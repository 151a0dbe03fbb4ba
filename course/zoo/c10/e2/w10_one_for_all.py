"""The line is the same for all channels."""

from refimpl.exchange.before_credit import BufferWait, PoolBuffers


class Waiting(PoolBuffers):
    place = None

    def request_buffer(self):
        buffer = None if Waiting.place is None else Waiting.place.take()
        if buffer is None:
            buffer = self.pool.request_buffer()
        if buffer is not None:
            Waiting.place = None
            return buffer
        if Waiting.place is None:
            Waiting.place = BufferWait(self.pool)
        return Waiting.place
