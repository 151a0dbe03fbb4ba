"""By the property."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        if self.is_recycled:
            raise self.recycled_before()
        self.num_references = self.num_references + 1
        return self

    def recycle(self):
        if self.is_recycled:
            raise self.recycled_before()
        self.num_references = self.num_references - 1
        if self.is_recycled:
            self.recycler.recycle_segment(self.segment)
