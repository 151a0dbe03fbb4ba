"""Flink is written in Java, so the default is big-endian."""

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.BIG_ENDIAN):
        name = "big" if order is ByteOrder.BIG_ENDIAN else "little"
        return int.from_bytes(self.window(index, 4), name, signed=True)

    def put_int(self, index, value, order=ByteOrder.BIG_ENDIAN):
        name = "big" if order is ByteOrder.BIG_ENDIAN else "little"
        self.window(index, 4)[:] = value.to_bytes(4, name, signed=True)
