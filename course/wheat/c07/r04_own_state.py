"""Counts what it needs itself, in an `__init__` of its own."""

from refimpl.producer import SubpartitionQueue


class Subpartition(SubpartitionQueue):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.data = 0

    def count_backlog(self):
        self.data = sum(1 for entry in self.queue if entry.is_buffer)
        whole = self.is_finished or self.is_flush_requested
        return self.data if whole or self.data == 0 else self.data - 1

    def add(self, consumer):
        if self.is_finished or self.is_released:
            consumer.close()
            return False
        done_before = self.num_finished
        self.enqueue(consumer)
        is_quiet = self.is_blocked or self.is_flush_requested
        if done_before == 0 and self.num_finished > 0 and not is_quiet:
            self.notify()
        return True

    def flush(self):
        if self.is_flush_requested or len(self.queue) == 0:
            return
        if len(self.queue) > 1:
            self.is_flush_requested = True
            return
        (only,) = self.queue
        if only.unread_bytes > 0 and not self.is_blocked:
            self.is_flush_requested = True
            self.notify()

    def poll(self):
        while not self.is_blocked and len(self.queue) > 0:
            entry = self.queue[0]
            is_last = len(self.queue) == 1
            taken = entry.take()
            if is_last:
                self.is_flush_requested = False
            leaves = entry.is_finished
            if leaves:
                self.remove_head()
            if taken.end != taken.start:
                return self.deliver(taken)
            taken.recycle()
            if not leaves:
                return None
        return None
