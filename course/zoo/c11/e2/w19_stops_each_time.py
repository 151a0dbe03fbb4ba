"""One buffer a turn; then the reader leaves the line."""

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
        if taken.buffer.is_buffer:
            self.credit -= 1
        return taken, False
