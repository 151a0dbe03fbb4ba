"""Whoever needs a buffer again retains it again."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        self.num_references += 1
        return self

    def recycle(self):
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references -= 1
        if self.num_references == 0:
            self.recycler.recycle_segment(self.segment)
