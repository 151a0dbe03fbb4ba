"""The serializer of lesson 3 cuts, and the answers are asked two things: the records, and when the buffer was done."""

from refimpl.memory import BufferBuilder, DataType, heap_buffer
from refimpl.records import SpanningRecordSerializer


class Cutter:
    def __init__(self, size):
        self.size = size
        self.builders = []

    def room(self):
        if not self.builders or self.builders[-1].is_full:
            self.builders.append(BufferBuilder(heap_buffer(bytes(self.size), DataType.DATA)))
        return self.builders[-1]

    def cut(self, records):
        serializer = SpanningRecordSerializer()
        for record in records:
            serializer.serialize_record(record)
            while not serializer.copy_to_buffer_builder(self.room()).is_full_record:
                pass
        return [bytes(each.memory[: each.committed_bytes]) for each in self.builders]


def rule(read):
    records = [bytes([65 + n]) * n for n in (3, 0, 11, 1, 25)]
    for size in (1, 2, 3, 5, 7, 8, 9, 13, 100):
        pieces = Cutter(size).cut(records)
        answers = read(pieces)
        ok = [record for _, record in answers if record is not None] == records
        ok &= sum(name != "INTERMEDIATE_RECORD_FROM_BUFFER" for name, _ in answers) == len(pieces)
        if not ok:
            return False
    return True
