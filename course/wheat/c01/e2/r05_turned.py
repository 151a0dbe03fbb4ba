"""Native first, turned round where that is not meant."""

import sys

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        four = bytes(self.window(index, 4))
        if order is not ByteOrder.NATIVE:
            four = four[::-1]
        return int.from_bytes(four, sys.byteorder, signed=True)

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        four = value.to_bytes(4, sys.byteorder, signed=True)
        self.window(index, 4)[:] = four if order is ByteOrder.NATIVE else four[::-1]
