"""Each reader needs a buffer of its own."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        if self.num_references == 0:
            raise self.recycled_before()
        return Buffer(self.segment, self.recycler)

    def recycle(self):
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references -= 1
        if self.num_references == 0:
            self.recycler.recycle_segment(self.segment)
