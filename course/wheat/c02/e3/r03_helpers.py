"""Helper methods, one for each question."""

from refimpl.errors import LocalUsageError
from refimpl.memory import LocalBufferPool


class Pool(LocalBufferPool):
    def _may_grow(self):
        return self.num_requested < self.size

    def _is_too_much(self):
        return self.is_destroyed or self.num_requested > self.size

    def _one_more(self):
        segment = self.global_pool.request_segment()
        self.num_requested += segment is not None
        return segment

    def _keep(self, segment):
        while self.listeners:
            if self.offer(segment):
                break
        else:
            self.idle.append(segment)

    def take_segment(self):
        try:
            return self.idle.popleft()
        except IndexError:
            return self._one_more() if self._may_grow() else None

    def take_back(self, segment):
        place = self.give_back if self._is_too_much() else self._keep
        place(segment)

    def set_num_buffers(self, num_buffers):
        if num_buffers < self.num_required:
            raise LocalUsageError(num_buffers)
        self.size = min(num_buffers, self.num_max)
        while self.idle and self.num_requested > self.size:
            self.give_back(self.idle.popleft())
        self.on_room_changed()
