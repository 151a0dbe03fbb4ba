"""pack_into knows the bounds."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return struct.unpack_from(order.value + "i", self.view, index)[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        struct.pack_into(order.value + "i", self.view, index, value)
