"""The caller wants to know whether the record is done: yes or no."""


class Serializer:
    def __init__(self):
        self.data = b""
        self.position = 0

    def serialize_record(self, record):
        self.data = len(record).to_bytes(4, "big") + record
        self.position = 0

    def copy_to_buffer_builder(self, builder):
        self.position += builder.append_and_commit(self.data, self.position)
        return self.position >= len(self.data)

    def reset(self):
        self.position = 0

    def prune(self):
        self.data = b""
        self.position = 0
