"""Whoever recycles a buffer sends it home."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references += 1
        return self

    def recycle(self):
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references -= 1
        self.recycler.recycle_segment(self.segment)
