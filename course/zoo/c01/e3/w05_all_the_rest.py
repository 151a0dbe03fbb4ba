"""From the index on means to the end."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        rest = self.window(index, self.size - index)[: target.size - target_index]
        target.window(target_index, len(rest))[:] = rest
