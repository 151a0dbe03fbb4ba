"""No inheritance: a segment of its own."""

from refimpl.errors import LocalUsageError


class Segment:
    def __init__(self, memory, segment_id=-1):
        self.view = memoryview(memory)
        self.size = len(self.view)
        self.id = segment_id

    def free(self):
        self.view = None

    def window(self, index: int, length: int) -> memoryview:
        match self.view:
            case None:
                raise LocalUsageError("used after it was freed")
            case memory:
                inside = range(self.size + 1)
                if index not in inside or length < 0 or index + length not in inside:
                    raise IndexError((index, length, self.size))
                return memory[index:][:length]
