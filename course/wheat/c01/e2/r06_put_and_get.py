"""Through the methods that copy bytes; a numpy number comes back."""

import numpy as np

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return np.array(list(self.get(index, 4)), np.uint8).view(order.value + "i4")[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        self.put(index, np.array([value], order.value + "i4").tobytes())
