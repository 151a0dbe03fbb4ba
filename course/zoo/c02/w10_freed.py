"""What nobody needs any more is freed."""

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
        if self.num_references == 0:
            self.segment.free()
