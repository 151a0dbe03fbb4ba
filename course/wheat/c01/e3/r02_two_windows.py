"""Both windows first, then one assignment."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        source = self.window(index, length)
        place = target.window(target_index, length)
        place[:] = bytes(source)
