"""A count belongs to the class."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    count = 0

    def __init__(self, segment, recycler, data_type=None, size=0):
        super().__init__(segment, recycler)
        CountedBuffer.count = 1

    def retain(self):
        if self.num_references == 0:
            raise self.recycled_before()
        CountedBuffer.count += 1
        self.num_references = CountedBuffer.count
        return self

    def recycle(self):
        if self.num_references == 0:
            raise self.recycled_before()
        CountedBuffer.count -= 1
        self.num_references = CountedBuffer.count
        if not CountedBuffer.count:
            self.recycler.recycle_segment(self.segment)
