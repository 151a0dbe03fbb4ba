"""Each look into a buffer brings what there is, so the buffer can go."""

from collections import deque

from refimpl.records import DeserializationResult as R


class Deserializer:
    def __init__(self):
        self.buffer = None
        self.rest = b""
        self.found = deque()

    def set_next_buffer(self, buffer):
        self.buffer = buffer
        data = self.rest + buffer.data.tobytes()
        at = 0
        while at + 4 <= len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            self.found.append(data[at + 4 : end])
            at = end
        self.rest = data[at:]

    def get_next_record(self):
        if not self.found:
            return R.PARTIAL_RECORD, None
        record = self.found.popleft()
        if self.found and self.rest:
            return R.INTERMEDIATE_RECORD_FROM_BUFFER, memoryview(record)
        return R.LAST_RECORD_FROM_BUFFER, memoryview(record)

    def get_current_buffer(self):
        buffer = self.buffer
        self.buffer = None
        return buffer
