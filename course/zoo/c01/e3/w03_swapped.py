"""The first index is the target's, as on the left of an assignment."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.window(index, length)[:] = self.window(target_index, length)
