"""Home first, then the count, which nobody sees in between."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        if self.num_references > 0:
            self.num_references += 1
            return self
        raise self.recycled_before()

    def recycle(self):
        last = self.num_references == 1
        if not self.num_references:
            raise self.recycled_before()
        self.num_references -= 1
        return self.recycler.recycle_segment(self.segment) if last else None
