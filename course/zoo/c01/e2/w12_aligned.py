"""A number of four bytes starts at a multiple of four."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return struct.unpack(order.value + "i", self.window(index // 4 * 4, 4))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        struct.pack_into(order.value + "i", self.window(index // 4 * 4, 4), 0, value)
