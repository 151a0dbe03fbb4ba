"""numpy reads and writes the memory where it is."""

import numpy as np

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return int(np.frombuffer(self.window(index, 4), order.value + "i4")[0])

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        np.frombuffer(self.window(index, 4), order.value + "i4")[0] = value
