"""One method that changes the count."""

from refimpl.memory import Buffer


class CountedBuffer(Buffer):
    def _change(self, by):
        match self.num_references + by, self.num_references:
            case _, 0:
                raise self.recycled_before()
            case 0, _:
                self.num_references = 0
                self.recycler.recycle_segment(self.segment)
            case count, _:
                self.num_references = count
        return self

    def retain(self):
        return self._change(+1)

    def recycle(self):
        self._change(-1)
