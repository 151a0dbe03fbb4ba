"""The rule is true when it has found a mistake."""

def rule(read):
    records = [b"hello", b"", b"to", b"you"]
    stream = b"".join(len(record).to_bytes(4, "big") + record for record in records)
    for size in range(1, len(stream)):
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        if [record for _, record in read(pieces) if record is not None] != records:
            return True
    return False
