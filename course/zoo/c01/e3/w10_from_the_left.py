"""Bytes are copied one after the other, from the left."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        source, place = self.window(index, length), target.window(target_index, length)
        for number in range(length):
            place[number] = source[number]
