"""Reference parts of the exercises that end a lesson with "write the rule": rules that tell right parts from wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["records_come_back"]


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
