"""If there is less room, less is copied."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        source = self.window(index, length)[: target.size - target_index]
        target.window(target_index, len(source))[:] = source
