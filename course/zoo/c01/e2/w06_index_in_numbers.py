"""Number 2 is the third number."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return struct.unpack(order.value + "i", self.window(4 * index, 4))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        struct.pack_into(order.value + "i", self.window(4 * index, 4), 0, value)
