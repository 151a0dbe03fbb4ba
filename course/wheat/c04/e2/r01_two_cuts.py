"""Assertions; every pair of cuts of a short stream."""

def rule(read):
    stream, want = b"\0\0\0\5hello\0\0\0\0\0\0\0\2hi", [b"hello", b"", b"hi"]
    for first in range(1, len(stream)):
        for second in range(first + 1, len(stream)):
            pieces = [stream[:first], stream[first:second], stream[second:]]
            assert [record for _, record in read(pieces) if record is not None] == want
    return True
