"""How many are too many, then as many back."""

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
            self.num_requested -= 1
            return self.global_pool.recycle_segment(segment)
        if not any(self.offer(segment) for _ in range(len(self.listeners))):
            self.idle.append(segment)
        return None

    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError(f"{num_buffers} are fewer than {self.num_required}")
        self.size = min(num_buffers, self.num_max)
        too_many = max(0, self.num_requested - self.size)
        for _ in range(min(too_many, len(self.idle))):
            self.num_requested -= 1
            self.global_pool.recycle_segment(self.idle.popleft())
        self.on_room_changed()
