"""When the readers of an output are told of what waits in buffers that are not full.

A full buffer and an event tell them without being asked. What is left then waits for this policy: for the next record,
if each is flushed, for the buffer timeout, or for ever.
"""

from __future__ import annotations

__all__ = ["OutputFlusher"]


class OutputFlusher:
    """The policy of one output. It decides; the output flushes.

    `timeout_ms` is the buffer timeout: above 0 what waits is flushed by that time, with 0 each record at once, with -1
    nothing ever. It may change while the job runs, but not from or to 0. `deadline_ms` is when what waits is to be
    flushed, in ms; `None` if nothing waits, or if nobody has asked yet.

    Flink:   RecordWriter.OutputFlusher and RecordWriter.flushAlways, 1.11.4
    Differs: a policy without a thread. The period starts with the first unflushed record, so an idle output costs
             nothing; Flink's thread flushes once per timeout, whatever was written.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.deadline_ms: float | None = None

    def is_after_each_record(self) -> bool:
        """Whether each record is flushed as soon as it is written."""
        return self.timeout_ms == 0

    def next_deadline(self, now_ms: float, is_waiting: bool) -> float | None:
        """When to flush by time, in ms; `None` if never, or if nothing is waiting.

        A deadline stays until `is_due` has said yes, or nothing waits any more. More records do not move it, nor does
        another timeout.
        """
        if self.timeout_ms <= 0 or not is_waiting:
            self.deadline_ms = None
        elif self.deadline_ms is None:
            self.deadline_ms = now_ms + self.timeout_ms
        return self.deadline_ms

    def is_due(self, now_ms: float, since_ms: float | None = None) -> bool:
        """Whether to flush by time now; if so, the deadline is done with.

        Without `since_ms` the deadline counts. A caller that does not see each write looks once per timeout, and says
        when it looked last: `since_ms`. What waits may have waited from then on, and no deadline counts.
        """
        if self.timeout_ms <= 0:
            return False
        deadline_ms = self.deadline_ms if since_ms is None else since_ms + self.timeout_ms
        if deadline_ms is None or now_ms < deadline_ms:
            return False
        self.deadline_ms = None
        return True
