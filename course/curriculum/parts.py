"""Reference parts of exercises that are no parts of the engine: user code of a job, and a rule that is written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from refimpl.errors import LocalUsageError
from refimpl.records import MIN_TIMESTAMP

__all__ = [
    "CountingWindows", "gives_each_slot_once", "names_the_culprit", "reads_as_written", "records_come_back",
    "to_departure",
]  # fmt: skip


def to_departure(flight: dict[str, Any]) -> tuple[str, int]:
    """One value for one flight: where it left from, and how many minutes late.

    `flight` has the keys event_time_ms, origin, carrier, dest (texts of two or three letters but
    for the time) and dep_delay_minutes (a whole number, below zero for a flight that left early).
    Returns the pair (origin, minutes late); a flight that left early or on time is 0 minutes late.
    `flight` stays as it is: other parts of the job are given the same object.
    """
    return flight["origin"], max(0, flight["dep_delay_minutes"])


def records_come_back(read: Callable[[Sequence[bytes]], list[tuple[str, bytes | None]]]) -> bool:
    """Whether what comes out is what went in, however the stream was cut.

    `read(pieces)` makes a new deserializer, gives it one buffer after the other, with these bytes,
    and returns each of its answers as (name of the result, record or None). As a task does, it
    asks again after INTERMEDIATE_RECORD_FROM_BUFFER and takes the buffer back after the others.
    Return True if the deserializer keeps your rule, False if it does not (or let an assertion fail).
    """
    records = [b"hello", b"", b"to", bytes(range(1, 30)), b"you"]
    stream = b"".join(len(record).to_bytes(4, "big") + record for record in records)
    for size in range(1, len(stream) + 1):
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        if [record for _, record in read(pieces) if record is not None] != records:
            return False
    return True


def reads_as_written(new_result: Callable[[], Any]) -> bool:
    """Whether every reader finds what was written, all of it, and nobody reads before it is finished.

    `new_result()` makes a new channel that is read when it is finished, as in exercise 8.1. It has

        write(data)    one more buffer, with these bytes: 1 to 64 of them
        finish()       nothing is written any more
        reader()       another reader; before finish() it must raise LocalUsageError

    and a reader has `read()`, which gives the bytes of the next buffer, or None at the end.
    Return True if the channel keeps your rule, False if it does not (or let an assertion fail).
    """
    pieces = [b"one", b"two", b"three"]
    result = new_result()
    for piece in pieces:
        result.write(piece)
        try:
            result.reader()
        except LocalUsageError:
            continue
        return False
    result.finish()
    first, second = result.reader(), result.reader()
    found = [(first.read(), second.read()) for _ in range(len(pieces) + 1)]
    return found == [(piece, piece) for piece in [*pieces, None]]


def names_the_culprit(find: Callable[[Mapping[str, Sequence[float]], Sequence[tuple[str, str]]], Any]) -> bool:
    """Whether a function that looks for the bottleneck finds it, in jobs of your own.

    `find(loads, exchanges)` asks it about a job. `loads` has a name for each subtask, and how it spends
    its time: (busy, idle, held back), in shares from 0 to 1; a fourth number says how many buffers wait
    at its input, 0 if you leave it out. `exchanges` are pairs of names, who sends and who reads.
    It returns the name of the culprit; a pair of names, if it is what lies between two; or None.
    Return True if the function keeps your rule, False if it does not (or let an assertion fail).
    """
    works, waits, easy = (0.95, 0.05, 0), (0.15, 0, 0.85), (0.3, 0.7, 0)
    line = [("source", "map"), ("map", "window"), ("window", "sink")]
    fork = [("source", "left"), ("source", "right"), ("other", "far")]
    jobs: list[tuple[dict[str, Any], list[tuple[str, str]], Any]] = [
        ({"source": waits, "map": (0.4, 0, 0.6, 9), "window": works, "sink": easy}, line, "window"),
        ({"source": waits, "map": easy, "window": easy, "sink": easy}, line, ("source", "map")),
        ({"source": works, "map": easy, "window": easy, "sink": easy}, line, None),
        (
            {"source": (0.6, 0, 0.4), "left": (0.7, 0.3, 0, 9), "right": (0.9, 0.1, 0, 1), "other": easy, "far": works},
            fork,
            "right",
        ),
    ]
    return all(find(loads, exchanges) == want for loads, exchanges, want in jobs)


def gives_each_slot_once(new_pool: Callable[[], Any]) -> bool:
    """Whether a slot pool gives each slot to one request at a time, and none lies idle while a request waits.

    `new_pool()` makes a new pool with a matching as in exercise 16.1. Requests and slots are whole numbers, and each
    request has one of its own; a TaskManager has a name. The pool has

        request(number, before=None, near=[])    the slot that serves it, or None: it waits
        offer(slot, task_manager)                the request that it serves, or None: it is free
        release(slot)                            the same
        withdraw(number), remove(slot)           that request waits no longer, that slot is gone

    Return True if the pool keeps your rule, False if it does not (or let an assertion fail).
    """
    pool, here = new_pool(), "tm-0"
    told = [pool.request(number) for number in (1, 2, 3)]
    told += [pool.offer(9, here), pool.offer(9, here), pool.offer(3, here), pool.offer(1, here)]
    told += [pool.request(4, before=9), pool.request(5), pool.release(9), pool.request(6)]
    pool.withdraw(6)
    told += [pool.release(1)]
    pool.remove(9)
    told += [pool.offer(8, here), pool.offer(8, here), pool.offer(7, here)]
    told += [pool.request(10, before=7), pool.request(11), pool.request(12)]
    wanted = [None, None, None, 1, None, 3, 2, None, None, 4, None, 5, None, None, None, 7, 8, None]
    return told == wanted


class CountingWindows:
    """How many numbers came of each key in each window of event time, and their sum.

    Windows are `size_ms` long and begin at each multiple of that. `output` has emit(key, start, end, count, total) and
    late(key, number, timestamp).

    Flink:   WindowOperator (streaming.runtime.operators.windowing), 1.11.4
    Differs: one kind of window and one aggregate; a watermark looks through all windows, where Flink has timers.
    """

    def __init__(self, size_ms: int) -> None:
        self.size_ms = size_ms
        self.watermark = MIN_TIMESTAMP
        self.windows: dict[tuple[Hashable, int], tuple[int, int]] = {}

    def on_record(self, key: Hashable, number: int, timestamp: int, output: Any) -> None:
        """Add a number to its window, or say that it is late."""
        start = timestamp - timestamp % self.size_ms
        if start + self.size_ms - 1 <= self.watermark:
            output.late(key, number, timestamp)
            return
        count, total = self.windows.get((key, start), (0, 0))
        self.windows[key, start] = count + 1, total + number

    def on_watermark(self, watermark: int, output: Any) -> None:
        """Emit what is over, the smallest end first, and forget it."""
        self.watermark = max(self.watermark, watermark)
        over = [found for found in self.windows if found[1] + self.size_ms - 1 <= self.watermark]
        for key, start in sorted(over, key=lambda found: found[1]):
            output.emit(key, start, start + self.size_ms, *self.windows.pop((key, start)))

    def snapshot(self) -> dict[tuple[Hashable, int], tuple[int, int]]:
        """The open windows as they are now."""
        return dict(self.windows)

    def restore(self, states: Sequence[Mapping[tuple[Hashable, int], tuple[int, int]]]) -> None:
        """Go on from what snapshots of other subtasks returned."""
        for state in states:
            self.windows.update(state)
