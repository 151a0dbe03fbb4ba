"""Whether it may go on is the same question as whether it may speak."""

from refimpl.exchange import SubpartitionReader


class Sender(SubpartitionReader):
    def add_credit(self, credit: int) -> None:
        self.credit += credit

    @property
    def is_available(self) -> bool:
        return self.view.is_event_available or (self.credit > 0 and self.view.is_data_available)

    def poll(self):
        if (taken := self.view.poll()) is None:
            return None
        self.credit -= taken.buffer.is_buffer
        return taken, self.is_available
