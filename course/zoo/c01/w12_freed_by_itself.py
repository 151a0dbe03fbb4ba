"""A freed segment fails by itself."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def window(self, index, length):
        if index < 0 or length < 0 or index + length > self.size:
            raise IndexError(index)
        return self.view[index : index + length]
