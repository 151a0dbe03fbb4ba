"""Each thing that is sent costs one credit."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    def add_credit(self, credit):
        self.credit += credit

    @property
    def is_available(self):
        if self.credit > 0:
            return self.view.is_data_available
        return self.view.is_event_available

    def poll(self):
        taken = self.view.poll()
        if taken is None:
            return None
        self.credit -= 1
        more = taken.is_more_available if self.credit > 0 else taken.is_event_next
        return taken, more
