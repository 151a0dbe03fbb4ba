"""Helpers beside the class, and attributes of its own."""

from refimpl.consumer import BufferManager


def wanted(backlog: int, own: int) -> int:
    return backlog + own


class Receiver(BufferManager):
    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.num_own = self.credit.num_exclusive
        self.reports: list[int] = []

    def take_one(self) -> bool:
        buffer = self.floating_pool.request_buffer()
        if buffer is not None:
            self.floating.append(buffer)
            self.add_credit(1)
        return buffer is not None

    def on_backlog(self, backlog: int) -> None:
        self.reports.append(backlog)
        self.credit.num_required = wanted(backlog, self.num_own)
        while not self.is_waiting and self.num_available < self.credit.num_required:
            if not self.take_one():
                self.is_waiting = self.floating_pool.add_listener(self)

    def on_recycled(self) -> None:
        match self.num_available > self.credit.num_required, bool(self.floating):
            case (True, True):
                self.floating.popleft().recycle()
            case _:
                self.add_credit(1)
