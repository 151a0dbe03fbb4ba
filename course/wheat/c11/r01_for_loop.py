"""A loop over what is missing, with early returns."""

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    def on_backlog(self, backlog):
        self.credit.num_required = self.credit.num_exclusive + backlog
        missing = self.credit.num_required - self.num_available
        if self.is_waiting:
            return
        for _ in range(missing):
            buffer = self.floating_pool.request_buffer()
            if buffer is None:
                self.floating_pool.add_listener(self)
                self.is_waiting = True
                return
            self.floating.append(buffer)
            self.add_credit(1)

    def on_recycled(self):
        has_enough = self.num_available > self.credit.num_required
        if not has_enough or len(self.floating) == 0:
            self.add_credit(1)
            return
        self.floating.pop().recycle()
