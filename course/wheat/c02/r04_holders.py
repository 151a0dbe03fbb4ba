"""A list of holders beside the count."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.holders = ["creator"]

    def retain(self) -> Buffer:
        self.alive()
        self.holders.append("reader")
        self.num_references = len(self.holders)
        return self

    def recycle(self) -> None:
        self.alive()
        self.holders.pop()
        self.num_references = len(self.holders)
        if not self.holders:
            home, segment = self.recycler, self.segment
            home.recycle_segment(segment)

    def alive(self):
        if not self.holders:
            raise self.recycled_before()
