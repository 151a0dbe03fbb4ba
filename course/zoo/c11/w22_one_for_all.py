"""All channels of a gate share their numbers."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    wanted = 0

    def on_backlog(self, backlog):
        Receiver.wanted += backlog - getattr(self, "last", 0)
        self.last = backlog
        self.credit.num_required = Receiver.wanted + self.credit.num_exclusive
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
        if self.num_available > self.credit.num_required and self.floating:
            self.floating.popleft().recycle()
        else:
            self.add_credit(1)
