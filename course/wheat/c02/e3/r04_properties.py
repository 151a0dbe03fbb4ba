"""What is lent and what is idle, counted afresh."""

from refimpl.errors import LocalUsageError
from refimpl.memory import LocalBufferPool


class Pool(LocalBufferPool):
    def take_segment(self):
        if len(self.idle):
            segment = self.idle[0]
            del self.idle[0]
            return segment
        segment = self.global_pool.request_segment() if self.num_requested < self.size else None
        if segment:
            self.num_requested = len(self.lent) + len(self.idle) + 1
        return segment

    def take_back(self, segment):
        if self.is_destroyed or self.num_requested > self.size:
            self.give_back(segment)
            return
        while self.listeners:
            if self.offer(segment):
                return
        self.idle.append(segment)

    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError(num_buffers)
        self.size = min(num_buffers, self.num_max)
        while self.idle and self.num_requested > self.size:
            self.give_back(self.idle.popleft())
        self.on_room_changed()
