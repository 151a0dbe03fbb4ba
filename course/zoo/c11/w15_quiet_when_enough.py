"""A channel that has more than it wants has nothing to announce."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        taken = 0
        while self.num_available < self.credit.num_required and not self.is_waiting:
            buffer = self.floating_pool.request_buffer()
            if buffer is None:
                self.is_waiting = self.floating_pool.add_listener(self)
                break
            self.floating.append(buffer)
            taken += 1
        self.add_credit(taken)

    def on_recycled(self):
        if self.num_available <= self.credit.num_required:
            self.add_credit(1)
        elif self.floating:
            self.floating.popleft().recycle()
