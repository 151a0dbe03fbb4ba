"""Works on the deque itself, and counts the backlog anew each time."""

from refimpl.producer import SubpartitionQueue


class Queue(SubpartitionQueue):
    def count_backlog(self):
        data = [entry for entry in self.queue if entry.is_buffer]
        if not self.is_flush_requested and not self.is_finished and data:
            data.pop()
        return len(data)

    def add(self, consumer):
        before = len(self.queue)
        was_told = self.num_finished >= 1
        joined = self.enqueue(consumer)
        if joined and not was_told and len(self.queue) - (not consumer.is_finished) >= 1:
            silent = self.is_blocked or self.is_flush_requested
            if not silent:
                self.notify()
        return len(self.queue) > before

    def flush(self):
        entries = list(self.queue)
        if self.is_flush_requested:
            return
        if len(entries) >= 2:
            self.is_flush_requested = True
        elif entries and entries[0].is_data_available and not self.is_blocked:
            self.is_flush_requested = True
            self.notify()

    def poll(self):
        if self.is_blocked:
            return None
        for entry in list(self.queue):
            piece = entry.take()
            self.is_flush_requested = self.is_flush_requested and len(self.queue) > 1
            if entry.is_finished:
                self.queue.popleft()
                self.num_data_buffers -= 1 if entry.is_buffer else 0
            if piece.size > 0:
                return self.deliver(piece)
            piece.recycle()
        return None
