"""get gives the bytes of the segment to write to."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return struct.unpack(order.value + "i", self.window(index, 4))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        place = bytearray(self.get(index, 4))
        struct.pack_into(order.value + "i", place, 0, value)
