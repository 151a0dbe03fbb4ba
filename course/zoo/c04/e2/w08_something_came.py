"""What matters is that records come out; what they hold is the business of others."""


def rule(read):
    stream = b"\0\0\0\5hello\0\0\0\0\0\0\0\2hi"
    for size in range(1, len(stream)):
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        if all(record is None for _, record in read(pieces)):
            return False
    return True
