"""Shifts and masks."""

from refimpl.memory import ByteOrder, MemorySegment


class Segment(MemorySegment):
    def get_int(self, index, order=ByteOrder.NATIVE):
        places = [0, 8, 16, 24] if order is ByteOrder.LITTLE_ENDIAN else [24, 16, 8, 0]
        number = sum(byte << place for byte, place in zip(self.window(index, 4), places, strict=True))
        return number - (1 << 32) if number >> 31 else number

    def put_int(self, index, value, order=ByteOrder.NATIVE):
        window = self.window(index, 4)
        places = [0, 8, 16, 24] if order is ByteOrder.LITTLE_ENDIAN else [24, 16, 8, 0]
        for number, place in enumerate(places):
            window[number] = value >> place & 255
