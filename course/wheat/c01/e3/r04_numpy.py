"""numpy over both windows."""

import numpy as np

from refimpl.memory import MemorySegment


class Segment(MemorySegment):
    def copy_to(self, index, target, target_index, length):
        source = np.frombuffer(self.window(index, length), np.uint8)
        np.frombuffer(target.window(target_index, length), np.uint8)[:] = source.copy()
