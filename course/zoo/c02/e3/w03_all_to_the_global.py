"""What is not needed goes back to the global pool."""

from refimpl.errors import LocalUsageError
from refimpl.memory import LocalBufferPool


class Pool(LocalBufferPool):
    def take_segment(self):
        if self.idle:
            return self.idle.popleft()
        if self.num_requested >= self.size:
            return None
        segment = self.global_pool.request_segment()
        if segment is not None:
            self.num_requested += 1
        return segment

    def take_back(self, segment):
        if self.is_destroyed or self.num_requested > self.size:
            self.give_back(segment)
            return
        while self.listeners:
            if self.offer(segment):
                return
        self.give_back(segment)

    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError(num_buffers)
        self.size = min(num_buffers, self.num_max)
        while self.idle and self.num_requested > self.size:
            self.give_back(self.idle.popleft())
        self.on_room_changed()
