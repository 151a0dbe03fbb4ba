"""A copy fills the target from the left."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.window(0, length)[:] = self.window(index, length)
