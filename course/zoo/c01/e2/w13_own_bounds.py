"""Who checks the bounds himself needs no window."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        if not 0 <= index <= self.size - 4:
            raise IndexError(index)
        return struct.unpack_from(order.value + "i", self.view, index)[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        if not 0 <= index <= self.size - 4:
            raise IndexError(index)
        struct.pack_into(order.value + "i", self.view, index, value)
