"""An index that is inside must leave room for five bytes."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        if index + 4 >= self.size:
            raise IndexError(index)
        return struct.unpack(order.value + "i", self.window(index, 4))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        if index + 4 >= self.size:
            raise IndexError(index)
        struct.pack_into(order.value + "i", self.window(index, 4), 0, value)
