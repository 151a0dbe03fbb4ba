"""Reference parts of exercises that are no parts of the engine: user code of a job, and a rule that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["records_come_back", "to_departure"]


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
