"""How many are too many, then as many back."""

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
            self.num_requested -= 1
            return self._global.recycle_segment(segment)
        if not any(self._offer(segment) for _ in range(len(self._listeners))):
            self._idle.append(segment)
        return None

    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError(f"{num_buffers} are fewer than {self.num_required}")
        self.size = min(num_buffers, self.num_max)
        too_many = max(0, self.num_requested - self.size)
        for _ in range(min(too_many, len(self._idle))):
            self.num_requested -= 1
            self._global.recycle_segment(self._idle.popleft())
        self._room_changed()
