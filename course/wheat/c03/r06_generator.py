"""A generator that is sent one builder after another."""

from refimpl.records import SerializationResult


def copies(data):
    """Give an answer for every builder that is sent in; goes on for ever."""
    position = 0
    answer = None
    while True:
        builder = yield answer
        position += builder.append_and_commit(data, position)
        if position < len(data):
            answer = SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL
        elif builder.is_full:
            answer = SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
        else:
            answer = SerializationResult.FULL_RECORD


class Spanning:
    def __init__(self):
        self._data = b""
        self.reset()

    def serialize_record(self, record: bytes) -> None:
        self._data = bytes([(len(record) >> shift) & 255 for shift in (24, 16, 8, 0)]) + record
        self.reset()

    def copy_to_buffer_builder(self, builder):
        return self._copies.send(builder)

    def reset(self) -> None:
        self._copies = copies(self._data)
        next(self._copies)

    def prune(self) -> None:
        self._data = b""
        self.reset()
