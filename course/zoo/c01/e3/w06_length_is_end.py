"""A slice is written with a start and a length."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        self.window(index, length)
        target.window(target_index, length)[:] = self.view[index:length]
