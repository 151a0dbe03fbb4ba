"""In pieces, kept beside before anything is written."""

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        target.window(target_index, length)
        pieces = [bytes(self.window(index + start, min(4, length - start))) for start in range(0, length, 4)]
        self.window(index, length)
        for number, piece in enumerate(pieces):
            target.put(target_index + 4 * number, piece)
