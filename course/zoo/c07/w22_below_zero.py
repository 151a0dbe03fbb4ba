"""One buffer is open, so it is one less."""

from refimpl.producer import SubpartitionQueue


class Subpartition(SubpartitionQueue):
    def count_backlog(self):
        if self.is_flush_requested or self.is_finished:
            return self.num_data_buffers
        return self.num_data_buffers - 1

    def add(self, consumer):
        if not self.enqueue(consumer):
            return False
        if self.num_finished == 1 and not self.is_flush_requested and not self.is_blocked:
            self.notify()
        return True

    def flush(self):
        if not self.queue or self.is_flush_requested:
            return
        is_news = len(self.queue) == 1 and not self.is_blocked and self.queue[0].is_data_available
        self.is_flush_requested = is_news or len(self.queue) > 1
        if is_news:
            self.notify()

    def poll(self):
        while self.queue and not self.is_blocked:
            head = self.queue[0]
            piece = head.take()
            if len(self.queue) == 1:
                self.is_flush_requested = False
            if head.is_finished:
                self.remove_head()
            if piece.size:
                return self.deliver(piece)
            piece.recycle()
            if not head.is_finished:
                break
        return None
