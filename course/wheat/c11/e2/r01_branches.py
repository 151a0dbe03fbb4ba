"""Branches, written out."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    def add_credit(self, credit):
        self.credit = self.credit + credit

    @property
    def is_available(self):
        if self.view.is_event_available:
            return True
        if self.credit == 0:
            return False
        return self.view.is_data_available

    def poll(self):
        taken = self.view.poll()
        if taken is None:
            return None
        if not taken.buffer.is_buffer:
            return taken, self.may_go_on(taken)
        self.credit -= 1
        return taken, self.may_go_on(taken)

    def may_go_on(self, taken):
        if taken.is_event_next:
            return True
        return taken.is_more_available and self.credit > 0
