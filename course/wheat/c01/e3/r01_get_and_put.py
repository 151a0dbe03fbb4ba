"""The bytes out, the bytes in."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.put(target_index, self.get(index, length))
