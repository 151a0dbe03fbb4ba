"""What is missing is promised at once; the buffers will come."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        missing = max(0, self.credit.num_required - self.num_available)
        for _ in range(missing):
            buffer = self.floating_pool.request_buffer()
            if buffer is None:
                self.is_waiting = self.is_waiting or self.floating_pool.add_listener(self)
                break
            self.floating.append(buffer)
        self.add_credit(missing)

    def on_recycled(self):
        if self.num_available > self.credit.num_required and self.floating:
            self.floating.popleft().recycle()
        else:
            self.add_credit(1)
