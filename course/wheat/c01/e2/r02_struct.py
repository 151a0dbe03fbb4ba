"""One struct.Struct for each order."""

import struct

from refimpl.memory import ByteOrder, MemorySegment

LAYOUTS = {order: struct.Struct(order.value + "i") for order in ByteOrder}


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return LAYOUTS[order].unpack(self.window(index, 4))[0]

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        self.window(index, 4)[:] = LAYOUTS[order].pack(value)
