"""copy_to copies to this segment."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        self.window(index, length)[:] = target.window(target_index, length)
