"""Bytes in memory are in network order, always."""

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return int.from_bytes(self.window(index, 4), "big", signed=True)

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        self.window(index, 4)[:] = value.to_bytes(4, "big", signed=True)
