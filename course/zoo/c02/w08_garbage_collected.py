"""Python gives memory back by itself."""

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
