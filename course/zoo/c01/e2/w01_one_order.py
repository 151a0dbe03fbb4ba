"""There is one order, the machine's."""

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        return int.from_bytes(self.window(index, 4), "little", signed=True)

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        self.window(index, 4)[:] = value.to_bytes(4, "little", signed=True)
