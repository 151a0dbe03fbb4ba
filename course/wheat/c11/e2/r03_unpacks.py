"""Takes apart what the view gave, and keeps a count of its own."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    sent = 0

    def add_credit(self, credit):
        self.credit += credit

    def _may(self, is_any, is_event):
        return bool(is_event or (is_any and self.credit))

    @property
    def is_available(self):
        return self._may(self.view.is_data_available, self.view.is_event_available)

    def poll(self):
        taken = self.view.poll()
        if not taken:
            return taken
        buffer, is_more, _backlog, is_event, _number = taken
        if buffer.is_buffer:
            self.credit, self.sent = self.credit - 1, self.sent + 1
        return (taken, self._may(is_more, is_event))
