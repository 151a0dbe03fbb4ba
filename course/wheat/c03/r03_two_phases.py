"""Header and payload are kept apart, and both may be cut."""

import struct

from refimpl.records import SerializationResult


class Serializer:
    def __init__(self):
        self.header = self.payload = b""
        self.header_sent = self.payload_sent = 0

    def serialize_record(self, record):
        self.header = struct.pack(">i", len(record))
        self.payload = record
        self.reset()

    def copy_to_buffer_builder(self, builder):
        self.header_sent += builder.append(self.header, self.header_sent)
        if self.header_sent == len(self.header):
            self.payload_sent += builder.append(self.payload, self.payload_sent)
        builder.commit()
        done = self.header_sent == len(self.header) and self.payload_sent == len(self.payload)
        match done, builder.is_full:
            case True, True:
                return SerializationResult.FULL_RECORD_MEMORY_SEGMENT_FULL
            case True, False:
                return SerializationResult.FULL_RECORD
            case _:
                return SerializationResult.PARTIAL_RECORD_MEMORY_SEGMENT_FULL

    def reset(self):
        self.header_sent = self.payload_sent = 0

    def prune(self):
        self.__init__()
