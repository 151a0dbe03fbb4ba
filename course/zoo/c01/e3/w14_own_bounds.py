"""Who checks the bounds himself needs no windows."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        if min(index, target_index, length) < 0 or index + length > self.size or target_index + length > target.size:
            raise IndexError(index)
        target.view[target_index : target_index + length] = self.view[index : index + length]
