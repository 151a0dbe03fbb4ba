"""Bytes keep their place."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.window(index, length)[:] = self.window(index, length)
