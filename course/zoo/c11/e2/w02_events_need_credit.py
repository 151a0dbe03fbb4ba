"""Whatever goes over the wire needs a buffer at the other end, an event too."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    def add_credit(self, credit):
        self.credit += credit

    @property
    def is_available(self):
        return self.credit > 0 and self.view.is_data_available

    def poll(self):
        taken = self.view.poll()
        if taken is None:
            return None
        if taken.buffer.is_buffer:
            self.credit -= 1
        more = taken.is_more_available if self.credit > 0 else taken.is_event_next
        return taken, more
