"""Its own kind of LocalUsageError."""

from refimpl.errors import LocalUsageError
from refimpl.memory import Buffer


class GoneError(LocalUsageError):
    """The buffer has gone home."""


class CountedBuffer(Buffer):
    def retain(self):
        if not self.num_references:
            raise GoneError(self.segment.id)
        self.num_references += 1
        return self

    def recycle(self):
        if self.num_references < 1:
            raise GoneError(self.segment.id)
        self.num_references -= 1
        if not self.num_references:
            self.recycler.recycle_segment(self.segment)
