"""To free a segment is to say so; the memory stays with the object."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def __init__(self, memory):
        super().__init__(memory)
        self.memory = memoryview(memory)

    def window(self, index, length):
        if index < 0 or length < 0 or index + length > len(self.memory):
            raise IndexError(index)
        return self.memory[index : index + length]
