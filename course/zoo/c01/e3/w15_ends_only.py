"""Only the end can be outside."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        if index + length > self.size or target_index + length > target.size:
            raise IndexError(index)
        last = [target_index + each for each in range(length)]
        for number, place in enumerate(last):
            target.view[place] = self.view[index + number]
