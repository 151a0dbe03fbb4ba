"""poll calls itself for what is skipped; the rules of telling in helpers of their own."""

from __future__ import annotations

from typing import Any

from refimpl.producer import SubpartitionQueue


class Subpartition(SubpartitionQueue):
    @property
    def _is_quiet(self) -> bool:
        return self.is_flush_requested or self.is_blocked

    def _tell_if(self, condition: bool) -> bool:
        if condition:
            self.notify()
        return condition

    def count_backlog(self) -> int:
        open_tail = 0 if self.is_flush_requested or self.is_finished else 1
        return max(self.num_data_buffers - open_tail, 0)

    def add(self, consumer: Any) -> bool:
        was_queued = self.enqueue(consumer)
        self._tell_if(was_queued and not self._is_quiet and self.num_finished == 1)
        return was_queued

    def flush(self) -> None:
        match len(self.queue):
            case 0:
                pass
            case 1:
                if not self._is_quiet:
                    self.is_flush_requested = self.queue[0].is_data_available
                    self._tell_if(self.is_flush_requested)
            case _:
                self.is_flush_requested = True

    def poll(self) -> Any:
        if not self.queue or self.is_blocked:
            return None
        if len(self.queue) == 1:
            self.is_flush_requested = False
        head = self.queue[0]
        piece = head.take()
        if head.is_finished:
            self.remove_head()
        if len(piece.data):
            return self.deliver(piece)
        piece.recycle()
        return self.poll() if head.is_finished else None
