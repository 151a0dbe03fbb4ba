"""An int of Python needs eight bytes."""

import struct

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return struct.unpack(order.value + "q", self.window(index, 8))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        struct.pack_into(order.value + "q", self.window(index, 8), 0, value)
