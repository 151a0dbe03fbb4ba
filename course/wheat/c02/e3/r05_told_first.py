"""Those who wait are told before the idle ones go back."""

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
        self.idle.append(segment)

    def set_num_buffers(self, num_buffers):
        if self.num_required <= num_buffers:
            self.size = min(self.num_max, num_buffers)
            self.on_room_changed()
            while self.num_requested > self.size and len(self.idle) > 0:
                self.give_back(self.idle.pop())
        else:
            raise LocalUsageError("too few")
