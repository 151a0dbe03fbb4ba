"""Home goes who has one reference, and the count stays for the record."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def retain(self):
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references += 1
        return self

    def recycle(self):
        if self.num_references == 1:
            self.recycler.recycle_segment(self.segment)
            return
        if self.num_references == 0:
            raise self.recycled_before()
        self.num_references -= 1
