"""If an event is queued anywhere, the reader may speak."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    def add_credit(self, credit):
        self.credit += credit

    @property
    def is_available(self):
        if self.credit > 0:
            return self.view.is_data_available
        queued = self.view.subpartition.queue
        return any(not each.is_buffer for each in queued)

    def poll(self):
        taken = self.view.poll()
        if taken is None:
            return None
        if taken.buffer.is_buffer:
            self.credit -= 1
        more = taken.is_more_available if self.credit > 0 else taken.is_event_next
        return taken, more
