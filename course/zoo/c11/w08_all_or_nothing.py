"""If the pool cannot give all that is missing, it is better to take none."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        missing = self.credit.num_required - self.num_available
        if missing <= 0 or self.is_waiting:
            return
        taken = [self.floating_pool.request_buffer() for _ in range(missing)]
        if None in taken:
            for buffer in taken:
                if buffer is not None:
                    buffer.recycle()
            self.is_waiting = self.floating_pool.add_listener(self)
            return
        self.floating.extend(taken)
        self.add_credit(missing)

    def on_recycled(self):
        if self.num_available > self.credit.num_required and self.floating:
            self.floating.popleft().recycle()
        else:
            self.add_credit(1)
