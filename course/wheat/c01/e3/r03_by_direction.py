"""Byte by byte, from the end that nothing is read from any more."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        place, source = target.window(target_index, length), self.window(index, length)
        steps = range(length)
        if target is self and target_index > index:
            steps = reversed(steps)
        for number in steps:
            place[number] = source[number]
