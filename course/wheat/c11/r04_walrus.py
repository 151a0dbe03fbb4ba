"""Short, with what Python offers."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        before = len(self.floating)
        while (
            not self.is_waiting
            and self.num_available < self.credit.num_required
            and (buffer := self.floating_pool.request_buffer())
        ):
            self.floating.append(buffer)
        self.add_credit(len(self.floating) - before)
        self.is_waiting = self.is_waiting or (
            self.num_available < self.credit.num_required and self.floating_pool.add_listener(self)
        )

    def on_recycled(self):
        if self.num_available <= self.credit.num_required or not self.floating:
            return self.add_credit(1)
        return self.floating.popleft().recycle()
