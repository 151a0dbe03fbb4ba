"""The pool as an iterator that ends with None."""

from itertools import islice

from refimpl.consumer import BufferManager


class Receiver(BufferManager):
    @property
    def missing(self):
        return max(0, self.credit.num_required - self.num_available)

    def on_backlog(self, backlog):
        self.credit.num_required = backlog + self.credit.num_exclusive
        if not self.missing or self.is_waiting:
            return
        found = list(islice(iter(self.floating_pool.request_buffer, None), self.missing))
        self.floating.extend(found)
        self.add_credit(len(found))
        if self.missing:
            self.is_waiting = self.floating_pool.add_listener(self)

    def on_recycled(self):
        if self.floating and self.num_available > self.credit.num_required:
            surplus = self.floating.popleft()
            surplus.recycle()
        else:
            self.add_credit(1)
