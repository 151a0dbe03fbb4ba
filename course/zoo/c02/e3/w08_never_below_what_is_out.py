"""A pool cannot be smaller than what it has lent."""

from refimpl.errors import LocalUsageError
from refimpl.memory import LocalBufferPool


class Pool(LocalBufferPool):
    def take_segment(self):
        if self._idle:
            return self._idle.popleft()
        if self.num_requested >= self.size:
            return None
        segment = self._global.request_segment()
        if segment is not None:
            self.num_requested += 1
        return segment

    def take_back(self, segment):
        if self.is_destroyed or self.num_requested > self.size:
            self._return(segment)
            return
        while self._listeners:
            if self._offer(segment):
                return
        self._idle.append(segment)

    def set_num_buffers(self, num_buffers):
        if num_buffers < max(self.num_required, len(self.lent)):
            raise LocalUsageError(num_buffers)
        self.size = min(num_buffers, self.num_max)
        while self._idle and self.num_requested > self.size:
            self._return(self._idle.popleft())
        self._room_changed()
