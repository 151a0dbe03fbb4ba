"""Each byte finds out for itself whether there is room."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        for number in range(length):
            target.window(target_index + number, 1)[:] = self.window(index + number, 1)
